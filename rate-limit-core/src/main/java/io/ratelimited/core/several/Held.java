package io.ratelimited.core.several;

import io.ratelimited.core.CanonicalKey;
import io.ratelimited.core.RateLimiter;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/**
 * Budgets elsewhere that a call under limits of several backends may have charged, and may give back, because its other limits
 * have not decided yet. A call that is rejected meanwhile may be so by such permits alone, which is no violation: whether it is
 * one is found out when all of those calls are decided. Thread-safe.
 */
final class Held {

    private static final ConcurrentHashMap<Budget, List<CompletableFuture<?>>> OPEN = new ConcurrentHashMap<>();

    private Held() {}

    /** A limiter, which is none but itself, and the text of a key. */
    private record Budget(RateLimiter limiter, @Nullable Object key) {

        static Budget of(Claim claim) {
            Object key = claim.key();
            return new Budget(claim.limiter(), key == null ? null : CanonicalKey.text(key));
        }

        @Override
        public int hashCode() {
            return System.identityHashCode(limiter) * 31 + (key == null ? 0 : key.hashCode());
        }

        @Override
        public boolean equals(@Nullable Object other) {
            return other instanceof Budget that
                    && limiter == that.limiter
                    && (key == null ? that.key == null : key.equals(that.key));
        }
    }

    /** Notes that a call charges the budget of a claim, and may give its permits back until it is decided. */
    static void until(Claim claim, CompletableFuture<?> decided) {
        Budget budget = Budget.of(claim);
        OPEN.compute(budget, (same, open) -> {
            List<CompletableFuture<?>> all = open == null ? new ArrayList<>(1) : new ArrayList<>(open);
            all.add(decided);
            return all;
        });
        decided.whenComplete((any, failure) -> OPEN.computeIfPresent(budget, (same, open) -> {
            List<CompletableFuture<?>> rest = new ArrayList<>(open);
            rest.removeIf(each -> each == decided);
            return rest.isEmpty() ? null : rest;
        }));
    }

    /** Returns whether another call may give back permits of the budget. */
    static boolean isOpen(Claim claim) {
        return !OPEN.isEmpty() && OPEN.containsKey(Budget.of(claim));
    }

    /**
     * Runs a task when those calls are decided that may give back permits of the budget now.
     *
     * @return false if there are none: the task is the caller's
     */
    static boolean whenDecided(Claim claim, Runnable task) {
        List<CompletableFuture<?>> open = OPEN.isEmpty() ? null : OPEN.get(Budget.of(claim));
        if (open == null) {
            return false;
        }
        CompletableFuture.allOf(open.toArray(CompletableFuture<?>[]::new)).whenComplete((any, failure) -> task.run());
        return true;
    }

    /** Returns how many budgets are held so. */
    static int size() {
        return OPEN.size();
    }
}
