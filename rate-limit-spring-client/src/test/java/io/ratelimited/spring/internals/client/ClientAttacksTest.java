package io.ratelimited.spring.internals.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.Call;
import io.ratelimited.core.DelegatingTicker;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.Ticker;
import io.ratelimited.core.WaitingRoom;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.CapturedLog;
import io.ratelimited.spring.ContextRunner;
import io.ratelimited.spring.LimitChange;
import io.ratelimited.spring.TestLimits;
import io.ratelimited.spring.backend.LimiterFactory;
import io.ratelimited.spring.backend.SharedPauses;
import io.ratelimited.spring.fields.RateLimitHeaderReader;
import io.ratelimited.spring.fields.ResponseLimits;
import io.ratelimited.spring.internals.client.ClientGate.Entered;
import io.ratelimited.spring.internals.client.ClientPace.Pass;
import java.io.IOException;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Proxy;
import java.net.URI;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.http.HttpMethod;
import org.springframework.http.client.ClientHttpResponse;
import org.springframework.mock.http.client.MockClientHttpRequest;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Schedulers;

/** Callers who leave, and readers and keys of the application that are not as expected. */
@ExtendWith(CapturedLog.Capture.class)
@Tag("slow")
class ClientAttacksTest {

    private final ManualTicker ticker = new ManualTicker();

    private ContextRunner runner(String... properties) {
        return LimitedClientsContext.runner(
                ticker,
                Stream.concat(Stream.of("rate-limit.clients.partner.hosts=partner.example"), Stream.of(properties))
                        .toArray(String[]::new));
    }

    private static OutgoingRequest request(String path) {
        return new OutgoingRequest("GET", URI.create("https://partner.example" + path), name -> null);
    }

    @Test
    void callersWhoHaveLeftHoldNoPlaceInTheQueue() {
        runner("rate-limit.clients.partner.max-wait=1m").run(context -> {
            LimitedClient client = context.getBean(LimitedClients.class).of(URI.create("https://partner.example"));
            client.enter(request("/")).answered(429, name -> name.equals("Retry-After") ? List.of("10") : null);
            List<CompletableFuture<ClientCall>> left = new ArrayList<>();
            for (int i = 0; i < 1_000; i++) {
                left.add(client.enterAsync(request("/"), null));
            }
            assertThat(client.enterAsync(request("/"), null)).isCompletedExceptionally();
            left.forEach(call -> call.cancel(false));
            CompletableFuture<ClientCall> next = client.enterAsync(request("/"), null);
            assertThat(next).isNotDone();
            ticker.advance(Duration.ofSeconds(10));
            assertThat(next).isCompleted();
        });
    }

    /** As where the system can start no more threads, and none keeps the time. */
    @Test
    void callersWhoseAlarmCannotBeSetFailAndTheNextOnesWait() {
        Error noThread = new Error("unable to create native thread");
        AtomicBoolean broken = new AtomicBoolean();
        Ticker breaking = new DelegatingTicker(ticker) {
            @Override
            public Runnable schedule(long deadline, Runnable task) {
                if (broken.get()) {
                    throw noThread;
                }
                return super.schedule(deadline, task);
            }
        };
        WaitingRoom room = new WaitingRoom(breaking, () -> 1_000);
        long minute = Duration.ofMinutes(1).toNanos();
        ClientGate gate = new ClientGate("", null, room, breaking, minute);
        gate.pause(Duration.ofSeconds(10).toNanos());
        CompletableFuture<Entered> patient = gate.enter("", 2 * minute);

        broken.set(true);
        CompletableFuture<Entered> hasty = gate.enter("", Duration.ofSeconds(11).toNanos());
        assertThat(List.of(patient, hasty)).as("the alarm is that of the pause").noneMatch(CompletableFuture::isDone);
        gate.pause(minute);
        ticker.advance(Duration.ofSeconds(10));

        assertThat(List.of(patient, hasty))
                .allSatisfy(call -> assertThat(call)
                        .failsWithin(Duration.ZERO)
                        .withThrowableThat()
                        .withCause(noThread));
        assertThat(gate.enter("", minute)).as("behind them").isCompletedExceptionally();
        assertThat(gate.waiting()).isZero();
        assertThat(room.size()).isZero();
        broken.set(false);
        CompletableFuture<Entered> next = gate.enter("", minute);
        assertThat(next).isNotDone();
        ticker.advanceNanos(minute);
        assertThat(next).isCompleted();
    }

    @Test
    void aCallThatGoesAfterAWaitHasLeftItsSeat() {
        WaitingRoom room = new WaitingRoom(ticker, () -> 1);
        long minute = Duration.ofMinutes(1).toNanos();
        ClientGate gate = new ClientGate("", null, room, ticker, minute);
        gate.pause(minute);
        CompletableFuture<Integer> seated = gate.enter("", minute).thenApply(entered -> room.size());
        assertThat(room.size()).isOne();
        ticker.advanceNanos(minute);
        assertThat(seated).isCompletedWithValue(0);
    }

    @Test
    void aWaitThatIsCancelledLeavesTheQueueAndThenTellsItsCaller() {
        WaitingRoom room = new WaitingRoom(ticker, () -> 1);
        long minute = Duration.ofMinutes(1).toNanos();
        ClientGate gate = new ClientGate("", null, room, ticker, minute);
        gate.pause(minute);
        CompletableFuture<Entered> wait = gate.enter("", minute);
        CompletableFuture<Integer> left = wait.handle((entered, failure) -> room.size() + gate.waiting());
        assertThat(wait.cancel(false)).isTrue();
        assertThat(left).isCompletedWithValue(0);
        assertThat(ticker.sleeping()).isZero();
    }

    /** The other side may have counted it, whatever an answer to an earlier call says was left. */
    @Test
    void aCallThatIsCancelledOnItsWayCostsItsPermit() {
        ClientGate gate = new ClientGate(
                "",
                null,
                new WaitingRoom(ticker, () -> 1_000),
                ticker,
                Duration.ofMinutes(1).toNanos());
        Pass first = gate.enter("", 0).join().pass();
        gate.answered(first, quota(90), false);
        Pass early = gate.enter("", 0).join().pass();
        Pass cancelled = gate.enter("", 0).join().pass();
        gate.failed(cancelled);
        gate.answered(early, quota(89), false);
        assertThat(gate.report())
                .singleElement()
                .satisfies(state -> assertThat(state).containsEntry("remaining", 88L));
    }

    /** What was counted before the first response may be calls of this side: they are not there again before the reset. */
    @Test
    void aCallThatIsLostBeforeTheFirstResponseCostsItsPermit() {
        ClientGate gate = new ClientGate(
                "",
                null,
                new WaitingRoom(ticker, () -> 1_000),
                ticker,
                Duration.ofMinutes(1).toNanos());
        gate.failed(gate.enter("", 0).join().pass());
        Pass first = gate.enter("", 0).join().pass();
        gate.enter("", 0).join();
        gate.answered(first, quota(98), false);
        gate.enter("", 0).join();
        assertThat(gate.report())
                .singleElement()
                .satisfies(state -> assertThat(state).containsEntry("remaining", 96L));
    }

    private static final Function<String, List<String>> FROZEN =
            name -> name.equals("RateLimit") ? List.of("\"x\";r=0;t=31536000") : null;

