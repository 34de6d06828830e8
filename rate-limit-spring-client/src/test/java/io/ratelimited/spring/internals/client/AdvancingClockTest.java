package io.ratelimited.spring.internals.client;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.testing.ManualTicker;
import java.net.URI;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** Calls that wait on a clock that advances by itself, as in the tests of applications: for a time, or for a response. */
class AdvancingClockTest {

    private static final Function<String, List<String>> SILENT = name -> null;

    private final ManualTicker ticker = new ManualTicker().autoAdvance();

    private void run(Consumer<LimitedClient> calls) {
        LimitedClientsContext.runner(
                        ticker,
                        "rate-limit.clients.partner.hosts=partner.example",
                        "rate-limit.clients.partner.max-wait=2h")
                .run(context -> {
                    LimitedClient client =
                            context.getBean(LimitedClients.class).of(URI.create("https://partner.example"));
                    ticker.restart();
                    calls.accept(client);
                    assertThat(ticker.sleeping()).as("alarms").isZero();
                });
    }

    private static CompletableFuture<ClientCall> call(LimitedClient client) {
        return client.enterAsync(
                new OutgoingRequest("GET", URI.create("https://partner.example/"), name -> null), null);
    }

    private static List<CompletableFuture<ClientCall>> fourCalls(LimitedClient client) {
        return Stream.generate(() -> call(client)).limit(4).toList();
    }

    private static Function<String, List<String>> quota(long remaining, long seconds) {
        return name -> switch (name) {
            case "RateLimit" -> List.of("\"x\";r=" + remaining + ";t=" + seconds);
            case "RateLimit-Policy" -> List.of("\"x\";q=100;w=3600");
            default -> null;
        };
    }

    private static final Function<String, List<String>> PAUSE =
            name -> name.equals("Retry-After") ? List.of("1") : null;

    @Test
    void afterAPauseTheOthersWaitForTheResponse() {
        run(client -> {
            call(client).join().answered(429, PAUSE);
            List<CompletableFuture<ClientCall>> four = fourCalls(client);
            assertThat(four.get(0)).as("the one that is sent alone").isCompleted();
            assertThat(four.subList(1, 4)).noneMatch(CompletableFuture::isDone);
            assertThat(ticker.elapsed()).isEqualTo(Duration.ofSeconds(1));
            four.get(0).join().answered(200, SILENT);
            assertThat(four).allMatch(call -> call.isDone() && !call.isCompletedExceptionally());
            assertThat(ticker.elapsed()).isEqualTo(Duration.ofSeconds(1));
        });
    }

    @Test
    void afterAQuotaIsOverTheOthersWaitForTheResponse() {
        run(client -> {
            call(client).join().answered(200, quota(0, 31_536_000));
            List<CompletableFuture<ClientCall>> four = fourCalls(client);
            assertThat(four.get(0)).as("the one that is sent alone").isCompleted();
            assertThat(four.subList(1, 4)).noneMatch(CompletableFuture::isDone);
            four.get(0).join().answered(200, SILENT);
            assertThat(four).allMatch(call -> call.isDone() && !call.isCompletedExceptionally());
            assertThat(ticker.elapsed()).isEqualTo(Duration.ofSeconds(60));
        });
    }

    @Test
    void theTimeAdvancesOnceTheResponseSaysHowLongToWait() {
        run(client -> {
            call(client).join().answered(429, PAUSE);
            List<CompletableFuture<ClientCall>> four = fourCalls(client);
            four.get(0).join().answered(200, quota(0, 50));
            assertThat(four).allMatch(call -> call.isDone() && !call.isCompletedExceptionally());
            assertThat(ticker.elapsed()).isEqualTo(Duration.ofSeconds(51));
        });
    }

    /** No call is left whose maximum wait it could be. */
    @Test
    void callsThatAreCancelledLeaveTheTimeAsItIs() {
        run(client -> {
            call(client).join().answered(429, PAUSE);
            List<CompletableFuture<ClientCall>> four = fourCalls(client);
            four.subList(1, 4).forEach(call -> call.cancel(false));
            assertThat(ticker.sleeping()).isZero();
            assertThat(ticker.elapsed()).isEqualTo(Duration.ofSeconds(1));
        });
    }
}
