/** Internal. Limits in servlet applications: the current request, limited routes, and responses to refused requests. */
@NullMarked
package io.ratelimited.spring.internals.web.servlet;

import org.jspecify.annotations.NullMarked;
