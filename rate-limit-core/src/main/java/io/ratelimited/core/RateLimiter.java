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
 * Decides the calls of one limit, for every key. Memory, Redis and other backends implement it. All calls with a {@code null}
 * key share one limit; each other key has its own. {@link CanonicalKey} defines valid keys and their equality; another object
 * causes an {@link IllegalArgumentException}. Implementations are thread-safe. All durations are in nanoseconds.
 *
 * <p>A call of 0 permits is admitted immediately, even by a closed limit and during an outage of the backend, and uses no
 * permit. It is rejected while its key is {@link Limit#block blocked}. If calls are {@link Limit#isCharged charged}, or once
 * one was {@link Reservation#settle settled} for more than it had reserved, it is decided like a call of 1 permit while its key
 * owes permits, or while the limit is closed. Its reservation can be settled for the cost of the call. Every operation with a
 * negative number of permits throws an {@link IllegalArgumentException}.
 */
public interface RateLimiter {

    /** Whether the callbacks of an asynchronous decision can block. */
    enum Callbacks {
        /** They can block: they run on a separate thread. */
        MAY_BLOCK,
        /**
         * They do not block, as in reactive chains: they run on the thread that has the decision, which may read the replies
         * to all callers of a backend.
         */
        NEVER_BLOCK
    }

    /** The rank of a call without a priority. */
    int NO_RANK = -1;

    /** Returns the current limit. */
    Limit limit();

    /**
     * Takes the permits if the call can be admitted immediately. In memory, this allocates nothing.
     *
     * @return whether the call can proceed; if not, no permit was taken, but a {@link Limit#block} may have started
     * @throws UnsupportedOperationException for {@link Algorithm#CONCURRENCY} and {@link Algorithm#ADAPTIVE}, whose calls
     *     must be {@link Reservation#release released}: use {@link #reserve}
     */
    boolean tryAcquire(@Nullable Object key, long permits);

    /**
     * Takes the permits if the call can proceed within the time that it states. Does not block: the call can proceed when {@link
     * Reservation#await} returns. A rejection is immediate and takes nothing; it may start a {@link Limit#block}.
     */
    Reservation reserve(Call call);

    /**
     * {@link #reserve(Call)} for a call that states nothing else.
     *
     * @param maxWaitNanos the maximum wait, inclusive; 0 for a call that must be admitted immediately
     */
    default Reservation reserve(@Nullable Object key, long permits, long maxWaitNanos) {
        return reserve(Call.of(key, permits, maxWaitNanos));
    }

    /**
     * {@link #reserve(Call)} for callers that must not block, for backends whose decision takes a round trip. A caller who
     * cancels the stage's future before it is done holds nothing.
     *
     * @param callbacks the kind of code that the caller attaches to the stage
     */
    default CompletionStage<Reservation> reserveAsync(Call call, Callbacks callbacks) {
        return CompletableFuture.completedFuture(reserve(call));
    }

    /** {@link #reserveAsync(Call, Callbacks)} for a call that states nothing else, with callbacks that may block. */
    default CompletionStage<Reservation> reserveAsync(@Nullable Object key, long permits, long maxWaitNanos) {
        return reserveAsync(Call.of(key, permits, maxWaitNanos), Callbacks.MAY_BLOCK);
    }

    /**
     * Takes the permits, and waits until the call can proceed.
     *
     * @throws RateLimitExceededException if the call cannot be admitted within the given time, or too many callers wait
     * @throws InterruptedException if the thread is interrupted while it waits; the permits are refunded
     */
    default Reservation acquire(@Nullable Object key, long permits, long maxWaitNanos) throws InterruptedException {
        Reservation reservation = reserve(key, permits, maxWaitNanos);
        if (!reservation.await()) {
            throw new RateLimitExceededException(reservation.decision());
        }
        return reservation;
    }

    /** Returns the decision that {@link #reserve(Call)} would make now. Changes nothing, and remembers no key. */
    Decision peek(Call call);

    /**
     * {@link #peek(Call)} for a call that states nothing else.
     *
     * @param maxWaitNanos the maximum wait, inclusive; 0 for a call that must be admitted immediately
     */
    default Decision peek(@Nullable Object key, long permits, long maxWaitNanos) {
        return peek(Call.of(key, permits, maxWaitNanos));
    }

    /** {@link #peek(Call)} for callers that must not block, for backends whose decision takes a round trip. */
    default CompletionStage<Decision> peekAsync(Call call) {
        return CompletableFuture.completedFuture(peek(call));
    }

    /**
     * Records that this limiter has rejected a call in {@link #peek}: starts a block of its key as {@link #reserve} would, if
     * the limit has blocks, and informs {@link Algorithm#ADAPTIVE}. Never waits. {@code AllOf} calls it for each limit that
     * rejects a call.
     *
     * @param refusal the decision of {@code peek}
     * @return the current rejection, or the given one if the block starts elsewhere
     */
    default Decision refused(Call call, Decision refusal) {
        return refusal;
    }

    /**
     * Resets the used permits of the key, and ends its block: its next call finds a fresh limit. Calls in flight still count.
     * If there are more keys than memory tracks, a key that was evicted before may get its used permits back.
     */
    void reset(@Nullable Object key);

    /**
     * Changes the limit while it is in use. No change refunds used permits, and no admitted call is lost or counted twice.
     *
     * <ul>
     *   <li>A different rate or burst: a bucket keeps its remaining permits, or the same share of the new burst if that is
     *       less. A larger burst is filled at the new rate, and debt is kept in permits. A window keeps its used permits, so
     *       a raised quota applies immediately, unless a call waits: later calls are admitted no earlier than it.
     *   <li>A different algorithm, or for a window a different period, number of slots or zone: the used permits are reset,
     *       so each key has its full limit once more.
     *   <li>Closed (rate 0) or unlimited: nothing is counted, and a later rate continues with the used permits from before.
     * </ul>
     *
     * <p>An active block keeps its length, unless the used permits are reset; a limit without {@link Limit#block} ends all
     * blocks permanently. While the limit is closed or unlimited, no key is blocked, except those of callers with their own
     * numbers. A reservation from before a change refunds nothing after it. A new key has the full new capacity; under
     * SMOOTH_BURSTY, the permits that the limit has stored since it was created.
     *
     * @param limit the new limit; same name
     * @throws IllegalArgumentException if the name differs, or the change is from or to CONCURRENCY or ADAPTIVE
     */
    void update(Limit limit);

    /**
     * Returns a limiter for callers with their own numbers, over the same state: a key keeps its used permits when its
     * numbers change, as after an {@link #update}. It follows updates of this limiter, and must not be closed or updated
     * itself. It is cheap and not stored, so it can be created for each call. If a later limit does not support the numbers,
     * that limit itself applies.
     *
     * @param numbers creates the limit of the callers from the common one, with another rate and burst, for example a {@link
     *     CallerLimit}; throws {@link InvalidLimitException} if that is impossible
     * @throws InvalidLimitException if the current limit does not support the numbers
     * @throws UnsupportedOperationException if this limiter does not support numbers of callers
     */
    default RateLimiter ofCallers(UnaryOperator<Limit> numbers) {
        // An algorithm that has no such numbers says so.
        throw new UnsupportedOperationException("this backend does not support " + numbers.apply(limit()));
    }

    /**
     * Returns the limiter with the numbers of the last call of a key, if this process still tracks them: in memory until the
     * limit of the key is full again, on Redis for at least the last 10,000 keys. Returns this limiter if the key had no
     * numbers of its own.
     */
    default RateLimiter ofKnownCaller(Object key) {
        return this;
    }

    /** Identifies the state of this limiter: the same object for all {@link #ofCallers} of one limiter. */
    default Object budgets() {
        return this;
    }

    /**
     * Closes the limiter: every waiting call, and every later call that would have to wait, fails with a {@link
     * RateLimiterClosedException}, and its permits are refunded. Calls that can be admitted immediately are still decided.
     */
    default void close() {}

    /** Returns the estimated number of keys with state in this process. */
    long keys();

    /** Returns the number of waiting callers. */
    int waiting();

    /** Returns the current adaptive limit of {@link Algorithm#ADAPTIVE}; null for other algorithms. */
    default @Nullable FoundLimit foundLimit() {
        return null;
    }

    /**
     * Adds an observer of each change of the limit of {@link Algorithm#ADAPTIVE}, at most a few per second. It runs on a
     * thread that completes a call, so it must not block; its exceptions go to the uncaught exception handler. Has no effect
     * for other algorithms.
     */
    default void onLimitChange(Consumer<FoundLimitChange> observer) {}

    /**
     * Returns the keys with state in this process, as {@link CanonicalKey#ofText} returns them; weakly consistent. Empty if
     * the state is elsewhere. The time is proportional to {@link #keys()}.
     */
    default Stream<Object> knownKeys() {
        return Stream.empty();
    }

    /**
     * Returns the blocked keys, in no particular order; weakly consistent. On Redis, these are the keys that this node knows.
     * Empty for a limit without {@link Limit#block}. The time is proportional to {@link #keys()}.
     */
    default Stream<BlockedKey> blockedKeys() {
        return Stream.empty();
    }

    /**
     * Adds an observer of each block that starts on this instance; on Redis, that is the instance whose call has started the
     * block. No lock is held while it runs. In memory, it runs on the thread of the call. On Redis, it runs on the executor
     * for asynchronous callers ({@code RedisBackendOptions.executor}), possibly after the call was rejected, or on a thread
     * of the backend if that executor rejects the task. Its exceptions are ignored.
     */
    default void onBlock(Consumer<BlockedKey> observer) {}

    /** Returns the source of every decision of this limiter; null if it differs between decisions. */
    default Decision.@Nullable Source source() {
        return null;
    }
}
