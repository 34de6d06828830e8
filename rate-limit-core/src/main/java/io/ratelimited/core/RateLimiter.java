package io.ratelimited.core;

import io.ratelimited.core.overload.FoundLimit;
import io.ratelimited.core.overload.FoundLimitChange;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.function.Consumer;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Decides for one limit, for every key. This is the seam between memory and Redis. A {@code null} key is the one budget
 * of a limit without keys; each other key has its own limit. {@link CanonicalKey} defines valid keys and their
 * equality; another object is rejected with an {@link IllegalArgumentException}. Implementations are thread-safe.
 * All durations are in nanoseconds.
 *
 * <p>A call of 0 permits is admitted immediately, even by a closed limit and during an outage of the backend, and takes
 * none. It is rejected while its key is {@link Limit#block blocked}, and where calls are {@link Limit#isCharged charged} while a
 * call of 1 permit would be. Its reservation can be {@link Reservation#settle settled} for the cost of the call. Every operation that takes
 * permits throws {@link IllegalArgumentException} when they are negative.
 */
public interface RateLimiter {

    /** Kinds of code that a caller attaches to an asynchronous decision. */
    enum Callbacks {
        /** It may block: it runs in a thread that nobody else waits for. */
        MAY_BLOCK,
        /**
         * It does not block, as in reactive chains: it runs where the decision arrives, which may be the thread that reads the
         * replies to all callers of a backend.
         */
        NEVER_BLOCK
    }

    /** The rank of a call that states no priority. */
    int NO_RANK = -1;

    /** The limit as it is now. */
    Limit limit();

    /**
     * Takes the permits if the call may be admitted immediately. In memory this allocates nothing.
     *
     * @return whether the call can proceed; if not, nothing has changed but for a {@link Limit#block} that may have started
     * @throws UnsupportedOperationException for {@link Algorithm#CONCURRENCY} and {@link Algorithm#ADAPTIVE}, whose calls have to be {@link
     *     Reservation#release released}: use {@link #reserve}
     */
    boolean tryAcquire(@Nullable Object key, long permits);

    /**
     * Takes the permits if the call can proceed within the given time. Does not block: the call can proceed when {@link
     * Reservation#await} returns. A rejection is immediate and takes nothing; it may start a {@link Limit#block}.
     *
     * @param maxWaitNanos the longest wait, inclusive; 0 to be admitted immediately or not at all
     */
    Reservation reserve(@Nullable Object key, long permits, long maxWaitNanos);

    /**
     * {@link #reserve} for callers that must not block, for backends whose decision takes a round trip. A caller who cancels
     * the stage's future before it is done holds nothing.
     */
    default CompletionStage<Reservation> reserveAsync(@Nullable Object key, long permits, long maxWaitNanos) {
        return CompletableFuture.completedFuture(reserve(key, permits, maxWaitNanos));
    }

    /** {@link #reserveAsync(Object, long, long)}, where callbacks may block, for callers who state whether theirs do. */
    default CompletionStage<Reservation> reserveAsync(
            @Nullable Object key, long permits, long maxWaitNanos, Callbacks callbacks) {
        return reserveAsync(key, permits, maxWaitNanos);
    }

    /**
     * {@link #reserve(Object, long, long)} for a call that has a priority. Limits without {@link Limit#priorities} do not
     * read it.
     *
     * @param rank the number of the class, as {@link Limit#rank} counts; {@link #NO_RANK}, or another number that is none, for
     *     {@link Limit#rankOfOthers}
     */
    default Reservation reserve(@Nullable Object key, long permits, long maxWaitNanos, int rank) {
        return reserve(key, permits, maxWaitNanos);
    }

    /** {@link #reserve(Object, long, long, int)} for a call as a value, with all that it states. */
    default Reservation reserve(Call call) {
        return reserve(call.key(), call.permits(), call.maxWaitNanos(), call.rank());
    }

    /** {@link #reserveAsync(Object, long, long, Callbacks, int)} for a call as a value, with all that it states. */
    default CompletionStage<Reservation> reserveAsync(Call call, Callbacks callbacks) {
        return reserveAsync(call.key(), call.permits(), call.maxWaitNanos(), callbacks, call.rank());
    }

    /** {@link #reserveAsync(Object, long, long, Callbacks)} for a call that has a priority. */
    default CompletionStage<Reservation> reserveAsync(
            @Nullable Object key, long permits, long maxWaitNanos, Callbacks callbacks, int rank) {
        return reserveAsync(key, permits, maxWaitNanos, callbacks);
    }

    /**
     * Takes the permits and waits until they are due.
     *
     * @throws RateLimitExceededException when the call could not be admitted within the given time, or too many callers wait
     * @throws InterruptedException when interrupted while waiting; the permits have been refunded
     */
    default Reservation acquire(@Nullable Object key, long permits, long maxWaitNanos) throws InterruptedException {
        Reservation reservation = reserve(key, permits, maxWaitNanos);
        if (!reservation.await()) {
            throw new RateLimitExceededException(reservation.decision());
        }
        return reservation;
    }

    /**
     * Returns the decision that {@link #reserve} would make now. Changes nothing, and remembers no key.
     *
     * @param maxWaitNanos the longest wait, inclusive; 0 to ask what could be admitted immediately
     */
    Decision peek(@Nullable Object key, long permits, long maxWaitNanos);

    /** {@link #peek(Object, long, long)} for a call that has a priority. */
    default Decision peek(@Nullable Object key, long permits, long maxWaitNanos, int rank) {
        return peek(key, permits, maxWaitNanos);
    }

    /** {@link #peek(Object, long, long, int)} for a call as a value, with all that it states. */
    default Decision peek(Call call) {
        return peek(call.key(), call.permits(), call.maxWaitNanos(), call.rank());
    }

    /** {@link #peek} for callers that must not block, for backends whose decision takes a round trip. */
    default CompletionStage<Decision> peekAsync(@Nullable Object key, long permits, long maxWaitNanos) {
        return CompletableFuture.completedFuture(peek(key, permits, maxWaitNanos));
    }

    /** {@link #peekAsync(Object, long, long)} for a call as a value, with all that it states. */
    default CompletionStage<Decision> peekAsync(Call call) {
        return peekAsync(call.key(), call.permits(), call.maxWaitNanos());
    }

    /**
     * Notes that this limiter has rejected a call which it had only been asked about by {@link #peek}: starts a block of its key
     * as {@link #reserve} would, if the limit has blocks, and {@link Algorithm#ADAPTIVE} learns of it. Never blocks. {@code AllOf}
     * calls it for each limit that rejects a call.
     *
     * @param refusal the decision of {@code peek}
     * @return the rejection as it is now, or as it was if the block starts elsewhere
     */
    default Decision refused(@Nullable Object key, long permits, long maxWaitNanos, Decision refusal) {
        return refusal;
    }

    /** {@link #refused(Object, long, long, Decision)} for a call that has a priority. */
    default Decision refused(@Nullable Object key, long permits, long maxWaitNanos, Decision refusal, int rank) {
        return refused(key, permits, maxWaitNanos, refusal);
    }

    /** {@link #refused(Object, long, long, Decision, int)} for a call as a value, with all that it states. */
    default Decision refused(Call call, Decision refusal) {
        return refused(call.key(), call.permits(), call.maxWaitNanos(), refusal, call.rank());
    }

    /**
     * Forgets the permits that the key has used, and its block: its next call finds the initial budget. Calls in flight still count. In
     * memory, while more keys come than are remembered, a key that was evicted before may find its used permits again.
     */
    void reset(@Nullable Object key);

    /**
     * Changes the limit while it is in use. No change adds permits to what was spent, and no grant is lost or doubled.
     *
     * <ul>
     *   <li>Another rate or burst: a bucket keeps as many permits as were left, or the same share of the new burst if that
     *       is less; a larger burst fills at the new rate; debt is kept in permits. A window keeps the spent permits: the
     *       new number less these is left, so a raised quota helps at once.
     *   <li>Another algorithm, or for a window another period, number of slots or zone: starts anew, with one full budget
     *       for each key once more.
     *   <li>Closed (rate 0) or unlimited: nothing is counted, and a later rate goes on with the budgets from before.
     * </ul>
     *
     * <p>A block that has started lasts as long as it was to, unless budgets begin anew; a limit without {@link Limit#block} ends all of them
     * for good. While the limit is closed or unlimited, nobody is blocked. A reservation made before a change gives nothing back after it. A key that was never seen finds the new capacity
     * full; under SMOOTH_BURSTY what the limit has stored since it began.
     *
     * @param limit the new limit; same name
     * @throws IllegalArgumentException when the name differs, or the change is from or to CONCURRENCY or ADAPTIVE
     */
    void update(Limit limit);

    /**
     * This limiter for callers with their own numbers, over the same budgets: the key of a call keeps what it has used, whichever
     * numbers the call before had, as after an {@link #update}. It follows each update of this limiter, and is not closed or
     * updated itself. Cheap, and not remembered by this limiter: one of the same numbers can be made for each call. Numbers
     * that a later limit cannot have are those of that limit.
     *
     * @param numbers makes the limit of the callers from that of all, with another rate and burst; throws {@link
     *     InvalidLimitException} if it cannot; such as a {@link CallerLimit}
     * @throws InvalidLimitException when the present limit cannot have the numbers
     * @throws UnsupportedOperationException when this limiter knows no numbers of callers
     */
    default RateLimiter ofCallers(UnaryOperator<Limit> numbers) {
        // An algorithm that has no such numbers says so.
        throw new UnsupportedOperationException("this backend does not support " + numbers.apply(limit()));
    }

    /**
     * This limiter with the numbers of the last call of a key, as far as this process remembers them: in memory until the
     * budget of the key is full again; on Redis for the last 10,000 keys at least. This limiter if the key had none of its own.
     */
    default RateLimiter ofKnownCaller(Object key) {
        return this;
    }

    /** Identifies the budgets that this limiter decides over: the same object for all {@link #ofCallers} of one limiter. */
    default Object budgets() {
        return this;
    }

    /**
     * Ends the limiter: every call that waits, and every call that would have to wait from now on, fails with a {@link
     * RateLimiterClosedException}, and its permits are refunded. Calls that may be admitted immediately are still decided.
     */
    default void close() {}

    /** Returns how many keys have a budget in memory now, estimated. */
    long keys();

    /** Returns how many callers sleep now. */
    int waiting();

    /** What {@link Algorithm#ADAPTIVE} has found until now; null for other algorithms. */
    default @Nullable FoundLimit foundLimit() {
        return null;
    }

    /**
     * Adds an observer of each change of the limit that {@link Algorithm#ADAPTIVE} finds, at most a few each second. It runs
     * in a thread that ends a call, so it must not block; what it throws goes to the uncaught exception handler. Without effect for other
     * algorithms.
     */
    default void onLimitChange(Consumer<FoundLimitChange> observer) {}

    /**
     * The keys that have a budget in this process now, as {@link CanonicalKey#ofText} makes them, weakly consistent; none where
     * budgets live elsewhere. Takes time in proportion to {@link #keys()}.
     */
    default Stream<Object> knownKeys() {
        return Stream.empty();
    }

    /**
     * The keys that are blocked now, weakly consistent, in no order; on Redis those that this node knows of. Empty for a limit
     * without {@link Limit#block}. Takes time in proportion to {@link #keys()}.
     */
    default Stream<BlockedKey> blockedKeys() {
        return Stream.empty();
    }

    /**
     * Tells an observer of each block that starts here: of a block on Redis the instance whose call has started it. Runs under no
     * lock. In memory it runs in the thread of the call. On Redis it runs in a thread of the executor for asynchronous callers
     * ({@code RedisBackendOptions.executor}), which may be after the call was rejected, or in a thread of the limits if that
     * executor takes no task. What it throws is dropped.
     */
    default void onBlock(Consumer<BlockedKey> observer) {}

    /** The source of every decision of this limiter; null when it differs from one decision to the next. */
    default Decision.@Nullable Source source() {
        return null;
    }
}
