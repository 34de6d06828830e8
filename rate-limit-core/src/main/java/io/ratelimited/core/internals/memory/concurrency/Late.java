package io.ratelimited.core.internals.memory.concurrency;

/**
 * What was counted of late and overloaded calls since calls became slow. Immutable.
 *
 * @param seconds seconds for which many calls have been late or overloaded
 * @param replaced permits by which calls that replaced such ones are more than half of them, since the latter are many
 * @param grown permits by which more are in flight since those ended that began as calls became slow
 * @param excess permits that have arrived beyond what is usual since calls became slow; it starts again where fewer arrive
 */
record Late(double seconds, double replaced, double grown, double excess) {

    static final Late NONE = new Late(0, 0, 0, 0);
}
