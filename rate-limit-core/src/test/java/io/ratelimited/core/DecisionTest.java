package io.ratelimited.core;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.testing.ManualTicker;
import java.time.Duration;
import org.junit.jupiter.api.Test;

/** What a caller is told. */
class DecisionTest {

    private static final String KEY = "user-4711@example.org";

    private final ManualTicker ticker = new ManualTicker();
    private final RateLimiter limiter = new InMemoryRateLimiter(
            Limit.of("login", Algorithm.TOKEN_BUCKET).rate("1/s").burst(2).build(), ticker, 10);

    @Test
    void anAdmittedCallIsToldWhatIsLeft() {
        Decision decision = limiter.reserve(KEY, 1, 0).decision();
        assertThat(decision)
                .isEqualTo(new Decision(
                        "login", true, Duration.ZERO, null, false, 1, Duration.ofSeconds(1), Decision.Source.MEMORY));
    }

    @Test
    void aCallThatWaitsIsToldHowLong() {
        assertThat(limiter.tryAcquire(KEY, 2)).isTrue();
        Decision decision =
                limiter.reserve(KEY, 2, Duration.ofSeconds(2).toNanos()).decision();
        assertThat(decision.admitted()).isTrue();
        assertThat(decision.waitTime()).isEqualTo(Duration.ofSeconds(2));
        assertThat(decision.retryAfter()).isNull();
        assertThat(decision.remaining()).isZero();
        assertThat(decision.reset()).isEqualTo(Duration.ofSeconds(4));
    }

    @Test
    void aRefusalNamesTheLimitAndTheRetryButNeverTheKey() {
        assertThat(limiter.tryAcquire(KEY, 2)).isTrue();
        RateLimitExceededException refusal =
                catchThrowableOfType(RateLimitExceededException.class, () -> limiter.acquire(KEY, 1, 0));
        assertThat(refusal).hasMessage("Rate limit 'login' exceeded: retry after 1s");
        assertThat(refusal.limit()).isEqualTo("login");
        assertThat(refusal.decision().retryAfter()).isEqualTo(Duration.ofSeconds(1));
        assertThat(refusal.decision().toString()).doesNotContain(KEY);
        assertThat(refusal.toString()).doesNotContain(KEY);
    }

    @Test
    void theTimeOfARefusalIsRoundedUpToTheMillisecond() {
        assertThat(limiter.tryAcquire(KEY, 2)).isTrue();
        ticker.advance(Duration.ofNanos(886_601_909));
        RateLimitExceededException refusal =
                catchThrowableOfType(RateLimitExceededException.class, () -> limiter.acquire(KEY, 1, 0));
        assertThat(refusal.decision().retryAfter()).isEqualTo(Duration.ofNanos(113_398_091));
        assertThat(refusal).hasMessage("Rate limit 'login' exceeded: retry after 0.114s");
    }

    @Test
    void aRefusalForEverSaysSo() {
        RateLimitExceededException refusal =
                catchThrowableOfType(RateLimitExceededException.class, () -> limiter.acquire(KEY, 3, Long.MAX_VALUE));
        assertThat(refusal)
                .hasMessage("Rate limit 'login' exceeded: the call needs more permits than the limit can ever admit");
        assertThat(refusal.decision().never()).isTrue();
        assertThat(refusal.decision().retryAfter()).isNull();
    }

    @Test
    void aRefusalThatCannotTellATimeTellsNone() {
        RateLimiter flights = new InMemoryRateLimiter(
                Limit.of("flights", Algorithm.CONCURRENCY).maxConcurrent(1).build());
        assertThat(flights.reserve(null, 1, 0).isRefused()).isFalse();
        RateLimitExceededException refusal =
                catchThrowableOfType(RateLimitExceededException.class, () -> flights.acquire(null, 1, 0));
        assertThat(refusal).hasMessage("Rate limit 'flights' exceeded");
        assertThat(refusal.decision().never()).isFalse();
    }

    @Test
    void aRefusalHasNoStackTraceAndKeepsNoSuppressed() {
        RateLimitExceededException refusal = new RateLimitExceededException(limiter.peek(KEY, 3, 0));
        refusal.addSuppressed(new IllegalStateException());
        assertThat(refusal.getStackTrace()).isEmpty();
        assertThat(refusal.getSuppressed()).isEmpty();
    }
}