    @ParameterizedTest
    @ValueSource(ints = {200, 404, 429})
    void oneAnswerFreezesAPathForTheLongestPauseAtMost(int status) {
        runner("rate-limit.clients.partner.max-wait=2m").run(context -> {
            LimitedClient client = context.getBean(LimitedClients.class).of(URI.create("https://partner.example"));
            client.enter(request("/export")).answered(status, FROZEN);
            List<CompletableFuture<ClientCall>> calls = new ArrayList<>();
            for (int i = 0; i < 24; i++) {
                calls.add(client.enterAsync(request("/export"), null));
                admitted(client, "/other/" + i).answered(200, name -> null);
            }
            assertThat(calls).noneMatch(CompletableFuture::isDone);
            ticker.advance(Duration.ofSeconds(60));
            assertThat(calls.stream().filter(CompletableFuture::isDone))
                    .as("one goes alone")
                    .hasSize(1);
            admitted(client, "/other").answered(200, name -> null);
            calls.get(0).join().answered(200, name -> null);
            assertThat(calls).as("and says nothing of it").allMatch(CompletableFuture::isDone);
            for (int i = 0; i < 100; i++) {
                admitted(client, "/export").answered(200, name -> null);
            }
        });
    }

    private static ClientCall admitted(LimitedClient client, String path) {
        CompletableFuture<ClientCall> call = client.enterAsync(request(path), null);
        assertThat(call).as(path).isCompleted();
        return call.join();
    }

    /** As the search of a service, beside its other paths: the fields of a dialect have no names. */
    @Test
    void aQuotaOfAnotherSizeIsAnotherQuota() {
        runner("rate-limit.clients.partner.policy=reject").run(context -> {
            LimitedClient client = context.getBean(LimitedClients.class).of(URI.create("https://partner.example"));
            for (int i = 0; i < 5; i++) {
                client.enter(request("/repos/" + i)).answered(200, dialect(5_000, 4_000));
                client.enter(request("/search")).answered(200, dialect(30, 0));
                assertRefusedBy("clients.partner", client, "/search");
                client.enter(request("/repos/new/" + i)).answered(200, dialect(5_000, 4_000));
                ticker.advance(Duration.ofSeconds(30));
            }
            client.enter(request("/repos/5")).answered(200, dialect(5_000, 0));
            client.enter(request("/search")).answered(200, dialect(30, 29));
            assertRefusedBy("clients.partner", client, "/repos/6");
            client.enter(request("/search")).answered(200, dialect(30, 28));
        });
    }

    /** No host knows what the service has counted for another. */
    @ParameterizedTest
    @ValueSource(strings = {"a", "b"})
    void aQuotaOfAnotherHostIsAnotherQuota(String usedUp) {
        ofManyHosts(client -> {
            for (String host : List.of("a", "b", "a", "b")) {
                client.enterAsync(requestTo(host), null)
                        .thenAccept(call -> call.answered(200, dialect(100, host.equals(usedUp) ? 0 : 99)));
            }
            for (String host : List.of("a", "b", "c")) {
                assertThat(client.enterAsync(requestTo(host), null).isCompletedExceptionally())
                        .as(host)
                        .isEqualTo(host.equals(usedUp));
            }
        });
    }

    @Test
    void hostsThatNameTheirQuotasEndNoQuotaOfAnotherHost() {
        ofManyHosts(client -> {
            client.enter(requestTo("a")).answered(200, dialect(100, 0));
            for (int i = 0; i < 150; i++) {
                client.enter(requestTo("host" + i)).answered(200, dialect(100, 99));
            }
            assertThat(client.enterAsync(requestTo("a"), null)).isCompletedExceptionally();
        });
    }

    /** Each call looks at all of them. */
    @Test
    void hostsKeepNoMoreThanAThousandQuotas() {
        ofManyHosts(client -> {
            String states = IntStream.range(0, 100)
                    .mapToObj(i -> "\"x" + i + "\";r=9;t=30")
                    .collect(Collectors.joining(", "));
            for (int i = 0; i < 11; i++) {
                client.enter(requestTo("host" + i))
                        .answered(200, name -> name.equals("RateLimit") ? List.of(states) : null);
            }
            assertThat(client.report(key -> "").toString().split("quota=", -1)).hasSize(1_001);
        });
    }

    private void ofManyHosts(Consumer<LimitedClient> calls) {
        LimitedClientsContext.runner(
                        ticker,
                        "rate-limit.clients.partner.hosts=*.partner.example",
                        "rate-limit.clients.partner.policy=reject")
                .run(context -> calls.accept(
                        context.getBean(LimitedClients.class).of(URI.create("https://a.partner.example"))));
    }

    private static OutgoingRequest requestTo(String host) {
        return new OutgoingRequest("GET", URI.create("https://" + host + ".partner.example/x"), name -> null);
    }

    @Test
    void aPathThatNamesAnotherQuotaIsLeftOutOfTheQuotaAroundIt() {
        runner("rate-limit.clients.partner.policy=reject").run(context -> {
            LimitedClient client = context.getBean(LimitedClients.class).of(URI.create("https://partner.example"));
            client.enter(request("/a/1")).answered(200, dialect(5_000, 4_000));
            client.enter(request("/a/2")).answered(200, dialect(5_000, 3_999));
            client.enter(request("/a/search")).answered(200, dialect(30, 20));
            client.enter(request("/a/3")).answered(200, dialect(5_000, 0));
            assertRefusedBy("clients.partner", client, "/a/4");
            client.enter(request("/a/search")).answered(200, dialect(30, 19));
            ticker.advance(Duration.ofSeconds(30));
            client.enter(request("/a/search")).answered(200, dialect(5_000, 4_999));
            client.enter(request("/a/5")).answered(200, dialect(5_000, 0));
            assertRefusedBy("clients.partner", client, "/a/search");
        });
    }

    @ParameterizedTest
    @ValueSource(ints = {20, 21, 50})
    void pathsThatNameAnotherQuotaDoNotEndTheQuotaAroundThem(int paths) {
        runner("rate-limit.clients.partner.policy=reject").run(context -> {
            LimitedClient client = context.getBean(LimitedClients.class).of(URI.create("https://partner.example"));
            client.enter(request("/api/users/1")).answered(200, dialect(600, 400));
            client.enter(request("/api/apps")).answered(200, dialect(600, 399));
            List<ClientCall> others = new ArrayList<>();
            for (int i = 0; i < paths; i++) {
                others.add(client.enter(request("/api/groups/" + i)));
            }
            client.enter(request("/api/users/2")).answered(200, dialect(600, 0));
            others.forEach(call -> call.answered(200, dialect(500, 300)));
            assertRefusedBy("clients.partner", client, "/api/users/3");
            client.enter(request("/api/groups/" + (paths - 1)));
        });
    }

    @Test
    void aCallInFlightToAPathThatIsLeftOutHoldsNoPermitOfTheQuotaAroundIt() {
        runner("rate-limit.clients.partner.policy=reject").run(context -> {
            LimitedClient client = context.getBean(LimitedClients.class).of(URI.create("https://partner.example"));
            client.enter(request("/a")).answered(200, two(1));
            client.enter(request("/b")).answered(200, two(0));
            ticker.advance(Duration.ofSeconds(11));
            ClientCall slow = client.enter(request("/b"));
            client.enter(request("/b")).answered(200, dialect(30, 29));
            slow.answered(200, dialect(30, 28));
            ticker.advance(Duration.ofSeconds(30));
            client.enter(request("/a"));
            client.enter(request("/a"));
        });
    }

