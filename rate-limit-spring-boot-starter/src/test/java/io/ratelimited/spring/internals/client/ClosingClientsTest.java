package io.ratelimited.spring.internals.client;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.RateLimiterClosedException;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.Contexts;
import io.ratelimited.spring.autoconfigure.client.ClientRateLimitAutoConfiguration;
import java.net.URI;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;

/** Calls of clients that wait while their context closes, and in a hierarchy of contexts. */
class ClosingClientsTest {

    private final ManualTicker ticker = new ManualTicker();

    private ApplicationContextRunner runner(String... properties) {
        return Contexts.runner(ticker)
                .withConfiguration(AutoConfigurations.of(ClientRateLimitAutoConfiguration.class))
                .withPropertyValues("rate-limit.clients.partner.hosts=partner.example")
                .withPropertyValues(properties);
    }

    private static OutgoingRequest request(String path) {
        return new OutgoingRequest("GET", URI.create("https://partner.example" + path), name -> null);
    }

    @Test
    void callsThatWaitEndWhenTheContextCloses() {
        List<CompletableFuture<ClientCall>> calls = new ArrayList<>();
        runner(
                        "rate-limit.clients.partner.max-wait=1h",
                        "rate-limit.clients.other.hosts=other.example",
                        "rate-limit.clients.other.max-wait=1h",
                        "rate-limit.clients.other.limits=slow",
                        "rate-limit.limits.slow.rate=1/h")
                .run(context -> {
                    LimitedClients clients = context.getBean(LimitedClients.class);
                    LimitedClient client = clients.of(URI.create("https://partner.example"));
                    client.enter(request("/")).answered(429, name -> name.equals("Retry-After") ? List.of("10") : null);
                    calls.add(client.enterAsync(request("/"), null));
                    LimitedClient other = clients.of(URI.create("https://other.example"));
                    other.enter(request("/"));
                    calls.add(other.enterAsync(request("/"), null));
                    assertThat(calls).noneMatch(CompletableFuture::isDone);
                    context.close();
                    calls.add(client.enterAsync(request("/"), null));
                });
        assertThat(calls)
                .hasSize(3)
                .allSatisfy(call -> assertThat(call)
                        .failsWithin(Duration.ZERO)
                        .withThrowableThat()
                        .withCauseInstanceOf(RateLimiterClosedException.class));
        assertThat(ticker.sleeping()).isZero();
    }

    @Test
    void callsOfTheParentGoOnWaitingWhenAChildContextCloses() {
        runner("rate-limit.clients.partner.max-wait=1h").run(parent -> {
            LimitedClient client = parent.getBean(LimitedClients.class).of(URI.create("https://partner.example"));
            client.enter(request("/")).answered(429, name -> name.equals("Retry-After") ? List.of("10") : null);
            CompletableFuture<ClientCall> before = client.enterAsync(request("/"), null);
            runner("rate-limit.clients.partner.max-wait=1h").withParent(parent).run(child -> {
                assertThat(child.getBean(LimitedClients.class)).isSameAs(parent.getBean(LimitedClients.class));
                child.close();
            });
            CompletableFuture<ClientCall> after = client.enterAsync(request("/"), null);
            assertThat(List.of(before, after)).noneMatch(CompletableFuture::isDone);
            ticker.advance(Duration.ofSeconds(10));
            before.join().answered(200, name -> null);
            assertThat(after).isCompleted();
        });
    }
}
