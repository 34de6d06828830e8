package io.ratelimited.spring.internals.client;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.DecisionObserver;
import io.ratelimited.spring.RateLimitDecision;
import io.ratelimited.spring.internals.call.CallerObserver;
import java.net.URI;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.BiConsumer;
import java.util.function.Function;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** Responses that come while calls wait for the limits of their client, and so are not sent yet. */
class AnswersWhileCallsWaitTest {

    private static final Function<String, List<String>> SILENT = name -> null;

    private final ManualTicker ticker = new ManualTicker();

    /** Three calls of six are sent, and three wait for the limit, for 10 seconds. */
    private void run(BiConsumer<LimitedClient, List<CompletableFuture<ClientCall>>> calls) {
        LimitedClientsContext.runner(
                        ticker,
                        "rate-limit.limits.out.algorithm=fixed-window",
                        "rate-limit.limits.out.rate=3/10s",
                        "rate-limit.clients.partner.hosts=partner.example",
                        "rate-limit.clients.partner.limits=out",
                        "rate-limit.clients.partner.max-pause=5m",
                        "rate-limit.clients.partner.max-wait=2m")
                .run(context -> {
                    LimitedClient client =
                            context.getBean(LimitedClients.class).of(URI.create("https://partner.example"));
                    ticker.advance(Duration.ofSeconds(10 - ticker.nanos() / 1_000_000_000 % 10));
                    List<CompletableFuture<ClientCall>> six =
                            Stream.generate(() -> call(client)).limit(6).toList();
                    assertThat(sent(six)).isEqualTo(3);
                    calls.accept(client, six);
                });
    }

    private static CompletableFuture<ClientCall> call(LimitedClient client) {
        return client.enterAsync(
                new OutgoingRequest("GET", URI.create("https://partner.example/"), name -> null), null);
    }

    private static long sent(List<CompletableFuture<ClientCall>> calls) {
        return calls.stream().filter(CompletableFuture::isDone).count();
    }

    private static Function<String, List<String>> quota(long remaining, long seconds) {
        return name -> switch (name) {
            case "RateLimit" -> List.of("\"x\";r=" + remaining + ";t=" + seconds);
            case "RateLimit-Policy" -> List.of("\"x\";q=100;w=60");
            default -> null;
        };
    }

    @Test
    void aQuotaThatIsUsedUpMeanwhileHoldsThem() {
        run((client, six) -> {
            for (int i = 0; i < 3; i++) {
                six.get(i).join().answered(200, quota(2 - i, 50 - i));
            }
            ticker.advance(Duration.ofSeconds(30));
            assertThat(sent(six)).isEqualTo(3);
            ticker.advance(Duration.ofSeconds(20));
            assertThat(sent(six)).as("after the reset").isGreaterThan(3);
            six.get(3).join().answered(200, quota(99, 60));
            assertThat(sent(six)).isEqualTo(6);
        });
    }

    @Test
    void asManyOfThemAreSentAsAreLeft() {
        run((client, six) -> {
            for (int i = 0; i < 3; i++) {
                six.get(i).join().answered(200, quota(4 - i, 50));
            }
            ticker.advance(Duration.ofSeconds(10));
            assertThat(sent(six)).isEqualTo(5);
            assertThat(six.get(5)).as("the last one").isNotDone();
        });
    }

    @Test
    void afterAPauseOneOfThemIsSentAlone() {
        run((client, six) -> {
            six.get(0).join().answered(429, retryAfter(2));
            six.get(1).join().answered(200, SILENT);
            six.get(2).join().end();
            ticker.advance(Duration.ofSeconds(10));
            assertThat(sent(six)).isEqualTo(4);
            CompletableFuture<ClientCall> next = call(client);
            six.stream()
                    .skip(3)
                    .filter(CompletableFuture::isDone)
                    .findFirst()
                    .orElseThrow()
                    .join()
                    .answered(200, SILENT);
            assertThat(sent(six)).as("the others follow its response").isEqualTo(6);
            assertThat(next).as("beyond the limit").isNotDone();
        });
    }

    /** They take nothing of the quota. */
    @Test
    void thoseToOtherPathsMakeNoRoomForThem() {
        run((client, six) -> {
            six.get(5).cancel(false);
            CompletableFuture<ClientCall> other = client.enterAsync(
                    new OutgoingRequest("GET", URI.create("https://partner.example/other"), name -> null), null);
            for (int i = 0; i < 3; i++) {
                six.get(i).join().answered(200, quota(3 - i, 50));
            }
            ticker.advance(Duration.ofSeconds(10));
            assertThat(other).isCompleted();
            assertThat(six.get(3)).isCompleted();
            assertThat(six.get(4)).as("of one that is left").isNotDone();
        });
    }