    private static Function<String, List<String>> two(long remaining) {
        return name -> switch (name) {
            case "RateLimit" -> List.of("\"x\";r=" + remaining + ";t=10");
            case "RateLimit-Policy" -> List.of("\"x\";q=2;w=10");
            default -> null;
        };
    }

    /** As an endpoint for health, which no service counts. */
    @Test
    void aPathThatSaysNothingIsLeftOutOfTheQuotaAroundIt() {
        runner("rate-limit.clients.partner.policy=reject").run(context -> {
            LimitedClient client = context.getBean(LimitedClients.class).of(URI.create("https://partner.example"));
            client.enter(request("/orders")).answered(200, dialect(10, 9));
            client.enter(request("/users")).answered(200, dialect(10, 8));
            client.enter(request("/health")).answered(200, name -> null);
            client.enter(request("/orders")).answered(200, dialect(10, 0));
            assertRefusedBy("clients.partner", client, "/users");
            for (int i = 0; i < 10; i++) {
                client.enter(request("/health")).answered(200, name -> null);
            }
            assertRefusedBy("clients.partner", client, "/orders");
            assertRefusedBy("clients.partner", client, "/other");
        });
    }

    @Test
    void aServiceWithoutFieldsAnyMoreHoldsNoCallForLongerThanAPause() {
        runner("rate-limit.clients.partner.max-wait=2m").run(context -> {
            LimitedClient client = context.getBean(LimitedClients.class).of(URI.create("https://partner.example"));
            client.enter(request("/users/1")).answered(200, yearly(3));
            client.enter(request("/users/2")).answered(200, yearly(2));
            List<CompletableFuture<ClientCall>> calls = new ArrayList<>();
            for (int i = 3; i < 40; i++) {
                calls.add(client.enterAsync(request("/users/" + i), null));
                calls.get(calls.size() - 1).thenAccept(call -> call.answered(200, name -> null));
            }
            assertThat(calls).noneMatch(CompletableFuture::isDone);
            ticker.advance(Duration.ofSeconds(60));
            assertThat(calls).allMatch(CompletableFuture::isDone);
            for (int i = 0; i < 100; i++) {
                admitted(client, "/users/" + i).answered(200, name -> null);
            }
        });
    }

    private static Function<String, List<String>> yearly(long remaining) {
        return name -> switch (name) {
            case "RateLimit" -> List.of("\"x\";r=" + remaining + ";t=31536000");
            case "RateLimit-Policy" -> List.of("\"x\";q=1000;w=31536000");
            default -> null;
        };
    }

    private static Function<String, List<String>> dialect(long limit, long remaining) {
        return name -> switch (name) {
            case "X-RateLimit-Limit" -> List.of(String.valueOf(limit));
            case "X-RateLimit-Remaining" -> List.of(String.valueOf(remaining));
            case "X-RateLimit-Reset" -> List.of("30");
            default -> null;
        };
    }

    @Test
    void anErrorOfTheOtherSideDoesNotEndWhatWasSaid() {
        runner("rate-limit.clients.partner.policy=reject").run(context -> {
            LimitedClient client = context.getBean(LimitedClients.class).of(URI.create("https://partner.example"));
            ClientCall early = client.enter(request("/export"));
            client.enter(request("/export")).answered(200, FROZEN);
            early.answered(200, name -> null);
            ticker.advance(Duration.ofSeconds(60));
            client.enter(request("/export")).answered(503, name -> null);
            ClientCall alone = client.enter(request("/export"));
            assertRefusedBy("clients.partner", client, "/export");
            alone.answered(200, name -> null);
            client.enter(request("/export"));
            client.enter(request("/export"));
        });
    }

    /** Gateways and validation respond before the limit of the service is asked. */
    @ParameterizedTest
    @ValueSource(ints = {301, 304, 400, 401, 404, 429, 500})
    void onlyASuccessEndsWhatWasSaid(int status) {
        runner("rate-limit.clients.partner.policy=reject").run(context -> {
            LimitedClient client = context.getBean(LimitedClients.class).of(URI.create("https://partner.example"));
            client.enter(request("/orders")).answered(200, quarterIsNear());
            client.enter(request("/orders")).answered(status, name -> null);
            client.enter(request("/orders"));
            for (int i = 0; i < 10; i++) {
                assertRefusedBy("clients.partner", client, "/orders");
            }
        });
    }

    private static Function<String, List<String>> quarterIsNear() {
        return name -> switch (name) {
            case "RateLimit" -> List.of("\"x\";r=27;t=60");
            case "RateLimit-Policy" -> List.of("\"x\";q=100;w=60");
            default -> null;
        };
    }

    /** It was admitted. Otherwise calls to a path without successes would be sent one at a time for ever. */
    @ParameterizedTest
    @ValueSource(ints = {304, 404})
    void anyResponseOfTheServiceEndsAQuotaThatIsOver(int status) {
        runner("rate-limit.clients.partner.policy=reject").run(context -> {
            LimitedClient client = context.getBean(LimitedClients.class).of(URI.create("https://partner.example"));
            client.enter(request("/export")).answered(200, FROZEN);
            ticker.advance(Duration.ofSeconds(60));
            ClientCall alone = client.enter(request("/export"));
            assertRefusedBy("clients.partner", client, "/export");
            alone.answered(status, name -> null);
            client.enter(request("/export"));
            client.enter(request("/export"));
        });
    }

    /** Responses to calls in flight may state less. */
    @Test
    void aShorterPauseDoesNotEndALongerOne() {
        runner("rate-limit.clients.partner.policy=reject").run(context -> {
            LimitedClient client = context.getBean(LimitedClients.class).of(URI.create("https://partner.example"));
            ClientCall late = client.enter(request("/"));
            client.enter(request("/")).answered(429, name -> name.equals("Retry-After") ? List.of("30") : null);
            late.answered(429, name -> name.equals("Retry-After") ? List.of("1") : null);
            ticker.advance(Duration.ofSeconds(29));
            assertRefusedBy("clients.partner", client);
            ticker.advance(Duration.ofSeconds(1));
            client.enter(request("/"));
        });
    }

    @ParameterizedTest
    @ValueSource(ints = {304, 404})
    void anyResponseOfTheServiceReleasesTheCallsAfterAPause(int status) {
        runner("rate-limit.clients.partner.policy=reject").run(context -> {
            LimitedClient client = context.getBean(LimitedClients.class).of(URI.create("https://partner.example"));
            client.enter(request("/")).answered(429, name -> name.equals("Retry-After") ? List.of("10") : null);
            ticker.advance(Duration.ofSeconds(10));
            ClientCall alone = client.enter(request("/"));
            assertRefusedBy("clients.partner", client);
            alone.answered(status, name -> null);
            client.enter(request("/"));
            client.enter(request("/"));
        });
    }

    /** They take nothing of it. */
    @Test
    void callsToAnotherPathThatWaitForAPauseAreNotAheadAtAQuota() {
        runner("rate-limit.clients.partner.max-wait=1m", "rate-limit.clients.partner.max-pause=1h")
                .run(context -> {
                    LimitedClient client =
                            context.getBean(LimitedClients.class).of(URI.create("https://partner.example"));
                    admitted(client, "/b").answered(200, hourly(2));
                    client.enter(request("/a"))
                            .answered(429, name -> name.equals("Retry-After") ? List.of("10") : null);
                    for (int i = 0; i < 3; i++) {
                        assertThat(client.enterAsync(request("/a"), null)).isNotDone();
                    }
                    CompletableFuture<ClientCall> call = client.enterAsync(request("/b"), null);
                    assertThat(call).isNotDone();
                    assertThat(client.enterAsync(request("/b"), null)).isNotDone();
                    assertThat(client.enterAsync(request("/b"), null))
                            .as("of two")
                            .isCompletedExceptionally();
                });
    }

