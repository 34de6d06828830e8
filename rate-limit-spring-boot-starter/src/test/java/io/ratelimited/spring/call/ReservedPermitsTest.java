package io.ratelimited.spring.call;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.Applications;
import io.ratelimited.spring.Contexts;
import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.ReservedPermits;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;

/** Permits that are taken by hand and may be given back. */
final class ReservedPermitsTest {

    private final ManualTicker ticker = new ManualTicker();
    private final AnnotationConfigApplicationContext context = Applications.start(
            ticker,
            new Class<?>[0],
            "rate-limit.limits.bucket.rate=3/h",
            "rate-limit.limits.log.rate=3/h",
            "rate-limit.limits.log.algorithm=sliding-log",
            "rate-limit.limits.window.rate=3/h",
            "rate-limit.limits.window.algorithm=fixed-window",
            "rate-limit.limits.queue.rate=1/s",
            "rate-limit.limits.queue.policy=wait",
            "rate-limit.limits.queue.max-wait=5s",
            "rate-limit.limits.flight.algorithm=concurrency",
            "rate-limit.limits.flight.max-concurrent=1");
    private final RateLimits limits = context.getBean(RateLimits.class);

    @AfterEach
    void stop() {
        context.close();
    }

    @ParameterizedTest
    @ValueSource(strings = {"bucket", "log", "window"})
    void whatIsCancelledIsThereAgainAndWhatIsClosedStaysSpent(String limit) {
        try (ReservedPermits cancelled = limits.reserve(limit, "ann", 2)) {
            assertThat(limits.peek(limit, "ann").remaining()).isEqualTo(1);
            cancelled.cancel();
            cancelled.cancel();
        }
        assertThat(limits.peek(limit, "ann").remaining()).isEqualTo(3);

        ReservedPermits closed = limits.reserve(limit, "ann", 2);
        closed.close();
        closed.cancel();

        assertThat(limits.peek(limit, "ann").remaining()).isEqualTo(1);
        assertThatThrownBy(() -> limits.reserve(limit, "ann", 2)).isInstanceOf(RateLimitExceededException.class);
        assertThat(limits.peek(limit, "ann").remaining()).isEqualTo(1);
        assertThat(limits.peek(limit, "bob").remaining()).isEqualTo(3);
    }

    @Test
    void aCallInFlightCountsUntilItIsClosedOrCancelled() {
        ReservedPermits first = limits.reserve("flight", null, 1);
        assertThatThrownBy(() -> limits.reserve("flight", null, 1)).isInstanceOf(RateLimitExceededException.class);
        first.close();
        ReservedPermits second = limits.reserve("flight", null, 1);
        second.cancel();
        limits.reserve("flight", null, 1).close();
    }

    @Test
    void aCancelledWaitGivesItsPermitBack() {
        limits.reserveAsync("queue", null, 1).join().close();
        CompletableFuture<ReservedPermits> waiting = limits.reserveAsync("queue", null, 1);
        assertThat(waiting).isNotDone();

        waiting.cancel(false);

        ticker.advance(Duration.ofSeconds(1));
        assertThat(limits.reserveAsync("queue", null, 1)).isCompleted();
    }

    @Test
    void anAsynchronousRefusalIsAFailedFuture() {
        limits.reserveAsync("log", "ann", 3).join().close();
        assertThat(limits.reserveAsync("log", "ann", 1))
                .isCompletedExceptionally()
                .failsWithin(Duration.ZERO)
                .withThrowableThat()
                .withCauseInstanceOf(RateLimitExceededException.class);
    }

    @Test
    void permitsLessThanOneAreAnErrorAndChangeNothing() {
        assertThatThrownBy(() -> limits.reserve("log", "ann", 0)).isInstanceOf(IllegalArgumentException.class);
        assertThat(limits.peek("log", "ann").remaining()).isEqualTo(3);
    }

    @Test
    void everythingGoesWhenNothingIsLimited() {
        Contexts.runner().withPropertyValues("rate-limit.enabled=false").run(off -> {
            RateLimits none = off.getBean(RateLimits.class);
            none.reserve("unknown", null, 1).close();
            none.reserveAsync("unknown", null, 1).join().cancel();
        });
    }
}
