package io.ratelimited.spring.internals.web;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Threads;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.internals.web.reactive.RateLimitWebFilter;
import java.time.Duration;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.core.task.TaskDecorator;
import org.springframework.mock.http.server.reactive.MockServerHttpRequest;
import org.springframework.mock.web.server.MockServerWebExchange;
import org.springframework.web.server.WebFilterChain;
import reactor.core.Disposable;
import reactor.core.publisher.Mono;

/** Clients disconnect while their request waits for its route, or for a thread after that. */
class DisconnectedWaiterTest {

    private final ManualTicker ticker = new ManualTicker();
    /** What goes on after a wait, when the test says so. */
    private final Queue<Runnable> threads = new ConcurrentLinkedQueue<>();

    private final AtomicInteger made = new AtomicInteger();

    private static Mono<Void> request(RateLimitWebFilter filter, WebFilterChain chain) {
        return filter.filter(MockServerWebExchange.from(MockServerHttpRequest.get("/")), chain);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aRequestThatIsNotMadeCostsNothing(boolean admitted) {
        RouteFilters.limited(
                        ticker,
                        "rate-limit.limits.place.rate=1/s",
                        "rate-limit.limits.place.policy=wait",
                        "rate-limit.limits.place.max-wait=2s")
                .withBean(TaskDecorator.class, () -> task -> () -> threads.add(task))
                .run(context -> {
                    RateLimits limits = context.getBean(RateLimits.class);
                    RateLimitWebFilter filter = RouteFilters.reactive(context, "place");
                    WebFilterChain chain = exchange -> Mono.fromRunnable(made::incrementAndGet);
                    request(filter, chain).block();
                    Disposable waiting = request(filter, chain).subscribe();
                    if (admitted) {
                        ticker.advance(Duration.ofSeconds(1));
                        Threads.until(() -> !threads.isEmpty());
                    }
                    waiting.dispose();
                    if (!admitted) {
                        ticker.advance(Duration.ofSeconds(1));
                    }
                    assertThat(limits.peek("place", null).remaining()).isEqualTo(1);
                    threads.forEach(Runnable::run);
                    assertThat(made).hasValue(1);
                });
    }

    @Test
    void aRequestThatIsMadeCostsItsPermits() {
        RouteFilters.limited(ticker, "rate-limit.limits.place.rate=1/s").run(context -> {
            Disposable called = request(
                            RouteFilters.reactive(context, "place"),
                            exchange -> Mono.<Void>never().doOnSubscribe(caller -> made.incrementAndGet()))
                    .subscribe();
            assertThat(made).hasValue(1);
            called.dispose();
            assertThat(context.getBean(RateLimits.class).peek("place", null).remaining())
                    .isZero();
        });
    }
}
