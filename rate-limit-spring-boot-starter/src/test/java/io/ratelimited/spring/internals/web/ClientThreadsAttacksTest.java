package io.ratelimited.spring.internals.web;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.net.httpserver.HttpServer;
import io.ratelimited.core.Policy;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Threads;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.TestLimits;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.http.HttpResponse;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.core.env.Environment;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.client.RestClient;

/** Calls of a client and of limited methods that wait together: half of the threads of a server stay free. */
@Tag("slow")
class ClientThreadsAttacksTest {

    @ParameterizedTest
    @EnumSource(names = {"TOMCAT", "JETTY"})
    void callsToAPartnerThatPausesLeaveHalfOfTheThreadsToOthers(RunningServer.Kind kind) throws Exception {
        AtomicBoolean pauses = new AtomicBoolean(true);
        HttpServer partner = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        partner.createContext("/", exchange -> {
            if (pauses.getAndSet(false)) {
                exchange.getResponseHeaders().add("Retry-After", "4");
                exchange.sendResponseHeaders(429, -1);
            } else {
                exchange.sendResponseHeaders(204, -1);
            }
            exchange.close();
        });
        partner.start();
        int port = partner.getAddress().getPort();
        try (RunningServer server = kind.start(
                List.of(App.class),
                "server.tomcat.threads.max=16",
                "server.jetty.threads.max=16",
                "partner=http://localhost:" + port,
                "rate-limit.clients.partner.hosts=localhost:" + port,
                "rate-limit.clients.partner.max-wait=1h")) {
            assertThat(server.get("/call").body()).isEqualTo("429");
            List<CompletableFuture<HttpResponse<String>>> slow = new ArrayList<>();
            for (int i = 0; i < 5; i++) {
                slow.add(server.getAsync("/slow?user=u"));
            }
            // One goes, and four wait.
            RateLimiter limiter =
                    TestLimits.of(server.context).configured("slow").limiter();
            Threads.until(() -> done(slow) == 1 && limiter.waiting() == 4);
            List<CompletableFuture<HttpResponse<String>>> calls = new ArrayList<>();
            for (int i = 0; i < 20; i++) {
                calls.add(server.getAsync("/call"));
            }
            Threads.until(() -> done(calls) == 16);
            assertThat(server.get("/free").statusCode()).isEqualTo(200);
            assertThat(server.get("/slow?user=v").statusCode()).isEqualTo(200);
            assertThat(server.get("/slow?user=v").statusCode()).isEqualTo(429);

            Threads.until(() -> {
                server.ticker().advanceNanos(60_000_000_000L);
                return done(calls) == 20 && done(slow) == 5;
            });
            assertThat(server.get("/call").body()).isEqualTo("204");
        } finally {
            partner.stop(0);
        }
    }

    private static long done(List<CompletableFuture<HttpResponse<String>>> calls) {
        return calls.stream().filter(CompletableFuture::isDone).count();
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @Import(Api.class)
    static class App {

        @Bean
        ManualTicker ticker() {
            return new ManualTicker();
        }
    }

    @RestController
    static class Api {

        private final RestClient partner;

        Api(RestClient.Builder builder, Environment environment) {
            partner =
                    builder.baseUrl(environment.getRequiredProperty("partner")).build();
        }

        @GetMapping("/call")
        String call() {
            return partner.get()
                    .uri("/")
                    .exchange((request, response) ->
                            String.valueOf(response.getStatusCode().value()));
        }

        @GetMapping("/slow")
        @RateLimited(name = "slow", rate = "1/m", key = "#user", policy = Policy.WAIT, maxWait = "1h")
        String slow(String user) {
            return "slow";
        }

        @GetMapping("/free")
        String free() {
            return "free";
        }
    }
}
