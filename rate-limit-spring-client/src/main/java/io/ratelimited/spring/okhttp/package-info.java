/** Limits on the calls of OkHttp clients that the application builds. */
@NullMarked
package io.ratelimited.spring.okhttp;

import org.jspecify.annotations.NullMarked;
