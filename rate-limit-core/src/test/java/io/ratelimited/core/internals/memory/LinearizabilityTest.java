package io.ratelimited.core.internals.memory;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Call;
import io.ratelimited.core.End;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.internals.memory.Cell.Grant;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.testing.ManualTicker;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.jetbrains.kotlinx.lincheck.Actor;
import org.jetbrains.kotlinx.lincheck.execution.ExecutionScenario;
import org.jetbrains.lincheck.datastructures.IntGen;
import org.jetbrains.lincheck.datastructures.ModelCheckingOptions;
import org.jetbrains.lincheck.datastructures.Operation;
import org.jetbrains.lincheck.datastructures.Param;
import org.jetbrains.lincheck.datastructures.StressOptions;
import org.jetbrains.lincheck.datastructures.ThreadIdGen;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * P12: whatever small number of threads do to a cell at once, there is an order in which one thread could have done it.
 * Lincheck makes up the histories and explores their interleavings; its sequential model is the same class used by one
 * thread, which the conformance cases and the twins hold to its meaning. A time is an argument of a step, so that
 * histories also hold stale ones. {@code -Dlincheck.scale=20} looks at twenty times as many histories.
 */
@Tag("long")
@Tag("once")
@Tag("slow")
class LinearizabilityTest {

    /** Random histories of each kind. */
    int histories() {
        return Integer.getInteger("lincheck.scale", 1);
    }

    static Stream<Class<?>> kinds() {
        return Stream.of(
                TokenBucketHistory.class,
                SmoothBurstyHistory.class,
                LeakyBucketHistory.class,
                FixedWindowHistory.class,
                WarmUpHistory.class,
                SlidingWindowHistory.class,
                SlidingLogHistory.class,
                TurnHistory.class,
                ChangeOfBurstHistory.class,
                ChangeOfAlgorithmHistory.class,
                ChangeOfConcurrencyHistory.class,
                AdaptiveClassesHistory.class);
    }

    /** A cell of one word, one of an immutable state, one with a guard. The proofs do it for every kind. */
    static Stream<Class<?>> interleaved() {
        return Stream.of(TokenBucketHistory.class, WarmUpHistory.class, SlidingLogHistory.class);
    }

    @ParameterizedTest
    @MethodSource("interleaved")
    void everyInterleavingEqualsSomeOrder(Class<?> history) {
        new ModelCheckingOptions()
                .iterations(histories())
                .invocationsPerIteration(History.class.isAssignableFrom(history) ? 40 : 15)
                .threads(2)
                .actorsBefore(1)
                .actorsPerThread(3)
                .actorsAfter(2)
                .check(history);
    }

    @ParameterizedTest
    @MethodSource("kinds")
    void whatThreeRealThreadsDoEqualsSomeOrder(Class<?> history) {
        new StressOptions()
                .iterations(histories())
                .invocationsPerIteration(200)
                .threads(3)
                .actorsBefore(1)
                .actorsPerThread(3)
                .actorsAfter(2)
                .check(history);
    }

    /** The one call in flight ends, and its cell with it, while another queues in that cell. */
    @Test
    void nobodyQueuesInACellThatIsGone() throws ReflectiveOperationException {
        Actor first = new Actor(TurnHistory.class.getMethod("queue", int.class), List.of(0));
        Actor second = new Actor(TurnHistory.class.getMethod("queue", int.class), List.of(1));
        Actor end = new Actor(TurnHistory.class.getMethod("end", int.class), List.of(0));
        Actor ask = new Actor(TurnHistory.class.getMethod("ask"), List.of());
        new ModelCheckingOptions()
                .iterations(0)
                .invocationsPerIteration(80)
                .addCustomScenario(new ExecutionScenario(
                        List.of(first), List.of(List.of(end), List.of(second)), List.of(ask), null))
                .check(TurnHistory.class);
    }

    /** A cell under calls that take, wait and cancel. One permit falls due every tick, or 3 in a window of 3 ticks. */
    @Param(name = "permits", gen = IntGen.class, conf = "1:3")
    @Param(name = "now", gen = IntGen.class, conf = "0:3")
    abstract static class History {

        private final Cell cell;
        /** In nanoseconds. */
        private final long tick;

        private final Grant[] last = new Grant[8];

        History(Limit limit) {
            this(limit, 10);
        }

        History(Limit limit, long tick) {
            this.tick = tick;
            cell = CellFactory.parameters(limit, 0, 0).initial(0);
        }

        @Operation
        public long take(@Param(name = "permits") int permits, @Param(name = "now") int now) {
            return cell.reserve(permits, now * tick, 0, null);
        }

