package io.ratelimited.core.several;

import io.ratelimited.core.CanonicalKey;
import io.ratelimited.core.Limit;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.WeakHashMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/**
 * A budget with blocks elsewhere that calls under limits of several backends charge, and may give back, because their other limits have not
 * decided yet. A call that is rejected meanwhile may be so by such permits alone, which is no violation:
 *
 * <ul>
 *   <li>H1 A call holds a budget from before it is charged until the call is decided, and all was given back if it was rejected.
 *   <li>H2 A rejection is judged when all calls are decided that held the budget when it came. It is no violation if permits
 *       have come back since the rejected call began.
 *   <li>H3 A call that the budget itself rejects gives nothing back, and so excuses nobody.
 *   <li>H4 From the first such call on, the backend judges no rejection under the limit by itself, of whatever call: it would know
 *       nothing of those that hold the budget at that moment.
 * </ul>
 *
 * Remembered while calls use it. Thread-safe.
 */
final class Held {

    private static final ConcurrentHashMap<Budget, Held> ALL = new ConcurrentHashMap<>();

    /** Limiters that a call has held, by identity. */
    private static final Map<Object, Boolean> SHARED = Collections.synchronizedMap(new WeakHashMap<>());

    /** Whether there are any. */
    private static volatile boolean anyShared;

    /** Calls that are under way. Guarded by the entry of the map. */
    private int calls;
    /** Completed when their calls are decided. Guarded by this. */
    private final List<CompletableFuture<?>> holds = new ArrayList<>(1);
    /** How often permits have come back. Guarded by this. */
    private long returned;

    private Held() {}

    /** A limiter, which is none but itself, and the text of a key. */
    private record Budget(Object limiter, @Nullable Object key) {

        static Budget of(Claim claim) {
            Object key = claim.key();
            return new Budget(claim.limiter().budgets(), key == null ? null : CanonicalKey.text(key));
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

    /** Returns whether a rejection under the limit may be a violation that is judged here. */
    static boolean isJudgedHere(Claim claim) {
        return anyShared && SHARED.containsKey(claim.limiter().budgets());
    }

    /** Returns whether rejections of a claim elsewhere can be violations at all. */
    static boolean canViolate(Claim claim) {
        Limit limit = claim.limiter().limit();
        return claim.permits() > 0 && limit.block() != null && !limit.blocksByCharge();
    }

    /** Returns how many budgets are remembered. */
    static int size() {
        return ALL.size();
    }

    private synchronized List<CompletableFuture<?>> open() {
        return List.copyOf(holds);
    }

    private synchronized long returned() {
        return returned;
    }

    /** The use of a budget by one call, which begins when this is made. Used by one thread at a time. */
    static final class Use {

        private final Budget budget;
        private final Held held;
        /** How often permits had come back when the call began. */
        private final long before;

        private @Nullable CompletableFuture<@Nullable Void> hold;
        private boolean left;

        Use(Claim claim) {
            this.budget = Budget.of(claim);
            this.held = ALL.compute(budget, (same, present) -> {
                Held used = present == null ? new Held() : present;
                used.calls++;
                return used;
            });
            this.before = held.returned();
        }

        /** The call is about to be charged. */
        void hold() {
            SHARED.put(budget.limiter, true);
            anyShared = true;
            CompletableFuture<@Nullable Void> mine = new CompletableFuture<>();
            hold = mine;
            synchronized (held) {
                held.holds.add(mine);
            }
        }

        /** The call is decided. */
        void decided(boolean givenBack) {
            CompletableFuture<@Nullable Void> mine = hold;
            if (mine == null) {
                return;
            }
            hold = null;
            synchronized (held) {
                held.holds.removeIf(each -> each == mine);
                held.returned += givenBack ? 1 : 0;
            }
            mine.complete(null);
        }

        /**
         * Runs a task unless the rejection of the call is no violation: now, or when that is known. Ends this use.
         *
         * @return whether that is known now
         */
        boolean judge(Runnable violation) {
            List<CompletableFuture<?>> open = held.open();
            left = true;
            CompletableFuture.allOf(open.toArray(CompletableFuture<?>[]::new)).whenComplete((any, failure) -> {
                try {
                    if (held.returned() == before) {
                        violation.run();
                    }
                } finally {
                    forget();
                }
            });
            return open.isEmpty();
        }

        /** Ends this use, unless it is judged. */
        void leave() {
            decided(false);
            if (!left) {
                left = true;
                forget();
            }
        }

        private void forget() {
            ALL.computeIfPresent(budget, (same, used) -> --used.calls == 0 ? null : used);
        }
    }
}