    /** The call that was sent alone after the first pause does not stand for the one after the second. */
    @Test
    void eachPauseIsFollowedByACallOfItsOwn() {
        LimitedClientsContext.runner(ticker, "rate-limit.clients.partner.hosts=partner.example")
                .run(context -> {
                    LimitedClient client =
                            context.getBean(LimitedClients.class).of(URI.create("https://partner.example"));
                    ClientCall early = call(client).join();
                    call(client).join().answered(429, retryAfter(1));
                    List<CompletableFuture<ClientCall>> three =
                            Stream.generate(() -> call(client)).limit(3).toList();
                    ticker.advance(Duration.ofSeconds(1));
                    assertThat(sent(three)).isEqualTo(1);
                    early.answered(429, retryAfter(2));
                    three.get(0).join().answered(200, SILENT);
                    ticker.advance(Duration.ofSeconds(2));
                    assertThat(sent(three)).as("one alone again").isEqualTo(2);
                    three.get(1).join().answered(200, SILENT);
                    assertThat(sent(three)).isEqualTo(3);
                });
    }

    /** One after the other is let go alone, and none of them is in the stack of the one before. */
    @Test
    void allEndThatTheirLimitRefusesAfterAPause() {
        LimitedClientsContext.runner(
                        ticker,
                        "rate-limit.limits.out.rate=1/h",
                        "rate-limit.clients.partner.hosts=partner.example",
                        "rate-limit.clients.partner.limits=out",
                        "rate-limit.clients.partner.max-wait=8s")
                .run(context -> {
                    LimitedClient client =
                            context.getBean(LimitedClients.class).of(URI.create("https://partner.example"));
                    call(client).join().answered(429, retryAfter(2));
                    List<CompletableFuture<ClientCall>> waiting =
                            Stream.generate(() -> call(client)).limit(300).toList();
                    assertThat(sent(waiting)).isZero();
                    Thread thread = new Thread(null, () -> ticker.advance(Duration.ofSeconds(2)), "short", 200_000);
                    thread.start();
                    thread.join();
                    assertThat(waiting).allMatch(CompletableFuture::isCompletedExceptionally);
                });
    }

    /** Several are let go at one time, and the first to go may cancel the next. */
    @Test
    void aCallThatTheOneBeforeItCancelsGivesItsPartOfTheQuotaBack() {
        LimitedClientsContext.runner(
                        ticker,
                        "rate-limit.clients.partner.hosts=partner.example",
                        "rate-limit.clients.partner.max-pause=5m",
                        "rate-limit.clients.partner.max-wait=2m")
                .run(context -> {
                    LimitedClient client =
                            context.getBean(LimitedClients.class).of(URI.create("https://partner.example"));
                    call(client).join().answered(200, quota(0, 50));
                    CompletableFuture<ClientCall> first = call(client);
                    CompletableFuture<ClientCall> second = call(client);
                    first.thenRun(() -> second.cancel(false));
                    ticker.advance(Duration.ofSeconds(50));
                    assertThat(first).isCompleted();
                    assertThat(second).isCancelled();
                    assertThat(client.report(Object::toString).toString()).contains("remaining=99");
                });
    }

    /** It is no success, so it does not say that there is no quota any more. */
    @Test
    void aResponseThatAsksForAPauseEndsNoQuota() {
        LimitedClientsContext.runner(
                        ticker,
                        "rate-limit.clients.partner.hosts=partner.example",
                        "rate-limit.clients.partner.max-pause=5m")
                .run(context -> {
                    LimitedClient client =
                            context.getBean(LimitedClients.class).of(URI.create("https://partner.example"));
                    call(client).join().answered(200, quota(99, 50));
                    call(client).join().answered(503, retryAfter(1));
                    assertThat(client.report(Object::toString).toString()).contains("quota=x");
                });
    }

    private static Function<String, List<String>> retryAfter(int seconds) {
        return name -> name.equals("Retry-After") ? List.of(String.valueOf(seconds)) : null;
    }

    /** Whoever ends the pause asks the limits of a call that has waited for that end. */
    @Test
    void observersKnowWhoMadeACallWhoseLimitsAreAskedAfterAPause() {
        Callers callers = new Callers();
        LimitedClientsContext.runner(
                        ticker,
                        "rate-limit.limits.out.rate=100/s",
                        "rate-limit.clients.partner.hosts=partner.example",
                        "rate-limit.clients.partner.limits=out",
                        "rate-limit.clients.partner.max-wait=2m")
                .withBean(Callers.class, () -> callers)
                .run(context -> {
                    LimitedClient client =
                            context.getBean(LimitedClients.class).of(URI.create("https://partner.example"));
                    callers.current = "first";
                    call(client).join().answered(429, retryAfter(2));
                    callers.current = "second";
                    CompletableFuture<ClientCall> second = call(client);
                    callers.current = "clock";
                    ticker.advance(Duration.ofSeconds(2));
                    assertThat(second).isDone();
                    assertThat(callers.seen).containsExactly("first", "second");
                });
    }

    private static final class Callers implements CallerObserver {

        private final List<String> seen = new ArrayList<>();
        private String current = "nobody";

        @Override
        public void onDecision(RateLimitDecision decision) {
            seen.add(current);
        }

        @Override
        public DecisionObserver ofThisThread() {
            String caller = current;
            return decision -> seen.add(caller);
        }
    }
}
