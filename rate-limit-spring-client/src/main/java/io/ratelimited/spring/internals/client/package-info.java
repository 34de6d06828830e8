/** Internal. Limits on calls to others: what goes out keeps to configured limits and to what the answers of the other side say. */
@NullMarked
package io.ratelimited.spring.internals.client;

import org.jspecify.annotations.NullMarked;
