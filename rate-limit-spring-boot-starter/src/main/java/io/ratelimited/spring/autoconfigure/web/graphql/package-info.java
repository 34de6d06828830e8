/** Internal. Auto-configuration of the limits of web on graphql. */
@NullMarked
package io.ratelimited.spring.autoconfigure.web.graphql;

import org.jspecify.annotations.NullMarked;
