/** Internal. The request of a call, as limits see it: each kind of web server and of caller has its own. */
@NullMarked
package io.ratelimited.spring.internals.request;

import org.jspecify.annotations.NullMarked;
