package io.ratelimited.spring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.testing.ManualTicker;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;

/** Kotlin's Flow, and keys of suspend functions. */
final class FlowCallsTests {

    private final ManualTicker ticker = new ManualTicker();
    private AnnotationConfigApplicationContext context;

    @BeforeEach
    void start() {
        context = Applications.start(
                ticker,
                new Class<?>[] {Journal.class, FlowService.class},
                "rate-limit.limits.rejecting.rate=1/s",
                "rate-limit.limits.waiting.rate=1/s",
                "rate-limit.limits.waiting.policy=wait",
                "rate-limit.limits.falling.rate=1/s",
                "rate-limit.limits.falling.key=#id");
    }

    @AfterEach
    void stop() {
        context.close();
    }

    private CompletableFuture<List<String>> call(String method, String id) {
        return SuspendServiceKt.callFlow(context.getBean(FlowService.class), method, id);
    }

    private static List<String> result(CompletableFuture<List<String>> call) {
        return call.orTimeout(20, TimeUnit.SECONDS).join();
    }

    @Test
    void flowIsDecidedWhenItIsCollectedAndBeforeItsMethodIsCalled() {
        FlowService service = context.getBean(FlowService.class);
        service.rejecting("never collected");
        service.rejecting("never collected");
        assertThat(context.getBean(Journal.class).bodies).isEmpty();
        assertThat(result(call("rejecting", "a"))).containsExactly("body a");
        assertThatThrownBy(() -> result(call("rejecting", "b"))).hasCauseInstanceOf(RateLimitExceededException.class);
    }

    @Test
    void suspendFunctionThatReturnsAFlowWaitsWithoutAThread() {
        assertThat(result(call("waiting", "a"))).containsExactly("body a");
        CompletableFuture<List<String>> second = call("waiting", "b");
        assertThat(second).isNotDone();
        assertThat(ticker.sleeping()).isEqualTo(1);
        ticker.advance(Duration.ofSeconds(1));
        assertThat(result(second)).containsExactly("body b");
    }

    @Test
    void keyOfASuspendFunctionIsReadFromItsParameters() {
        assertThat(result(call("keyed", "a"))).containsExactly("body a");
        assertThat(context.getBean(RateLimits.class).peek("falling", "a").remaining())
                .isZero();
    }
}
