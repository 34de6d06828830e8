package io.ratelimited.spring;

import io.ratelimited.core.Decision;
import io.ratelimited.core.Policy;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Makes calls under the limits of the application, by name, for code without annotations. A bean of the application, next to
 * {@link RateLimitOperations}, which shows and changes limits. Thread-safe. All calls with a {@code null} key share one
 * limit.
 *
 * <p>Limits of annotations are known once all beans are created. A bean that needs one earlier, such as in a
 * {@code @PostConstruct} method, can use a limit of properties.
 *
 * <p>Every method throws {@link IllegalArgumentException} for an unknown name of a limit, for an object that is not a key
 * ({@link io.ratelimited.core.CanonicalKey}), for a negative number of permits, and, except {@link #tryAcquire}, for a key
 * under an ADAPTIVE limit. Methods that return a future throw it, too, instead of returning a failed future. With {@code
 * rate-limit.enabled: false}, every call is admitted under any name.
 */
public interface RateLimits {

    /**
     * Takes a permit if the call can proceed immediately, regardless of the policy of the limit. Has no effect on a web
     * response: the caller handles a rejection.
     *
     * @throws UnsupportedOperationException for a CONCURRENCY or ADAPTIVE limit, with or without a key, because its calls
     *     must be released when they end: use {@link #execute} or {@link #reserve}
     */
    boolean tryAcquire(String name, @Nullable Object key);

    /**
     * Takes permits if the call can proceed immediately, regardless of the policy of the limit.
     *
     * @param permits 0 or more; a call of 0 permits uses none, and is admitted unless its key is blocked; it is decided
     *     like a call of 1 while its key is in debt because of what calls were charged
     * @throws UnsupportedOperationException for a CONCURRENCY or ADAPTIVE limit, with or without a key, because its calls
     *     must be released when they end: use {@link #execute} or {@link #reserve}
     */
    boolean tryAcquire(String name, @Nullable Object key, long permits);

    /**
     * Calls the supplier under the limit, like an annotated method: depending on the policy, a call over the limit is
     * rejected, waits, or is only counted. If this thread serves a web request, the response has the headers of the limit. A
     * call that returns a {@link CompletionStage}, or a response that ends later, is in flight until that ends. A call that
     * returns another reactive type is over when it returns, before anybody subscribes: limit such a method by its annotation.
     *
     * @throws io.ratelimited.core.RateLimitExceededException if the call is rejected
     */
    <T extends @Nullable Object> T execute(String name, @Nullable Object key, Supplier<T> call);

    /**
     * Calls the supplier under the limit without blocking the caller. The call is in flight until its stage completes.
     *
     * @return fails with {@link io.ratelimited.core.RateLimitExceededException} if the call is rejected; cancelling it while
     *     it waits refunds the permits
     */
    <T extends @Nullable Object> CompletableFuture<T> executeAsync(
            String name, @Nullable Object key, Supplier<? extends CompletionStage<T>> call);

    /**
     * Reserves permits for a call whose cost is known only afterwards, such as a streamed response: {@link
     * ReservedPermits#settle} charges its cost, and {@link ReservedPermits#cancel} refunds all permits. Depending on the
     * policy, a call over the limit is rejected, waits, or is only counted. If this thread serves a web request, the response
     * has the headers of the limit.
     *
     * @param permits 0 or more; 0 uses none, and can be settled for the cost of the call
     * @return the permits, which must be closed when the call has ended
     * @throws io.ratelimited.core.RateLimitExceededException if the call is rejected
     */
    ReservedPermits reserve(String name, @Nullable Object key, long permits);

    /**
     * {@link #reserve} without blocking the caller. After a wait, callbacks of the future run with the contexts of the caller
     * on a thread that can block; if the caller was on an event loop, on that of its request or on a parallel thread of
     * Reactor.
     *
     * @return fails with {@link io.ratelimited.core.RateLimitExceededException} if the call is rejected; cancelling it
     *     refunds the permits, unless they are reserved already: then close them, even if no caller awaits them any more
     */
    CompletableFuture<ReservedPermits> reserveAsync(String name, @Nullable Object key, long permits);

    /**
     * Returns the same limits for calls with a priority, as in {@link RateLimited#priority}: {@code
     * limits.withPriority("batch").execute("exports", null, call)}. Limits without {@code priorities} ignore it, and so does
     * {@link #tryAcquire}.
     *
     * @param priority name of the priority; null, and a blank or unknown name, mean the priority in the middle
     * @return immutable
     */
    RateLimits withPriority(@Nullable String priority);

    /**
     * Returns the decision that {@link #tryAcquire} would make now; {@link Decision#blocked} shows whether the key is
     * blocked. Changes nothing.
     */
    Decision peek(String name, @Nullable Object key);

    /**
     * Returns the remaining permits of a caller for each limit with a key, for example for a page that shows quotas. Each
     * decision is that of {@link #peek}: this uses no permits, and tracks no key. It is the decision of the caller's {@link
     * RateLimitOperations#override override}, if there is one. Otherwise it is that of the limit itself, not of its tiers,
     * with the numbers that the tier expression returned for the last call of the key, if this instance still tracks the key.
     *
     * <p>Limits under {@link Policy#SHADOW} are omitted, because they reject no call. The annotation, route or properties of
     * a limit show whether it has keys. A key that only another limit uses, such as a client IP among usernames, has all
     * permits. Each limit on Redis needs a command, one after the other. Like {@link #peek}, this blocks until Redis has
     * responded; {@link Decision#source} shows what has decided if Redis is unavailable.
     *
     * @param key {@code null} for calls without a key: limits that reject such calls, or do not apply to them, are omitted
     * @return sorted by name of the limit; empty with {@code rate-limit.enabled: false}
     */
    List<Decision> remaining(@Nullable Object key);

    /**
     * {@link #remaining(Object)} for a caller with a tier.
     *
     * @param tier name of a tier, or numbers such as {@code 500/m}; the limit itself decides if it has no such tier, or does
     *     not support the numbers
     */
    List<Decision> remaining(@Nullable Object key, @Nullable String tier);
}
