/** Internal. Limits in applications of Spring for GraphQL: errors for refused fields and subscriptions. */
@NullMarked
package io.ratelimited.spring.internals.web.graphql;

import org.jspecify.annotations.NullMarked;