    private static Function<String, List<String>> hourly(long remaining) {
        return name -> switch (name) {
            case "RateLimit" -> List.of("\"x\";r=" + remaining + ";t=3600");
            case "RateLimit-Policy" -> List.of("\"x\";q=4;w=3600");
            default -> null;
        };
    }

    /** It says nothing of quotas, but the service can be called. */
    @Test
    void aResponseOfACacheReleasesTheCallsAfterAPauseAndAfterAQuotaThatIsOver() {
        runner("rate-limit.clients.partner.policy=reject").run(context -> {
            LimitedClient client = context.getBean(LimitedClients.class).of(URI.create("https://partner.example"));
            client.enter(request("/")).answered(429, name -> name.equals("Retry-After") ? List.of("10") : null);
            ticker.advance(Duration.ofSeconds(10));
            ClientCall alone = client.enter(request("/"));
            assertRefusedBy("clients.partner", client);
            alone.answered(200, cached("17", 0));
            client.enter(request("/"));
            client.enter(request("/"));

            client.enter(request("/export")).answered(200, FROZEN);
            ticker.advance(Duration.ofSeconds(60));
            alone = client.enter(request("/export"));
            assertRefusedBy("clients.partner", client, "/export");
            alone.answered(200, cached("17", 0));
            client.enter(request("/export"));
            client.enter(request("/export"));
        });
    }

    /** Otherwise each response of the cache would hold its path again, or end what the service has said since. */
    @Test
    void aResponseOfACacheSaysNothingOfQuotas() {
        runner("rate-limit.clients.partner.policy=reject").run(context -> {
            LimitedClient client = context.getBean(LimitedClients.class).of(URI.create("https://partner.example"));
            client.enter(request("/news")).answered(200, cached("17", 0));
            client.enter(request("/news")).answered(200, cached("0", 29));
            client.enter(request("/news")).answered(200, cached("17", 0));
            assertThat(client.report(key -> "").toString()).contains("remaining=28");
        });
    }

    @Test
    void aResponseOfACacheEndsNoQuota() {
        runner("rate-limit.clients.partner.policy=reject").run(context -> {
            LimitedClient client = context.getBean(LimitedClients.class).of(URI.create("https://partner.example"));
            client.enter(request("/news"))
                    .answered(200, name -> name.equals("RateLimit") ? List.of("\"x\";r=1;t=60") : null);
            client.enter(request("/news")).answered(200, name -> name.equals("Age") ? List.of("17") : null);
            assertRefusedBy("clients.partner", client, "/news");
        });
    }

    private static Function<String, List<String>> cached(String age, long remaining) {
        return name ->
                name.equals("Age") ? List.of(age) : dialect(30, remaining).apply(name);
    }

    /** A service that makes up names costs memory within bounds, and holds nothing but the paths that it names. */
    @Test
    void aServiceWithANameForEachCallHoldsUpNoOthers() {
        runner("rate-limit.clients.partner.policy=reject").run(context -> {
            LimitedClient client = context.getBean(LimitedClients.class).of(URI.create("https://partner.example"));
            for (int i = 0; i < 1_000; i++) {
                String named = "\"x" + i + "\";r=0;t=31536000";
                client.enter(request("/" + i)).answered(200, name -> name.equals("RateLimit") ? List.of(named) : null);
            }
            assertThat(client.report(key -> "").toString().split("quota=", -1)).hasSize(101);
        });
    }

    @Test
    void whoSaysSoAgainIsObeyedAgain() {
        runner("rate-limit.clients.partner.max-wait=2m").run(context -> {
            LimitedClient client = context.getBean(LimitedClients.class).of(URI.create("https://partner.example"));
            client.enter(request("/export")).answered(429, FROZEN);
            for (int i = 0; i < 5; i++) {
                CompletableFuture<ClientCall> first = client.enterAsync(request("/export"), null);
                CompletableFuture<ClientCall> second = client.enterAsync(request("/export"), null);
                ticker.advance(Duration.ofSeconds(60));
                assertThat(first).isCompleted();
                assertThat(second).isNotDone();
                first.join().answered(429, FROZEN);
                second.cancel(false);
            }
        });
    }

    @Test
    void aCallWithoutAnAnswerDoesNotProlongTheFreeze() {
        runner("rate-limit.clients.partner.max-wait=2m").run(context -> {
            LimitedClient client = context.getBean(LimitedClients.class).of(URI.create("https://partner.example"));
            client.enter(request("/export")).answered(200, FROZEN);
            CompletableFuture<ClientCall> first = client.enterAsync(request("/export"), null);
            CompletableFuture<ClientCall> second = client.enterAsync(request("/export"), null);
            CompletableFuture<ClientCall> third = client.enterAsync(request("/export"), null);
            ticker.advance(Duration.ofSeconds(60));
            first.join().end(new IOException("reset"));
            assertThat(second).as("follows at once").isCompleted();
            assertThat(third).isNotDone();
            second.join().answered(204, name -> null);
            assertThat(third).isCompleted();
        });
    }

    @Test
    void aFreezeThatBeginsWithACallWithoutAnAnswerIsNotLonger() {
        runner("rate-limit.clients.partner.policy=reject").run(context -> {
            LimitedClient client = context.getBean(LimitedClients.class).of(URI.create("https://partner.example"));
            client.enter(request("/"))
                    .answered(200, name -> name.equals("RateLimit") ? List.of("\"x\";r=2;t=31536000") : null);
            ticker.advance(Duration.ofSeconds(30));
            client.enter(request("/")).end(new IOException("reset"));
            assertRefusedBy("clients.partner", client);
            ticker.advance(Duration.ofSeconds(30));
            client.enter(request("/"));
        });
    }

    @Test
    void aQuotaOfSeveralPathsThatIsOverEndsForAllOfThem() {
        runner("rate-limit.clients.partner.policy=reject").run(context -> {
            LimitedClient client = context.getBean(LimitedClients.class).of(URI.create("https://partner.example"));
            client.enter(request("/a")).answered(200, FROZEN);
            client.enter(request("/b")).answered(200, FROZEN);
            ticker.advance(Duration.ofSeconds(60));
            ClientCall alone = client.enter(request("/a"));
            assertRefusedBy("clients.partner", client, "/b");
            alone.answered(200, name -> null);
            client.enter(request("/b"));
            client.enter(request("/b"));
        });
    }

    @Test
    void aRejectionAfterAPauseReleasesNoOtherCalls() {
        runner("rate-limit.clients.partner.policy=reject").run(context -> {
            LimitedClient client = context.getBean(LimitedClients.class).of(URI.create("https://partner.example"));
            client.enter(request("/")).answered(429, name -> name.equals("Retry-After") ? List.of("10") : null);
            ticker.advance(Duration.ofSeconds(10));
            client.enter(request("/")).answered(429, name -> null);
            ClientCall alone = client.enter(request("/"));
            assertRefusedBy("clients.partner", client);
            alone.answered(200, name -> null);
            client.enter(request("/"));
            client.enter(request("/"));
        });
    }

