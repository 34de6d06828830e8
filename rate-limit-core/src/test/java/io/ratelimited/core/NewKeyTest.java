package io.ratelimited.core;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.memory.InMemoryRateLimiter;
import java.time.Duration;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** The first call of a key is decided as if its cell had always been there, though making the cell takes time. */
class NewKeyTest {

    /** A clock that goes on whenever it is read, as every real one does. */
    private static final class RunningTicker implements Ticker {

        private long nanos = -50_000;

        @Override
        public long nanos() {
            return nanos += 1_000;
        }

        @Override
        public long epochNanos() {
            return nanos();
        }

        @Override
        public void sleepUntil(long deadline) {
            throw new AssertionError("a call slept until " + deadline);
        }

        @Override
        public Runnable schedule(long deadline, Runnable task) {
            throw new AssertionError("a call waited until " + deadline);
        }
    }

    static Stream<Limit> limits() {
        return Algorithm.all().stream()
                .filter(algorithm -> !algorithm.countsCallsInFlight())
                .map(algorithm -> {
                    Limit.Builder limit = Limit.of("first", algorithm).rate("1/s");
                    return algorithm == Algorithm.WARM_UP
                            ? limit.warmup(Duration.ofSeconds(10)).build()
                            : limit.build();
                });
    }

    @ParameterizedTest
    @MethodSource("limits")
    void theFirstCallOfAKeyIsAdmittedAtOnce(Limit limit) {
        RateLimiter limiter = new InMemoryRateLimiter(limit, new RunningTicker(), 10_000);
        for (int key = 0; key < 1_000; key++) {
            assertThat(limiter.tryAcquire("tried " + key, 1)).isTrue();
            assertThat(limiter.reserve("reserved " + key, 1, 1_000_000).waitNanos())
                    .isZero();
            assertThat(limiter.peek("unknown " + key, 1, 0).admitted()).isTrue();
            limiter.reset("tried " + key);
            assertThat(limiter.tryAcquire("tried " + key, 1)).isTrue();
        }
    }
}
