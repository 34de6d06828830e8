package io.ratelimited.benchmarks.overload;

import com.netflix.concurrency.limits.Limiter;
import com.netflix.concurrency.limits.limit.AIMDLimit;
import com.netflix.concurrency.limits.limit.Gradient2Limit;
import com.netflix.concurrency.limits.limit.VegasLimit;
import com.netflix.concurrency.limits.limit.WindowedLimit;
import com.netflix.concurrency.limits.limiter.SimpleLimiter;
import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Call;
import io.ratelimited.core.End;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.overload.FoundLimitChange;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** Admits or refuses calls, and learns how they end. */
interface Gate {

    /** The most that any of the limits may admit. */
    int MOST = 1000;

    /** Told how a call has ended; null for a call that is refused. */
    @Nullable
    Consumer<End> enter(int rank);

    /** The limit now; 0 where there is none. */
    default double limit() {
        return 0;
    }

    /** Whether the gate finds out by itself which answers are late, or is told that they are losses. */
    default boolean knowsLate() {
        return false;
    }

    static Gate none() {
        return rank -> end -> {};
    }

    static Gate fixed(int limit) {
        int[] used = new int[1];
        return rank -> {
            if (used[0] >= limit) {
                return null;
            }
            used[0]++;
            return end -> used[0]--;
        };
    }

    /**
     * The limit that finds itself.
     *
     * @param lateNanos 0 for a limit that is not told when an answer is worth nothing
     */
    static Gate ours(Timeline timeline, long lateNanos, List<String> priorities) {
        return ours(timeline, lateNanos, priorities, change -> {});
    }

    /** {@link #ours(Timeline, long, List)}, whose changes are observed. */
    static Gate ours(Timeline timeline, long lateNanos, List<String> priorities, Consumer<FoundLimitChange> observer) {
        Limit.Builder limit = Limit.of("simulated", Algorithm.ADAPTIVE).priorities(priorities);
        if (lateNanos > 0) {
            limit.lateAfter(Duration.ofNanos(lateNanos));
        }
        InMemoryRateLimiter limiter = new InMemoryRateLimiter(limit.build(), timeline.ticker(), 1);
        limiter.onLimitChange(observer);
        return new Gate() {
            @Override
            public @Nullable Consumer<End> enter(int rank) {
                Reservation call = limiter.reserve(Call.of(null, 1, 0, rank));
                return call.isRefused() ? null : call::release;
            }

            @Override
            public boolean knowsLate() {
                return true;
            }

            @Override
            public double limit() {
                return Objects.requireNonNull(limiter.foundLimit()).limit();
            }
        };
    }

    static Gate vegas(Timeline timeline) {
        return netflix(timeline, VegasLimit.newBuilder().maxConcurrency(MOST).build());
    }

    static Gate gradient(Timeline timeline) {
        return netflix(
                timeline,
                WindowedLimit.newBuilder()
                        .build(Gradient2Limit.newBuilder().maxConcurrency(MOST).build()));
    }

    static Gate aimd(Timeline timeline, long lateNanos) {
        return netflix(
                timeline,
                AIMDLimit.newBuilder()
                        .maxLimit(MOST)
                        .timeout(lateNanos, TimeUnit.NANOSECONDS)
                        .build());
    }

    @SuppressWarnings("deprecation") // no other door lets the clock be ours
    private static Gate netflix(Timeline timeline, com.netflix.concurrency.limits.Limit limit) {
        Supplier<Long> clock = timeline::now;
        SimpleLimiter<Object> limiter =
                SimpleLimiter.newBuilder().limit(limit).clock(clock).build();
        return new Gate() {
            @Override
            public @Nullable Consumer<End> enter(int rank) {
                Limiter.@Nullable Listener listener = limiter.acquire(this).orElse(null);
                return listener == null
                        ? null
                        : end -> {
                            switch (end) {
                                case ANSWERED -> listener.onSuccess();
                                case OVERLOADED -> listener.onDropped();
                                case FAILED, CANCELLED -> listener.onIgnore();
                            }
                        };
            }

            @Override
            public double limit() {
                return limit.getLimit();
            }
        };
    }
}
