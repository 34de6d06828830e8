package io.ratelimited.core;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.several.AllOf;
import io.ratelimited.core.several.Claim;
import io.ratelimited.core.testing.ManualTicker;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;

/** What becomes of waits when their limiter is closed, beyond what {@link RateLimiterContract} states. */
class ClosedLimiterTest {

    private static final long HOUR = 3_600_000_000_000L;

    private final ManualTicker ticker = new ManualTicker();

    private InMemoryRateLimiter limiter(Limit.Builder limit) {
        return new InMemoryRateLimiter(limit.build(), ticker, 100);
    }

    private InMemoryRateLimiter bucket() {
        return limiter(Limit.of("a", Algorithm.TOKEN_BUCKET).rate("1/s").burst(1));
    }

    @Test
    void permitsOfAWaitComeBack() {
        InMemoryRateLimiter limiter = bucket();
        assertThat(limiter.tryAcquire(null, 1)).isTrue();
        CompletableFuture<Boolean> first = limiter.reserve(null, 1, HOUR).awaitAsync();
        CompletableFuture<Boolean> second = limiter.reserve(null, 1, HOUR).awaitAsync();
        limiter.close();
        assertThatThrownBy(first::join)
                .isInstanceOf(CompletionException.class)
                .hasCauseInstanceOf(RateLimiterClosedException.class);
        assertThat(second).isCompletedExceptionally();
        assertThat(ticker.sleeping()).isZero();
        assertThat(limiter.waiting()).isZero();
        ticker.advance(Duration.ofSeconds(2));
        assertThat(limiter.tryAcquire(null, 1)).isTrue();
    }

    @Test
    void aSleeperIsWokenUpAndSeesNoInterrupt() throws Exception {
        for (int i = 0; i < 100; i++) {
            InMemoryRateLimiter limiter = new InMemoryRateLimiter(
                    Limit.of("a", Algorithm.TOKEN_BUCKET).rate("1/m").burst(1).build());
            limiter.tryAcquire(null, 1);
            AtomicReference<Object> end = new AtomicReference<>();
            Thread thread = new Thread(() -> {
                try {
                    limiter.reserve(null, 1, HOUR).await();
                } catch (RateLimiterClosedException ex) {
                    end.set(Thread.currentThread().isInterrupted());
                } catch (InterruptedException ex) {
                    end.set(ex);
                }
            });
            thread.start();
            while (limiter.waiting() < 1) {
                Thread.onSpinWait();
            }
            limiter.close();
            thread.join(20_000);
            assertThat(end).hasValue(false);
            assertThat(limiter.waiting()).isZero();
        }
    }

    @Test
    void callsThatMayGoAtOnceStillGoAndOthersDoNotWait() {
        InMemoryRateLimiter limiter = bucket();
        limiter.close();
        assertThat(limiter.tryAcquire(null, 1)).isTrue();
        assertThatExceptionOfType(RateLimiterClosedException.class).isThrownBy(() -> limiter.acquire(null, 1, HOUR));
        assertThat(limiter.reserve(null, 1, HOUR).awaitAsync()).isCompletedExceptionally();
        assertThat(ticker.sleeping()).isZero();
    }

    @Test
    void aCallInFlightStaysInFlight() {
        InMemoryRateLimiter limiter =
                limiter(Limit.of("a", Algorithm.CONCURRENCY).maxConcurrent(1));
        Reservation flying = limiter.reserve("k", 1, 0);
        CompletableFuture<Boolean> queued = limiter.reserve("k", 1, HOUR).awaitAsync();
        limiter.close();
        assertThat(queued).isCompletedExceptionally();
        assertThat(limiter.peek("k", 1, 0).admitted()).isFalse();
        flying.release();
        assertThat(limiter.peek("k", 1, 0).admitted()).isTrue();
        assertThat(limiter.keys()).isZero();
    }

    @Test
    void aJointWaitEndsAndGivesEverythingBack() throws Exception {
        InMemoryRateLimiter closing = bucket();
        InMemoryRateLimiter other = bucket();
        closing.tryAcquire(null, 1);
        other.tryAcquire(null, 1);
        Reservation joint = AllOf.reserve(List.of(Claim.of(closing, null, 1, HOUR), Claim.of(other, null, 1, HOUR)));
        CompletableFuture<Boolean> waiting = joint.awaitAsync();
        closing.close();
        assertThat(waiting).isCompletedExceptionally();
        assertThat(other.waiting()).isZero();
        ticker.advance(Duration.ofSeconds(1));
        assertThat(other.tryAcquire(null, 1)).isTrue();
    }
}
