package io.ratelimited.core.internals.memory.concurrency;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Call;
import io.ratelimited.core.DelegatingTicker;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.Threads;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.several.AllOf;
import io.ratelimited.core.several.Claim;
import io.ratelimited.core.testing.ManualTicker;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** P2 while other calls are admitted and complete: the permits of a share are either free for it or in use, never both. */
@Tag("slow")
class SharesUnderThreadsTest {

    private static final int CRITICAL = 0;
    private static final int BATCH = 1;
    private static final int THREADS = 4;
    private static final int CALLS = 30_000;

    /** Half of the permits for each class, as long as neither has more calls than that. */
    private static Limit limit(Algorithm algorithm) {
        return Limit.of("shares", algorithm)
                .maxConcurrent(THREADS)
                .priorities(List.of("critical", "batch"))
                .shares(Map.of("batch", 0.5))
                .build();
    }

    private static RateLimiter limiter(Algorithm algorithm) {
        return new InMemoryRateLimiter(limit(algorithm), new ManualTicker(), 10);
    }

    /** A clock that runs code of the test when it is read, which is in the middle of a decision. */
    private static final class WatchedTicker extends DelegatingTicker {

        private Runnable reading = () -> {};

        WatchedTicker() {
            super(new ManualTicker());
        }

        /** The code does not run within itself. */
        void onReading(Runnable code) {
            reading = () -> {
                reading = () -> {};
                code.run();
                onReading(code);
            };
        }

        @Override
        public long nanos() {
            reading.run();
            return super.nanos();
        }
    }

    @Test
    void permitsAreFreeInTheMiddleOfAnAdmission() {
        List<Boolean> free = new ArrayList<>();
        whileABatchCallIsAdmitted(
                limiter -> free.add(limiter.peek(Call.of(null, 1, 0, CRITICAL)).admitted()));
        assertThat(free).isNotEmpty().doesNotContain(false);
    }

    @Test
    void aCallIsAdmittedInTheMiddleOfAnAdmission() {
        List<CompletableFuture<Boolean>> turns = new ArrayList<>();
        whileABatchCallIsAdmitted(limiter -> {
            if (turns.isEmpty()) {
                turns.add(limiter.reserve(Call.of(null, 1, 1_000, CRITICAL)).awaitAsync());
            }
        });
        assertThat(turns).singleElement().satisfies(turn -> assertThat(turn).isCompletedWithValue(true));
    }

    /** Two permits are for batch calls, and one of the others is in use. */
    private static void whileABatchCallIsAdmitted(Consumer<RateLimiter> code) {
        WatchedTicker ticker = new WatchedTicker();
        RateLimiter limiter = new InMemoryRateLimiter(limit(Algorithm.ADAPTIVE), ticker, 10);
        limiter.reserve(Call.of(null, 1, 0, CRITICAL));
        ticker.onReading(() -> code.accept(limiter));
        assertThat(limiter.reserve(Call.of(null, 1, 0, BATCH)).isRefused()).isFalse();
    }

    @ParameterizedTest
    @EnumSource(names = {"CONCURRENCY", "ADAPTIVE"})
    void callsWithinTheirPermitsAreNeverRejected(Algorithm algorithm) throws Exception {
        RateLimiter limiter = limiter(algorithm);
        assertThat(Threads.sum(THREADS, thread -> {
                    long rejected = 0;
                    for (int i = 0; i < CALLS; i++) {
                        Reservation call = limiter.reserve(Call.of(null, 1, 0, thread % 2));
                        rejected += call.isRefused() ? 1 : 0;
                        call.release();
                    }
                    return rejected;
                }))
                .isZero();
        assertThat(limiter.peek(null, 1, 0).remaining()).isEqualTo(THREADS);
    }