        @Operation
        public long wait(
                @Param(gen = ThreadIdGen.class) int thread,
                @Param(name = "permits") int permits,
                @Param(name = "now") int now) {
            Grant reservation = new Grant(permits);
            long wait = cell.reserve(permits, now * tick, 10 * tick, reservation);
            if (wait >= 0) {
                last[thread] = reservation;
            }
            return wait;
        }

        @Operation
        public void cancel(@Param(gen = ThreadIdGen.class) int thread, @Param(name = "now") int now) {
            if (last[thread] != null) {
                cell.giveBack(last[thread], last[thread].permits(), now * tick);
                last[thread] = null;
            }
        }

        @Operation
        public boolean charge(@Param(name = "permits") int permits, @Param(name = "now") int now) {
            return cell.charge(permits, now * tick);
        }

        @Operation
        public long ask(@Param(name = "permits") int permits, @Param(name = "now") int now) {
            return cell.peek(permits, now * tick, 0);
        }

        @Operation
        public long remaining(@Param(name = "now") int now) {
            return cell.remaining(now * tick);
        }
    }

    public static class TokenBucketHistory extends History {
        public TokenBucketHistory() {
            super(Limit.of("a", Algorithm.TOKEN_BUCKET).rate("1/10ns").burst(3).build());
        }
    }

    public static class SmoothBurstyHistory extends History {
        public SmoothBurstyHistory() {
            super(Limit.of("a", Algorithm.SMOOTH_BURSTY).rate("1/10ns").burst(2).build());
        }
    }

    public static class LeakyBucketHistory extends History {
        public LeakyBucketHistory() {
            super(Limit.of("a", Algorithm.LEAKY_BUCKET).rate("1/10ns").burst(3).build());
        }
    }

    public static class FixedWindowHistory extends History {
        public FixedWindowHistory() {
            super(Limit.of("a", Algorithm.FIXED_WINDOW).rate("3/3ms").build(), 1_000_000);
        }
    }

    public static class WarmUpHistory extends History {
        public WarmUpHistory() {
            super(Limit.of("a", Algorithm.WARM_UP)
                    .rate("1/10ns")
                    .warmup(Duration.ofNanos(40))
                    .build());
        }
    }

    public static class SlidingWindowHistory extends History {
        public SlidingWindowHistory() {
            super(Limit.of("a", Algorithm.SLIDING_WINDOW)
                    .rate("3/30ns")
                    .slots(3)
                    .build());
        }
    }

    public static class SlidingLogHistory extends History {
        public SlidingLogHistory() {
            super(Limit.of("a", Algorithm.SLIDING_LOG).rate("3/30ns").build());
        }
    }

    /** One call may be in flight; the others queue, and the cell of the key comes and goes with them. */
    public static class TurnHistory {

        private final InMemoryRateLimiter limiter = new InMemoryRateLimiter(
                Limit.of("a", Algorithm.CONCURRENCY).maxConcurrent(1).build(), new ManualTicker(), 1);
        private final @Nullable Reservation[] calls = new Reservation[8];

        @Operation
        public boolean queue(@Param(gen = ThreadIdGen.class) int thread) {
            if (calls[thread] == null) {
                calls[thread] = limiter.reserve("key", 1, TimeUnit.HOURS.toNanos(1));
            }
            return goes(thread);
        }

        @Operation
        public boolean goes(@Param(gen = ThreadIdGen.class) int thread) {
            Reservation call = calls[thread];
            return call != null && call.awaitAsync().getNow(false);
        }

        @Operation
        public boolean ask() {
            return limiter.peek("key", 1, 0).admitted();
        }

        @Operation
        public void end(@Param(gen = ThreadIdGen.class) int thread) {
            if (calls[thread] != null) {
                calls[thread].cancel();
                calls[thread] = null;
            }
        }
    }

    /** Calls of a limiter whose limit changes under them, on a clock that stands. */
    @Param(name = "permits", gen = IntGen.class, conf = "1:4")
    abstract static class ChangeHistory {

        final InMemoryRateLimiter limiter;
        private final Reservation[] last = new Reservation[8];

        ChangeHistory(Limit limit) {
            limiter = new InMemoryRateLimiter(limit, new ManualTicker(), 10);
        }

        @Operation
        public boolean take(@Param(name = "permits") int permits) {
            return limiter.tryAcquire(null, permits);
        }

        @Operation
        public long reserve(@Param(gen = ThreadIdGen.class) int thread, @Param(name = "permits") int permits) {
            Reservation reservation = limiter.reserve(null, permits, 1_000);
            if (reservation.isRefused()) {
                return -1;
            }
            last[thread] = reservation;
            return reservation.waitNanos();
        }