    /** Although a call in flight asks whether a quota is over. */
    @Test
    void aCallThatCannotWaitForAPauseIsRejectedImmediately() {
        runner("rate-limit.clients.partner.max-wait=20s").run(context -> {
            LimitedClient client = context.getBean(LimitedClients.class).of(URI.create("https://partner.example"));
            client.enter(request("/")).answered(200, FROZEN);
            ticker.advance(Duration.ofSeconds(60));
            client.enter(request("/"));
            assertThat(client.enterAsync(request("/"), null)).isNotDone();
            client.enter(request("/other")).answered(429, name -> name.equals("Retry-After") ? List.of("30") : null);
            assertThat(client.enterAsync(request("/"), null)).isCompletedExceptionally();
        });
    }

    @Test
    void aCallPassesThoseThatWaitForAnotherPath() {
        runner("rate-limit.clients.partner.max-wait=2m").run(context -> {
            LimitedClient client = context.getBean(LimitedClients.class).of(URI.create("https://partner.example"));
            client.enter(request("/export")).answered(200, FROZEN);
            assertThat(client.enterAsync(request("/export"), null)).isNotDone();
            assertThat(client.enterAsync(request("/other"), null)).isCompleted();
            assertThat(client.delayed()).isZero();
        });
    }

    /** The alarm of those that wait may be late. */
    @Test
    void aCallPassesNoneWhoseTimeHasCome() {
        Duration[] late = {Duration.ZERO};
        Ticker withLateAlarms = new Ticker() {

            @Override
            public long nanos() {
                return ticker.nanos() + late[0].toNanos();
            }

            @Override
            public long epochNanos() {
                return ticker.epochNanos() + late[0].toNanos();
            }

            @Override
            public void sleepUntil(long deadline) throws InterruptedException {
                ticker.sleepUntil(deadline);
            }

            @Override
            public Runnable schedule(long deadline, Runnable task) {
                return ticker.schedule(deadline, task);
            }
        };
        long minute = Duration.ofMinutes(1).toNanos();
        ClientGate gate = new ClientGate("", null, new WaitingRoom(withLateAlarms, () -> 1), withLateAlarms, minute);
        gate.pause(minute);
        CompletableFuture<Entered> first = gate.enter("", 2 * minute);
        assertThat(first).isNotDone();
        late[0] = Duration.ofMinutes(1);
        assertThat(gate.enter("", 0).join().pass())
                .as("behind the one that is alone")
                .isNull();
        assertThat(first).isCompletedWithValueMatching(entered -> entered.pass() != null);
    }

    /** Its calls would be spread over the year. */
    @Test
    void aSuccessThatSaysNothingEndsWhatWasSaidBefore() {
        runner("rate-limit.clients.partner.max-wait=2m").run(context -> {
            LimitedClient client = context.getBean(LimitedClients.class).of(URI.create("https://partner.example"));
            ClientCall early = client.enter(request("/export"));
            client.enter(request("/export")).answered(200, yearly(2));
            early.answered(200, name -> null);
            CompletableFuture<ClientCall> call = client.enterAsync(request("/export"), null);
            assertThat(call).as("an answer to an earlier call ends nothing").isNotDone();
            ticker.advance(Duration.ofSeconds(60));
            call.join().answered(200, name -> null);
            for (int i = 0; i < 100; i++) {
                admitted(client, "/export").answered(200, name -> null);
            }
        });
    }

    /** They state limits, although nobody can read which. Only a response without them says that there are none. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "RateLimit: \"x\";r=0;t=0 / RateLimit-Policy: \"x\";q=20;w=60",
                "RateLimit: \"x\";r=9;t=20 / RateLimit: \"x\";r=0;t=20",
                "RateLimit: \"x\";r=9;t=99999999999",
                "RateLimit: none",
                "RateLimit-Policy: \"x\";q=20;w=60",
                "X-RateLimit-Limit: 20",
                "X-RateLimit-Remaining: 0 / X-RateLimit-Reset: 20 / X-RateLimit-Reset: 30",
                "X-RateLimit-Remaining-Tokens: few"
            })
    void aSuccessWhoseFieldsAreIgnoredEndsNothing(String fields) {
        Map<String, List<String>> last = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
        for (String line : fields.split(" / ")) {
            String[] field = line.split(": ");
            last.computeIfAbsent(field[0], name -> new ArrayList<>()).add(field[1]);
        }
        runner("rate-limit.clients.partner.policy=reject").run(context -> {
            LimitedClient client = context.getBean(LimitedClients.class).of(URI.create("https://partner.example"));
            client.enter(request("/export")).answered(200, one("\"x\";r=1;t=20"));
            ticker.advance(Duration.ofMillis(19_500));
            client.enter(request("/export")).answered(200, last::get);
            assertRefusedBy("clients.partner", client, "/export");
            ticker.advance(Duration.ofSeconds(1));
            client.enter(request("/export"));
        });
    }

    private static Function<String, List<String>> one(String state) {
        return name -> switch (name) {
            case "RateLimit" -> List.of(state);
            case "RateLimit-Policy" -> List.of("\"x\";q=20;w=60");
            default -> null;
        };
    }

    /** OpenAI states 0s for a bucket that is full again. */
    @Test
    void whatCallsHaveTakenOfAQuotaIsKnownWhenItIsFull() {
        runner("rate-limit.clients.partner.policy=reject").run(context -> {
            LimitedClient client = context.getBean(LimitedClients.class).of(URI.create("https://partner.example"));
            client.enter(request("/chat")).answered(200, tokens(140, "4s"));
            client.enter(request("/chat")).answered(200, tokens(130, "8s"));
            ticker.advance(Duration.ofMinutes(1));
            client.enter(request("/chat")).answered(200, tokens(149, "0s"));
            assertThat(client.report(key -> "").toString()).contains("x-ratelimit--tokens", "remaining=14");
        });
    }

    private static Function<String, List<String>> tokens(long remaining, String reset) {
        return name -> switch (name) {
            case "X-RateLimit-Limit-Requests" -> List.of("10000");
            case "X-RateLimit-Remaining-Requests" -> List.of("9999");
            case "X-RateLimit-Reset-Requests" -> List.of("6ms");
            case "X-RateLimit-Limit-Tokens" -> List.of("150");
            case "X-RateLimit-Remaining-Tokens" -> List.of(String.valueOf(remaining));
            case "X-RateLimit-Reset-Tokens" -> List.of(reset);
            default -> null;
        };
    }

    private static ResponseLimits quota(long remaining) {
        return new ResponseLimits(
                0,
                List.of(new ResponseLimits.Quota(
                        "a",
                        100,
                        remaining,
                        Duration.ofMinutes(1).toNanos(),
                        Duration.ofMinutes(1).toNanos())));
    }

    @Test
    void anAnswerWhoseStatusCannotBeReadIsClosed() throws IOException {
        runner().run(context -> {
            AtomicBoolean closed = new AtomicBoolean();
            ClientHttpResponse broken = (ClientHttpResponse) Proxy.newProxyInstance(
                    getClass().getClassLoader(),
                    new Class<?>[] {ClientHttpResponse.class},
                    (proxy, method, arguments) -> {
                        if (method.getName().equals("close")) {
                            closed.set(true);
                            return null;
                        }
                        throw new IOException("broken");
                    });
            MockClientHttpRequest request =
                    new MockClientHttpRequest(HttpMethod.GET, URI.create("https://partner.example"));
            BlockingClientInterceptor interceptor =
                    new BlockingClientInterceptor(() -> context.getBean(LimitedClients.class));
            assertThatThrownBy(() -> interceptor.intercept(request, new byte[0], (sent, body) -> broken))
                    .hasMessage("broken");
            assertThat(closed).isTrue();
        });
    }

