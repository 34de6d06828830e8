/** Internal. Limits in WebFlux applications: the current request, limited routes, and responses to refused requests. */
@NullMarked
package io.ratelimited.spring.internals.web.reactive;

import org.jspecify.annotations.NullMarked;
