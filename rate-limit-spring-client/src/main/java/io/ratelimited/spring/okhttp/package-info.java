/** Limits on the calls of OkHttp clients that the application builds. Experimental: may change in a minor release. */
@NullMarked
package io.ratelimited.spring.okhttp;

import org.jspecify.annotations.NullMarked;
