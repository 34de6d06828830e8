package io.ratelimited.spring;

import io.ratelimited.core.Decision;
import io.ratelimited.core.Policy;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Calls under the limits of the application, by name: for code without annotations. A bean of the application, beside {@link
 * RateLimitOperations}, which shows and changes limits. Thread-safe. A {@code null} key is the key of a limit without
 * keys.
 *
 * <p>Every method throws {@link IllegalArgumentException} for a name that no annotation and no property has, for an object that
 * is no key ({@link io.ratelimited.core.CanonicalKey}), for a key of an ADAPTIVE limit, and for less than 1 permit. With {@code rate-limit.enabled: false} every
 * call is admitted, whatever its name.
 */
public interface RateLimits {

    /**
     * Takes a permit if the call can proceed immediately, whatever the policy of the limit. Does not report to a web request: the
     * caller decides about the consequences of a rejection.
     */
    boolean tryAcquire(String name, @Nullable Object key);

    /**
     * Takes permits if the call can proceed immediately, whatever the policy of the limit.
     *
     * @param permits 0 or more; 0 takes nothing, and the call is admitted
     */
    boolean tryAcquire(String name, @Nullable Object key, long permits);

    /**
     * Calls the supplier under the limit, as an annotated method is called: rejects, waits or counts by its policy,
     * and reports to the web request of this thread, if there is one, whose response has the fields of the limit.
     *
     * @throws io.ratelimited.core.RateLimitExceededException when the call is rejected
     */
    <T extends @Nullable Object> T execute(String name, @Nullable Object key, Supplier<T> call);

    /**
     * Calls the supplier under the limit without blocking the caller; the call counts as in flight until its stage
     * completes.
     *
     * @return fails with {@link io.ratelimited.core.RateLimitExceededException} when the call is rejected; cancelling it
     *     while it waits refunds the permits
     */
    <T extends @Nullable Object> CompletableFuture<T> executeAsync(
            String name, @Nullable Object key, Supplier<? extends CompletionStage<T>> call);

    /**
     * Takes permits for a call whose cost is known only afterwards, such as an answer that is streamed:
     * {@link ReservedPermits#settle} charges its cost, and {@link ReservedPermits#cancel} refunds all permits. Rejects,
     * waits or counts by the policy of the limit, and reports to the web request of this thread, if there is one.
     *
     * @param permits 0 or more; 0 takes nothing, and can be settled for the cost of the call
     * @return the permits, to be closed when the call has ended
     * @throws io.ratelimited.core.RateLimitExceededException when the call is rejected
     */
    ReservedPermits reserve(String name, @Nullable Object key, long permits);

    /**
     * {@link #reserve} without blocking the caller.
     *
     * @return fails with {@link io.ratelimited.core.RateLimitExceededException} when the call is rejected; cancelling it
     *     refunds the permits
     */
    CompletableFuture<ReservedPermits> reserveAsync(String name, @Nullable Object key, long permits);

    /**
     * The same limits, for calls of a class as {@link RateLimited#priority} names it: {@code
     * limits.withPriority("batch").execute("exports", null, call)}. Limits without {@code priorities} do not read it, nor does
     * {@link #tryAcquire}.
     *
     * @param priority the name of the class; null, a blank name and one that is not configured are the class in the middle
     * @return immutable
     */
    RateLimits withPriority(@Nullable String priority);

    /**
     * Returns the decision that {@link #tryAcquire} would make now; {@link Decision#blocked} says whether the key is blocked.
     * Changes nothing.
     */
    Decision peek(String name, @Nullable Object key);

    /**
     * Returns the rest of each limit whose calls have a key, for a page that shows callers their quotas. Each decision is
     * the one that {@link #peek} returns: this takes nothing, and remembers no key. The limit itself is asked, not its
     * tiers, with the numbers that the last call of the key had from its tier expression, if this instance remembers them; unless the caller has an {@link RateLimitOperations#override override}.
     *
     * <p>Limits under {@link Policy#SHADOW} reject nobody and are left out. A limit is known to have keys by its annotation,
     * its route or its properties. A key that is only used by another limit, such as an address among names, finds the limit
     * unused. A limit on Redis takes a command, one after the other; like {@link #peek} this waits for the answer, and
     * {@link Decision#source} shows the place of the decision when there is none.
     *
     * @param key {@code null} for calls without a key: then limits are left out that reject them or do not apply to them
     * @return by name of the limit; empty with {@code rate-limit.enabled: false}
     */
    List<Decision> remaining(@Nullable Object key);

    /**
     * {@link #remaining(Object)} of a caller in a tier.
     *
     * @param tier asked wherever a limit has a tier of this name; or numbers such as {@code 500/m}, which are asked wherever a
     *     limit can have them; a limit without it is asked itself
     */
    List<Decision> remaining(@Nullable Object key, @Nullable String tier);
}
