/** Internal. The limiter in memory for calls in flight: permits in use, a queue of waiting callers, and leases. */
@NullMarked
package io.ratelimited.core.internals.memory.concurrency;

import org.jspecify.annotations.NullMarked;