    /** The words of a key are checked as those of the expressions of limits are, with their messages. */
    @ParameterizedTest
    @CsvSource(delimiter = '|', quoteCharacter = '`', textBlock = """
                    `#account`                  | names the unknown parameter #account
                    header('X') ?: #account     | names the unknown parameter #account
                    `#f()`                      | calls the unknown function #f()
                    new String('x')             | uses new String
                    T(String).valueOf(host)     | uses T(String)
                    @bean.of(host)              | uses @bean
                    hots                        | has the unknown word hots
                    header('X') + clientIp      | has the unknown word clientIp
                    hedder('X')                 | has the unknown word hedder()
                    class                       | has the unknown word class
                    uri.pth                     | reads pth of java.net.URI, which does not declare it
                    uri.path.nothing()          | reads nothing() of java.lang.String, which does not declare it
                    header('X').nothing         | reads nothing of java.lang.String, which does not declare it
                    null                        | has the same value for every call
                    'all'                       | has the same value for every call
                    host +                      | is not a SpEL expression
                    """)
    void aKeyWithAWordThatMeansNothingStopsTheStart(String key, String problem) {
        runner("rate-limit.clients.partner.key=" + key)
                .run(context -> assertThat(context)
                        .getFailure()
                        .rootCause()
                        .hasMessageContaining("Property rate-limit.clients.partner.key " + problem));
    }

    @Test
    void aKeyIsTheSameWhenItIsCompiled() {
        runner(
                        "rate-limit.clients.partner.policy=reject",
                        "rate-limit.clients.partner.limits=partner",
                        "rate-limit.limits.partner.rate=1/h",
                        "rate-limit.clients.partner.key=method + uri.path")
                .run(context -> {
                    LimitedClient client =
                            context.getBean(LimitedClients.class).of(URI.create("https://partner.example"));
                    for (int i = 0; i < 300; i++) {
                        client.enter(request("/" + i));
                    }
                    assertThatThrownBy(() -> client.enter(request("/7")))
                            .isInstanceOf(RateLimitExceededException.class);
                });
    }

    /** The policy WAIT is the default: who calls on an event loop must learn why nothing waits. */
    @Test
    void aCallOnAnEventLoopThatWouldWaitIsRefusedAndTheLogSaysSoOnce(CapturedLog output) {
        runner().run(context -> {
            LimitedClient client = context.getBean(LimitedClients.class).of(URI.create("https://partner.example"));
            client.enter(request("/")).answered(429, name -> name.equals("Retry-After") ? List.of("1") : null);
            for (int i = 0; i < 2; i++) {
                assertThatThrownBy(() -> Mono.fromCallable(() -> client.enter(request("/")))
                                .subscribeOn(Schedulers.parallel())
                                .toFuture()
                                .get())
                        .hasCauseInstanceOf(RateLimitExceededException.class);
            }
            assertThat(output)
                    .containsOnlyOnce(
                            "Client 'partner' (rate-limit.clients.partner) has the policy WAIT, but thread parallel-");
        });
    }

    @Test
    void oneKeyTakesHalfOfTheSeatsOfTheClient() {
        runner("rate-limit.clients.partner.max-wait=1m", "rate-limit.clients.partner.key=uri.path")
                .run(context -> {
                    LimitedClient client =
                            context.getBean(LimitedClients.class).of(URI.create("https://partner.example"));
                    for (String path : List.of("/a", "/b", "/c")) {
                        client.enter(request(path))
                                .answered(429, name -> name.equals("Retry-After") ? List.of("10") : null);
                    }
                    List<CompletableFuture<ClientCall>> waiting = new ArrayList<>();
                    for (String path : List.of("/a", "/b")) {
                        for (int i = 0; i < 500; i++) {
                            waiting.add(client.enterAsync(request(path), null));
                        }
                        assertThat(client.enterAsync(request(path), null)).isCompletedExceptionally();
                    }
                    assertThat(client.enterAsync(request("/c"), null)).isCompletedExceptionally();
                    assertThat(waiting).noneMatch(CompletableFuture::isDone);
                    waiting.get(0).cancel(false);
                    assertThat(client.enterAsync(request("/c"), null)).isNotDone();
                });
    }

    /** The remote service may have asked for pauses of the keys that are evicted. */
    @Test
    void moreKeysThanAreTrackedAreWarnedOfOnce(CapturedLog output) {
        runner("rate-limit.clients.partner.policy=reject", "rate-limit.clients.partner.key=uri.path")
                .run(context -> {
                    LimitedClient client =
                            context.getBean(LimitedClients.class).of(URI.create("https://partner.example"));
                    for (int i = 0; i < 5_000; i++) {
                        client.enter(request("/" + i)).answered(200, name -> null);
                    }
                    assertThat(output).doesNotContain("keys");
                    for (int i = 5_000; i < 20_000; i++) {
                        client.enter(request("/" + i)).answered(200, name -> null);
                    }
                    assertThat(output)
                            .containsOnlyOnce("Client 'partner' (rate-limit.clients.partner) has more than 10000 keys");
                });
    }

    @ParameterizedTest
    @ValueSource(strings = {"x:0", "x:65536", "a..b", ".a", "[:::1]", "[1]", "[1.2.3.4]"})
    void aHostThatNoCallCanHaveStopsTheStart(String host) {
        runner("rate-limit.clients.none.hosts[0]=" + host)
                .run(context ->
                        assertThat(context).getFailure().rootCause().hasMessageContaining("which is not a host"));
    }

    /** Each call would take two permits. */
    @Test
    void aLimitThatIsNamedTwiceStopsTheStart() {
        runner("rate-limit.limits.out.rate=10/h", "rate-limit.clients.partner.limits=out,out")
                .run(context -> assertThat(context)
                        .getFailure()
                        .rootCause()
                        .hasMessageContaining("Property rate-limit.clients.partner.limits has out twice."));
    }

    /** As after a wait for a limit, when another answer has told to pause meanwhile. */
    @Test
    void whoMayWaitForLessIsRefusedInTimeBehindWhoMayWaitForMore() {
        ClientGate gate = new ClientGate(
                "",
                null,
                new WaitingRoom(ticker, () -> 1_000),
                ticker,
                Duration.ofMinutes(1).toNanos());
        Pass answered = gate.enter("", 0).join().pass();
        gate.pause(Duration.ofSeconds(1).toNanos());
        gate.answered(answered, ResponseLimits.SILENT, true);
        ticker.advance(Duration.ofSeconds(1));
        assertThat(gate.enter("", 0).join().pass()).isNotNull();
        CompletableFuture<Entered> patient =
                gate.enter("", Duration.ofSeconds(5).toNanos());
        CompletableFuture<Entered> hasty = gate.enter("", Duration.ofSeconds(2).toNanos());
        ticker.advanceNanos(Duration.ofSeconds(2).toNanos() - 1);
        assertThat(hasty).isNotDone();
        ticker.advanceNanos(1);
        assertThat(hasty).isCompletedWithValueMatching(entered -> entered.pass() == null);
        assertThat(patient).isNotDone();
        ticker.advance(Duration.ofSeconds(3));
        assertThat(patient).isCompletedWithValueMatching(entered -> entered.pass() == null);
        assertThat(gate.waiting()).isZero();
    }