        @Operation
        public void cancel(@Param(gen = ThreadIdGen.class) int thread) {
            if (last[thread] != null) {
                last[thread].cancel();
            }
        }

        @Operation
        public void settle(@Param(gen = ThreadIdGen.class) int thread, @Param(name = "permits") int permits) {
            if (last[thread] != null) {
                last[thread].settle(2L * (permits - 1));
            }
        }

        @Operation
        public long remaining() {
            return limiter.peek(null, 1, 0).remaining();
        }

        @Operation
        public void reset() {
            limiter.reset(null);
        }
    }

    public static class ChangeOfBurstHistory extends ChangeHistory {

        private static final Limit[] CHOICE = IntStream.rangeClosed(1, 3)
                .mapToObj(size -> Limit.of("a", Algorithm.TOKEN_BUCKET)
                        .rate(size + "/20ns")
                        .burst(size * 2L)
                        .build())
                .toArray(Limit[]::new);

        public ChangeOfBurstHistory() {
            super(Limit.of("a", Algorithm.TOKEN_BUCKET).rate("1/10ns").burst(4).build());
        }

        @Operation
        public void update(@Param(gen = IntGen.class, conf = "0:2") int choice) {
            limiter.update(CHOICE[choice]);
        }
    }

    public static class ChangeOfAlgorithmHistory extends ChangeHistory {

        private static final Limit[] CHOICE = Stream.of(
                        Algorithm.TOKEN_BUCKET, Algorithm.SLIDING_LOG, Algorithm.LEAKY_BUCKET, Algorithm.SLIDING_WINDOW)
                .map(algorithm -> Limit.of("a", algorithm).rate("4/40ns").build())
                .toArray(Limit[]::new);

        public ChangeOfAlgorithmHistory() {
            super(Limit.of("a", Algorithm.SLIDING_LOG).rate("4/40ns").build());
        }

        @Operation
        public void update(@Param(gen = IntGen.class, conf = "0:3") int choice) {
            limiter.update(CHOICE[choice]);
        }
    }

    /** Never above the limit, whatever the classes of the calls are, and while its bound changes. */
    public static class AdaptiveClassesHistory {

        private static final Limit[] CHOICE = IntStream.rangeClosed(0, 3)
                .mapToObj(most -> Limit.of("a", Algorithm.ADAPTIVE)
                        .maxConcurrent(most)
                        .priorities(List.of("good", "bad"))
                        .build())
                .toArray(Limit[]::new);

        private final InMemoryRateLimiter limiter = new InMemoryRateLimiter(CHOICE[2], new ManualTicker(), 1);
        private final Reservation[] mine = new Reservation[8];

        @Operation
        public boolean take(
                @Param(gen = ThreadIdGen.class) int thread, @Param(gen = IntGen.class, conf = "0:1") int rank) {
            if (mine[thread] == null) {
                Reservation call = limiter.reserve(Call.of(null, 1, 0, rank));
                mine[thread] = call.isRefused() ? null : call;
            }
            return mine[thread] != null;
        }

        @Operation
        public void end(@Param(gen = ThreadIdGen.class) int thread) {
            if (mine[thread] != null) {
                mine[thread].release(End.ANSWERED);
                mine[thread] = null;
            }
        }

        @Operation
        public void update(@Param(gen = IntGen.class, conf = "1:3") int most) {
            limiter.update(CHOICE[most]);
        }
    }

    public static class ChangeOfConcurrencyHistory {

        private static final Limit[] CHOICE = IntStream.rangeClosed(0, 3)
                .mapToObj(most ->
                        Limit.of("a", Algorithm.CONCURRENCY).maxConcurrent(most).build())
                .toArray(Limit[]::new);

        private final InMemoryRateLimiter limiter = new InMemoryRateLimiter(CHOICE[1], new ManualTicker(), 1);
        private final Reservation[] mine = new Reservation[8];

        @Operation
        public boolean take(@Param(gen = ThreadIdGen.class) int thread) {
            if (mine[thread] == null) {
                Reservation call = limiter.reserve("key", 1, 0);
                mine[thread] = call.isRefused() ? null : call;
            }
            return mine[thread] != null;
        }

        @Operation
        public void end(@Param(gen = ThreadIdGen.class) int thread) {
            if (mine[thread] != null) {
                mine[thread].release();
                mine[thread] = null;
            }
        }

        @Operation
        public void update(@Param(gen = IntGen.class, conf = "0:3") int most) {
            limiter.update(CHOICE[most]);
        }
    }
}