    @ParameterizedTest
    @EnumSource(names = {"CONCURRENCY", "ADAPTIVE"})
    void callsWithinTheirPermitsNeverWait(Algorithm algorithm) throws Exception {
        RateLimiter limiter = limiter(algorithm);
        assertThat(Threads.sum(THREADS, thread -> {
                    long delayed = 0;
                    for (int i = 0; i < CALLS; i++) {
                        Reservation call = limiter.reserve(Call.of(null, 1, 1_000, thread % 2));
                        delayed += call.awaitAsync().isDone() ? 0 : 1;
                        call.cancel();
                    }
                    return delayed;
                }))
                .isZero();
        assertThat(limiter.peek(null, 1, 0).remaining()).isEqualTo(THREADS);
    }

    @ParameterizedTest
    @EnumSource(names = {"CONCURRENCY", "ADAPTIVE"})
    void peekReportsPermitsWhileOthersTakeTheirs(Algorithm algorithm) throws Exception {
        RateLimiter limiter = limiter(algorithm);
        assertThat(Threads.sum(THREADS, thread -> {
                    long rejected = 0;
                    for (int i = 0; i < CALLS; i++) {
                        rejected +=
                                limiter.peek(Call.of(null, 1, 0, thread % 2)).admitted() ? 0 : 1;
                        limiter.reserve(Call.of(null, 1, 0, thread % 2)).release();
                    }
                    return rejected;
                }))
                .isZero();
    }

    @ParameterizedTest
    @EnumSource(names = {"CONCURRENCY", "ADAPTIVE"})
    void callsUnderSeveralLimitsAreNeverRejectedWithinTheirPermits(Algorithm algorithm) throws Exception {
        RateLimiter limiter = limiter(algorithm);
        RateLimiter other = new InMemoryRateLimiter(
                Limit.of("other", Algorithm.CONCURRENCY).maxConcurrent(THREADS).build(), new ManualTicker(), 10);
        assertThat(Threads.sum(THREADS, thread -> {
                    long rejected = 0;
                    for (int i = 0; i < CALLS; i++) {
                        Reservation call = AllOf.reserve(
                                List.of(Claim.of(other, null, 1, 0), Claim.of(limiter, null, 1, 0, thread % 2)));
                        rejected += call.isRefused() ? 1 : 0;
                        call.release();
                    }
                    return rejected;
                }))
                .isZero();
        assertThat(limiter.peek(null, 1, 0).remaining()).isEqualTo(THREADS);
    }

    /** Calls that were admitted without shares complete under them, and the reverse. */
    @ParameterizedTest
    @EnumSource(names = {"CONCURRENCY", "ADAPTIVE"})
    void noPermitOfAShareIsLostWhileSharesComeAndGo(Algorithm algorithm) throws Exception {
        Limit limit = limit(algorithm);
        Limit unshared = limit.toBuilder().shares(Map.of()).build();
        Limit plain = unshared.toBuilder().priorities(List.of()).build();
        RateLimiter limiter = new InMemoryRateLimiter(unshared, new ManualTicker(), 10);
        Threads.run(THREADS, thread -> {
            for (int i = 0; i < CALLS / 20; i++) {
                if (thread < 2 && i % 20 == 0) {
                    limiter.update(
                            switch ((i / 20 + thread) % 3) {
                                case 0 -> limit;
                                case 1 -> unshared;
                                default -> plain;
                            });
                }
                Reservation call = limiter.reserve(Call.of(null, 1, 0, i % 2));
                Reservation waits = limiter.reserve(Call.of(null, 1, 1_000, (i + thread) % 2));
                call.release();
                waits.cancel();
            }
            return null;
        });
        limiter.update(limit);
        for (int round = 0; round < 2; round++) {
            List<Reservation> calls = new ArrayList<>();
            for (int rank : new int[] {CRITICAL, CRITICAL, BATCH, BATCH}) {
                calls.add(limiter.reserve(Call.of(null, 1, 0, rank)));
                if (calls.size() == 2) {
                    assertThat(limiter.peek(Call.of(null, 1, 0, CRITICAL)).admitted())
                            .isFalse();
                }
            }
            assertThat(calls).noneMatch(Reservation::isRefused);
            calls.forEach(Reservation::release);
        }
    }
}