    private static Stream<RateLimitHeaderReader> failingReaders() {
        return Stream.of(
                (status, fields, epochMillis) -> null,
                (status, fields, epochMillis) ->
                        new ResponseLimits(0, List.of(new ResponseLimits.Quota(null, 10, 9, 1_000, 1_000))),
                (status, fields, epochMillis) -> {
                    throw new NoClassDefFoundError("a/library/of/the/Reader");
                });
    }

    @ParameterizedTest
    @MethodSource("failingReaders")
    void aReaderWithoutAnAnswerSaysNothing(RateLimitHeaderReader reader) {
        runner("rate-limit.clients.partner.policy=reject")
                .withBean(RateLimitHeaderReader.class, () -> reader)
                .run(context -> {
                    LimitedClient client =
                            context.getBean(LimitedClients.class).of(URI.create("https://partner.example"));
                    client.enter(request("/")).answered(200, name -> null);
                    client.enter(request("/")).answered(200, name -> null);
                });
    }

    @Test
    void aReaderThatFailsEndsNothing() {
        ResponseLimits used = new ResponseLimits(
                0, List.of(new ResponseLimits.Quota("a", 9, 1, ResponseLimits.Quota.UNKNOWN, 20_000_000_000L)));
        RateLimitHeaderReader reader = (status, fields, epochMillis) -> fields.apply("A") == null ? null : used;
        runner("rate-limit.clients.partner.policy=reject")
                .withBean(RateLimitHeaderReader.class, () -> reader)
                .run(context -> {
                    LimitedClient client =
                            context.getBean(LimitedClients.class).of(URI.create("https://partner.example"));
                    client.enter(request("/")).answered(200, name -> List.of("0"));
                    ticker.advance(Duration.ofSeconds(19));
                    client.enter(request("/")).answered(200, name -> null);
                    assertRefusedBy("clients.partner", client);
                });
    }

    @ParameterizedTest
    @ValueSource(strings = {"uri", "{method, uri}"})
    void theAddressIsAKey(String key) {
        runner(
                        "rate-limit.clients.partner.policy=reject",
                        "rate-limit.clients.partner.limits=partner",
                        "rate-limit.limits.partner.rate=1/h",
                        "rate-limit.clients.partner.key=" + key)
                .run(context -> {
                    LimitedClient client =
                            context.getBean(LimitedClients.class).of(URI.create("https://partner.example"));
                    client.enter(request("/a"));
                    client.enter(request("/b"));
                    assertThatThrownBy(() -> client.enter(request("/a")))
                            .isInstanceOf(RateLimitExceededException.class);
                });
    }

    @Test
    void aReportShowsKeysAsItsReaderMaySeeThem() {
        runner("rate-limit.clients.partner.key=header('X-Account')").run(context -> {
            LimitedClient client = context.getBean(LimitedClients.class).of(URI.create("https://partner.example"));
            client.enter(
                    new OutgoingRequest("GET", URI.create("https://partner.example/"), name -> List.of("sk-secret")));
            assertThat(client.report(key -> "masked").toString())
                    .contains("key=masked")
                    .doesNotContain("secret");
        });
    }

    @Test
    void anObjectThatIsNoKeyIsExplained() {
        runner("rate-limit.clients.partner.key=uri.toURL()").run(context -> {
            LimitedClient client = context.getBean(LimitedClients.class).of(URI.create("https://partner.example"));
            assertThatThrownBy(() -> client.enter(request("/a")))
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContaining("rate-limit.clients.partner.key")
                    .hasMessageContaining("the call was not made");
        });
    }

    @Test
    void aKeyHasTheBudgetThatItWasGiven() {
        runner(
                        "rate-limit.clients.partner.policy=reject",
                        "rate-limit.clients.partner.limits=partner",
                        "rate-limit.limits.partner.rate=1/h",
                        "rate-limit.clients.partner.key=uri.path")
                .run(context -> {
                    LimitedClient client =
                            context.getBean(LimitedClients.class).of(URI.create("https://partner.example"));
                    LimitChange three = LimitChange.rate("3/h");
                    TestLimits.of(context).override("partner", "/a", three, null);
                    for (int i = 0; i < 3; i++) {
                        client.enter(request("/a"));
                    }
                    assertThatThrownBy(() -> client.enter(request("/a")))
                            .isInstanceOf(RateLimitExceededException.class);
                    client.enter(request("/b"));
                    assertThatThrownBy(() -> client.enter(request("/b")))
                            .isInstanceOf(RateLimitExceededException.class);
                });
    }

    @ParameterizedTest
    @ValueSource(strings = {"header('X-Account')", "header('X-Account') ?: ' '", "header('X-Account')?.trim()"})
    void aCallWithoutAKeyFollowsMissingKey(String key) {
        runner(
                        "rate-limit.clients.partner.policy=reject",
                        "rate-limit.clients.partner.limits=skips,shares",
                        "rate-limit.limits.skips.rate=1/h",
                        "rate-limit.limits.skips.missing-key=skip",
                        "rate-limit.limits.shares.rate=2/h",
                        "rate-limit.clients.other.hosts=other.example",
                        "rate-limit.clients.other.limits=denies",
                        "rate-limit.limits.denies.rate=1/h",
                        "rate-limit.limits.denies.missing-key=deny",
                        "rate-limit.clients.unkeyed.hosts=unkeyed.example",
                        "rate-limit.clients.unkeyed.limits=denies",
                        "rate-limit.clients.partner.key=" + key,
                        "rate-limit.clients.other.key=" + key)
                .run(context -> {
                    LimitedClients clients = context.getBean(LimitedClients.class);
                    LimitedClient client = clients.of(URI.create("https://partner.example"));
                    client.enter(request("/"));
                    client.enter(request("/"));
                    assertRefusedBy("shares", client);
                    assertRefusedBy("denies", clients.of(URI.create("https://other.example")));
                    clients.of(URI.create("https://unkeyed.example")).enter(request("/"));
                });
    }

    /** A limit that methods use, too, may say for them what a call of a client has not. */
    @Test
    void whatCallsOfClientsDoNotReadIsWarnedOf(CapturedLog output) {
        runner(
                        "rate-limit.clients.partner.limits=weighed,plain,keyed",
                        "rate-limit.limits.weighed.rate=9/h",
                        "rate-limit.limits.weighed.permits=5",
                        "rate-limit.limits.weighed.when=true",
                        "rate-limit.limits.keyed.rate=9/h",
                        "rate-limit.limits.keyed.key=host",
                        "rate-limit.limits.keyed.fallback=instead",
                        "rate-limit.clients.other.hosts=other.example",
                        "rate-limit.clients.other.key=host",
                        "rate-limit.clients.other.limits=keyed-there",
                        "rate-limit.limits.keyed-there.rate=9/h",
                        "rate-limit.limits.keyed-there.key=host",
                        "rate-limit.limits.plain.rate=9/h")
                .run(context -> {
                    LimitedClient client =
                            context.getBean(LimitedClients.class).of(URI.create("https://partner.example"));
                    client.enter(request("/"));
                    assertThat(output)
                            .contains(
                                    "Rate limit 'weighed' (rate-limit.clients.partner.limits) sets {permits=5, when=true},"
                                            + " which calls of clients ignore")
                            .contains("Rate limit 'keyed' (rate-limit.clients.partner.limits) sets {fallback=instead,"
                                    + " key=host}, which calls of clients ignore")
                            .doesNotContain("Rate limit 'keyed-there' (rate-limit.clients.other.limits) sets")
                            .doesNotContain("Rate limit 'plain' (rate-limit.clients.partner.limits) sets");
                    assertThat(TestLimits.of(context).peek("weighed", null).remaining())
                            .isEqualTo(8);
                });
    }

