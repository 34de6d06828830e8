package io.ratelimited.spring.internals.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.Contexts;
import io.ratelimited.spring.TestLimits;
import io.ratelimited.spring.autoconfigure.client.ClientRateLimitAutoConfiguration;
import org.junit.jupiter.api.Test;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.restclient.autoconfigure.RestClientAutoConfiguration;
import org.springframework.web.client.ResourceAccessException;
import org.springframework.web.client.RestClient;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Schedulers;

/** An outgoing call that is rejected for a reason of ours blocks nobody. */
class NoViolationTest {

    @Test
    void aCallOfAClientThatMustNotSleepIsNone() {
        Contexts.runner(new ManualTicker())
                .withConfiguration(AutoConfigurations.of(
                        RestClientAutoConfiguration.class, ClientRateLimitAutoConfiguration.class))
                .withPropertyValues(
                        "rate-limit.limits.outgoing.rate=1/s",
                        "rate-limit.limits.outgoing.block=10m",
                        "rate-limit.clients.partner.hosts=127.0.0.1",
                        "rate-limit.clients.partner.limits=outgoing",
                        "rate-limit.clients.partner.key=host",
                        "rate-limit.clients.partner.policy=wait",
                        "rate-limit.clients.partner.max-wait=1s")
                .run(context -> {
                    TestLimits limits = TestLimits.of(context);
                    RestClient client = context.getBean(RestClient.Builder.class)
                            .baseUrl("http://127.0.0.1:1")
                            .build();
                    Runnable call = () -> client.get().retrieve().toBodilessEntity();
                    assertThatExceptionOfType(ResourceAccessException.class).isThrownBy(call::run);
                    assertThat(limits.peek("outgoing", "127.0.0.1").remaining()).isZero();
                    onEventLoop(call);
                    assertThat(limits.peek("outgoing", "127.0.0.1").blocked()).isFalse();
                });
    }

    private static void onEventLoop(Runnable call) {
        assertThatThrownBy(() -> Mono.fromRunnable(call)
                        .subscribeOn(Schedulers.parallel())
                        .toFuture()
                        .get())
                .hasRootCauseInstanceOf(RateLimitExceededException.class);
    }
}