    private static void assertRefusedBy(String limit, LimitedClient client) {
        assertRefusedBy(limit, client, "/");
    }

    private static void assertRefusedBy(String limit, LimitedClient client, String path) {
        assertThatThrownBy(() -> client.enter(request(path)))
                .isInstanceOfSatisfying(
                        RateLimitExceededException.class,
                        refusal -> assertThat(refusal.limit()).isEqualTo(limit));
    }

    @Test
    void aBackendThatFailsFailsTheCallWhichIsNotInFlightThen() {
        runner(
                        "rate-limit.clients.partner.limits=partner",
                        "rate-limit.limits.partner.rate=1/h",
                        "rate-limit.limits.partner.backend=torn-tape")
                .withBean(TornTape.class)
                .run(context -> {
                    LimitedClient client =
                            context.getBean(LimitedClients.class).of(URI.create("https://partner.example"));
                    for (int i = 0; i < 2; i++) {
                        assertThat(client.enterAsync(request("/"), null))
                                .failsWithin(Duration.ZERO)
                                .withThrowableThat()
                                .withMessageContaining("torn");
                    }
                });
    }

    @Test
    void aDryRunReportsNoPauseThatHoldsNobody(CapturedLog output) {
        runner(
                        "rate-limit.clients.partner.policy=shadow",
                        "rate-limit.clients.partner.limits=partner",
                        "rate-limit.limits.partner.rate=9/h",
                        "rate-limit.limits.partner.backend=mute")
                .withBean(Mute.class)
                .run(context -> {
                    LimitedClient client =
                            context.getBean(LimitedClients.class).of(URI.create("https://partner.example"));
                    client.enter(request("/")).answered(429, name -> name.equals("Retry-After") ? List.of("10") : null);
                    context.getBean(Mute.class).listener.accept(":partner", Duration.ofSeconds(30));
                    assertThat(output)
                            .contains(
                                    "Client 'partner' would pause for 10s: a 429",
                                    "Client 'partner' would pause for 30s: another")
                            .doesNotContain("pauses for");
                    assertThat(client.pausedKeys()).isZero();
                    assertThat(client.report(key -> "").toString())
                            .contains("waiting=0")
                            .doesNotContain("pausedFor");
                });
    }

    @Test
    void aPauseThatCannotBeSharedHoldsHereAndLeavesTheAnswerAsItIs() {
        runner(
                        "rate-limit.clients.partner.policy=reject",
                        "rate-limit.clients.partner.limits=partner",
                        "rate-limit.limits.partner.rate=9/h",
                        "rate-limit.limits.partner.backend=mute")
                .withBean(Mute.class)
                .run(context -> {
                    LimitedClient client =
                            context.getBean(LimitedClients.class).of(URI.create("https://partner.example"));
                    ClientCall call = client.enter(request("/"));
                    call.answered(429, name -> name.equals("Retry-After") ? List.of("10") : null);
                    call.end();
                    assertRefusedBy("clients.partner", client);
                    ticker.advance(Duration.ofSeconds(10));
                    client.enter(request("/"));
                });
    }

    /** A reply that takes its time delays no call, and is no sign that a limit is too low. */
    @Test
    void onlyCallsThatHaveWaitedAreDelayed() {
        runner(
                        "rate-limit.clients.partner.limits=partner",
                        "rate-limit.limits.partner.rate=2/s",
                        "rate-limit.limits.partner.backend=slow")
                .withBean(Slow.class, () -> new Slow(ticker))
                .run(context -> {
                    LimitedClient client =
                            context.getBean(LimitedClients.class).of(URI.create("https://partner.example"));
                    List<CompletableFuture<ClientCall>> calls = new ArrayList<>();
                    for (int i = 0; i < 3; i++) {
                        calls.add(client.enterAsync(request("/"), null));
                    }
                    ticker.advance(Slow.REPLY);
                    assertThat(calls.stream().filter(CompletableFuture::isDone)).hasSize(2);
                    assertThat(client.delayed()).isZero();
                    ticker.advance(Duration.ofMillis(500));
                    assertThat(calls).allMatch(CompletableFuture::isDone);
                    assertThat(client.delayed()).as("by the limit").isEqualTo(1);

                    ticker.advance(Duration.ofSeconds(1));
                    calls.get(0).join().answered(429, name -> name.equals("Retry-After") ? List.of("1") : null);
                    CompletableFuture<ClientCall> paused = client.enterAsync(request("/"), null);
                    ticker.advance(Duration.ofSeconds(1).plus(Slow.REPLY));
                    assertThat(paused).isCompleted();
                    assertThat(client.delayed()).as("by a pause").isEqualTo(2);
                });
    }

    /** Replies later, as a backend elsewhere. */
    record Slow(Ticker ticker) implements LimiterFactory {

        private static final Duration REPLY = Duration.ofMillis(2);

        @Override
        public String backend() {
            return "slow";
        }

        @Override
        public RateLimiter create(Limit limit, String tier, Map<String, String> properties) {
            RateLimiter replying = new InMemoryRateLimiter(limit, ticker, 1);
            return (RateLimiter) Proxy.newProxyInstance(
                    getClass().getClassLoader(), new Class<?>[] {RateLimiter.class}, (proxy, method, arguments) -> {
                        if (!method.getName().equals("reserveAsync")) {
                            return method.invoke(replying, arguments);
                        }
                        CompletableFuture<Reservation> reply = new CompletableFuture<>();
                        Reservation decided = replying.reserve((Call) arguments[0]);
                        Runnable unused =
                                ticker.schedule(ticker.nanos() + REPLY.toNanos(), () -> reply.complete(decided));
                        return reply;
                    });
        }
    }

    static final class Mute implements LimiterFactory, SharedPauses {

        private BiConsumer<String, Duration> listener;

        @Override
        public String backend() {
            return "mute";
        }

        @Override
        public RateLimiter create(Limit limit, String tier, Map<String, String> properties) {
            return new InMemoryRateLimiter(limit);
        }

        @Override
        public SharedPauses sharedPauses() {
            return this;
        }

        @Override
        public CompletionStage<?> publish(String name, Duration lasting) {
            throw new IllegalStateException("closed");
        }

        @Override
        public void follow(BiConsumer<String, Duration> listener) {
            this.listener = listener;
        }
    }

    static final class TornTape implements LimiterFactory {

        @Override
        public String backend() {
            return "torn-tape";
        }

        @Override
        public RateLimiter create(Limit limit, String tier, Map<String, String> properties) {
            return (RateLimiter) Proxy.newProxyInstance(
                    getClass().getClassLoader(), new Class<?>[] {RateLimiter.class}, (proxy, method, arguments) -> {
                        if (method.isDefault()) {
                            return InvocationHandler.invokeDefault(proxy, method, arguments);
                        }
                        if (method.getName().equals("limit")) {
                            return limit;
                        }
                        throw new IllegalStateException("the tape is torn");
                    });
        }
    }
}
