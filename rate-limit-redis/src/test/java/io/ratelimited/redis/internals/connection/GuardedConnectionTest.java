package io.ratelimited.redis.internals.connection;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.redis.LogLines;
import io.ratelimited.redis.RedisProcess;
import io.ratelimited.redis.internals.connection.GuardedConnection.DeliveryKind;
import io.ratelimited.redis.internals.connection.ScriptedServers.Link;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.UnaryOperator;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;
import reactor.core.publisher.Mono;

/** One thread on a time that the test moves: nothing here waits, and nothing comes by chance. */
class GuardedConnectionTest {

    /** Until those that are away have been looked at. */
    private static final Duration LOOK = Duration.ofMillis(200);

    @RegisterExtension
    final LogLines log = new LogLines();

    private final ManualTicker clock = new ManualTicker();
    private final ScriptedServers servers = new ScriptedServers("one:1", "two:2");
    private final GuardedConnection connection = servers.connect(clock);
    private final Link one = servers.link(0);
    private final Link two = servers.link(1);

    @AfterEach
    void close() {
        connection.close();
    }

    private CompletableFuture<List<Object>> ask(String key) {
        return connection.eval(Script.DECIDE, new String[] {key}, new ScriptArguments());
    }

    private void silence(String key) {
        CompletableFuture<List<Object>> unanswered = ask(key);
        clock.advance(ScriptedServers.TIMEOUT);
        assertThat(unanswered)
                .failsWithin(Duration.ZERO)
                .withThrowableThat()
                .withCauseInstanceOf(TimeoutException.class);
    }

    private void refuse(Link link, String key) {
        for (int i = 0; i < 5; i++) {
            ask(key);
            link.fail("OOM");
        }
    }

    /** The connection to a server that was made last. */
    private Link last(String address) {
        return servers.links.stream()
                .filter(link -> link.address.equals(address))
                .reduce((first, second) -> second)
                .orElseThrow();
    }

    @Test
    void aReplyThatIsLateIsAFailureAndTheServerIsAway() {
        assertThat(connection.connected()).isCompleted();
        assertThat(connection.isUp()).isTrue();
        silence("one:1/a");
        assertThat(connection.isDown("one:1/a")).isTrue();
        assertThat(connection.isDown("two:2/a")).isFalse();
        assertThat(connection.health().timeouts()).isEqualTo(1);
        int before = one.keys.size();
        assertThat(ask("one:1/a")).isCompletedExceptionally();
        assertThat(one.keys).as("nothing is sent while the breaker is open").hasSize(before);
    }

    /** The server is well: the call is divided. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "TRYAGAIN Multiple keys request during rehashing of slot",
                "CROSSSLOT Keys in request don't hash to the same slot"
            })
    void keysThatAreNotTogetherAreNoFailureOfTheServer(String error) {
        for (int i = 0; i < 20; i++) {
            CompletableFuture<List<Object>> call = ask("one:1/a");
            one.fail(error);
            assertThat(call).isCompletedExceptionally();
        }
        assertThat(connection.isDown("one:1/a")).isFalse();
        assertThat(connection.health().errors()).isZero();
        assertThat(connection.lastError()).isNull();
    }

    @Test
    void aSingleLateReplyIsNoOutage() {
        silence("one:1/a");
        assertThat(connection.isDown("one:1/a")).isTrue();
        assertThat(connection.isUp()).isTrue();
        clock.advance(ScriptedServers.TIMEOUT.minusMillis(1));
        one.probes.remove().complete(List.of(1L));
        clock.advance(Duration.ofMillis(1));
        assertThat(connection.isDown("one:1/a")).isFalse();
        assertThat(connection.isUp()).isTrue();
        assertThat(log.all()).isEmpty();
    }

    @Test
    void theSecondLateReplyInARowIsAnOutage() {
        silence("one:1/a");
        clock.advance(ScriptedServers.TIMEOUT);
        assertThat(connection.isUp()).isFalse();
        assertThat(log.all()).hasSize(1);
        assertThat(log.all().get(0))
                .contains("(java.util.concurrent.TimeoutException: Redis did not respond within "
                        + ScriptedServers.TIMEOUT.toMillis()
                        + " ms: the server, the network or this JVM was too slow)")
                .endsWith(". Check the connection, the load of this JVM, and rate-limit.redis.timeout. [RL-301]");
        clock.advance(LOOK.minus(ScriptedServers.TIMEOUT.multipliedBy(2)));
        last("one:1").probes.remove().complete(List.of(1L));
        assertThat(connection.isUp()).isTrue();
        assertThat(log.all()).hasSize(2);
    }

    @Test
    void aSingleLateHeartbeatKeepsNobodyFromAsking() {
        CompletableFuture<List<Object>> heartbeat =
                connection.evalInBackground(Script.HEARTBEAT, new String[] {"one:1/nodes"}, new ScriptArguments());
        clock.advance(ScriptedServers.TIMEOUT);
        assertThat(heartbeat).isCompletedExceptionally();
        assertThat(connection.isDown("one:1/a")).isFalse();
        assertThat(connection.isUp()).isTrue();
        CompletableFuture<List<Object>> call = ask("one:1/a");
        one.asked.removeLast().complete(List.of(1L));
        assertThat(call).isCompleted();
        clock.advance(ScriptedServers.TIMEOUT);
        assertThat(connection.isUp()).isTrue();
        assertThat(log.all()).isEmpty();
    }

    @ParameterizedTest
    @EnumSource
    void aSingleLateDeliveryKeepsNobodyFromAsking(DeliveryKind kind) {
        connection.deliver(kind, List.of("one:1/b"), ScriptArguments::new, reply -> {});
        clock.advance(ScriptedServers.TIMEOUT);
        assertThat(connection.health().timeouts()).isEqualTo(1);
        assertThat(connection.isDown("one:1/a")).isFalse();
        CompletableFuture<List<Object>> call = ask("one:1/a");
        one.asked.removeLast().complete(List.of(1L));
        assertThat(call).isCompleted();
    }

    @Test
    void aServerThatIsSilentAfterALateHeartbeatIsAway() {
        connection.evalInBackground(Script.HEARTBEAT, new String[] {"one:1/nodes"}, new ScriptArguments());
        clock.advance(ScriptedServers.TIMEOUT.multipliedBy(2));
        assertThat(connection.isDown("one:1/a")).isTrue();
        assertThat(connection.isUp()).isFalse();
    }

    @Test
    void whileTheApplicationStartsAReplyHasTwoSeconds() {
        connection.starting();
        CompletableFuture<List<Object>> slow = ask("one:1/a");
        clock.advance(Duration.ofMillis(1_999));
        one.answer();
        assertThat(slow).isCompleted();
        CompletableFuture<List<Object>> silent = ask("one:1/a");
        clock.advance(Duration.ofSeconds(2));
        assertThat(silent).isCompletedExceptionally();
        clock.advance(ScriptedServers.TIMEOUT);
        assertThat(connection.isUp()).isFalse();
        one.probes.remove().completeExceptionally(new IOException("error"));
        connection.started();
        ask("two:2/a");
        clock.advance(ScriptedServers.TIMEOUT);
        assertThat(connection.isDown("two:2/a")).isTrue();
    }

    @Test
    void whileTheApplicationStartsAReplyHasALongerTimeoutAllTheSame() {
        ScriptedServers distant = new ScriptedServers("one:1");
        try (GuardedConnection patient = distant.connect(clock, Duration.ofSeconds(20))) {
            patient.starting();
            CompletableFuture<List<Object>> slow =
                    patient.eval(Script.DECIDE, new String[] {"one:1/a"}, new ScriptArguments());
            clock.advance(Duration.ofMillis(19_999));
            distant.link(0).answer();
            assertThat(slow).isCompletedWithValue(List.of(1L));
        }
    }

    @Test
    void aLateReplyAfterARedirectionIsChargedToTheServerThatWasSilent() {
        CompletableFuture<List<Object>> reply = ask("one:1/a");
        one.fail("MOVED 1 two:2");
        assertThat(two.keys).containsExactly("one:1/a");
        clock.advance(ScriptedServers.TIMEOUT);
        assertThat(reply).isCompletedExceptionally();
        assertThat(connection.isDown("one:1/b")).isFalse();
        assertThat(connection.isDown("two:2/b")).isTrue();
    }

    @Test
    void aServerThatHadOnlyPartOfTheTimeoutIsNotSilent() {
        CompletableFuture<List<Object>> reply = ask("one:1/a");
        clock.advance(ScriptedServers.TIMEOUT.minusMillis(5));
        one.fail("ASK 1 two:2");
        clock.advance(Duration.ofMillis(5));
        assertThat(reply).isCompletedExceptionally();
        assertThat(connection.isUp()).isTrue();
    }

    @Test
    void aRedirectionSendsNothingToAServerThatIsAway() {
        silence("two:2/a");
        int before = two.keys.size();
        CompletableFuture<List<Object>> reply = ask("one:1/a");
        one.fail("MOVED 1 two:2");
        assertThat(reply).isCompletedExceptionally();
        assertThat(two.keys).hasSize(before);
        assertThat(connection.isDown("one:1/a")).isFalse();
    }

    @Test
    void aServerThatAnswersAProbeInTimeDecidesAgain() {
        AtomicInteger recoveries = new AtomicInteger();
        connection.onRecovery(recoveries::incrementAndGet);
        refuse(one, "one:1/a");
        assertThat(connection.isDown("one:1/a")).isTrue();
        clock.advance(LOOK);
        assertThat(one.probes).hasSize(1);
        one.probes.remove().complete(List.of(1L));
        assertThat(connection.isUp()).isTrue();
        assertThat(recoveries).hasValue(1);
    }

    /** Its address may be that of another server by now, as behind Sentinel. */
    @Test
    void aServerThatAnswersWithErrorsAndThenNotAtAllIsConnectedAnew() {
        refuse(one, "one:1/a");
        clock.advance(LOOK);
        assertThat(one.probes).hasSize(1);
        clock.advance(LOOK);
        Link other = last("one:1");
        assertThat(other).isNotSameAs(one);
        other.probes.remove().complete(List.of(1L));
        assertThat(connection.isUp()).isTrue();
    }

    /** As many commands are under way on the connection as may be. */
    @Test
    void aSilentServerIsConnectedAnewAlsoIfItsConnectionTakesNoProbe() {
        silence("one:1/a");
        one.probes.remove().completeExceptionally(Replies.notSent("full"));
        clock.advance(LOOK);
        one.probes.clear();
        assertThat(last("one:1")).isNotSameAs(one);
    }

    @Test
    void aPrimaryThatTakesOverFromOneThatIsAwayIsToldFirstWhatMustNotBeLost() {
        connection.onRecovery(() ->
                connection.deliver(DeliveryKind.END, List.of("new:3/registered"), ScriptArguments::new, reply -> {}));
        silence("one:1/a");
        connection.deliver(DeliveryKind.END, List.of("new:3/ended"), ScriptArguments::new, reply -> {});
        servers.primaries.remove("one:1");
        servers.primaries.add("new:3");
        clock.advance(LOOK);
        Link taking = last("new:3");
        assertThat(connection.isDown("new:3/a")).isTrue();
        assertThat(taking.keys).isEmpty();
        taking.probes.remove().complete(List.of(1L));
        assertThat(taking.keys).containsExactly("new:3/ended", "new:3/registered");
        assertThat(connection.isUp()).isTrue();
    }

    @Test
    void aProbeThatIsAnsweredLateIsSentAgainAtOnce() {
        silence("one:1/a");
        clock.advance(LOOK);
        clock.advance(ScriptedServers.TIMEOUT.plusMillis(1));
        one.probes.remove().complete(List.of(1L));
        assertThat(connection.isDown("one:1/a")).as("late").isTrue();
        assertThat(one.probes).hasSize(1);
        one.probes.remove().complete(List.of(1L));
        assertThat(connection.isDown("one:1/a")).isFalse();
    }

    @Test
    void aSilentServerIsProbedAtOnceAndIsBackWhenItGoesOn() {
        silence("one:1/a");
        assertThat(one.probes).hasSize(1);
        one.probes.remove().complete(List.of(1L));
        assertThat(connection.isUp()).isTrue();
    }

    @Test
    void ofTwoConnectionsThatAnswerOneIsUsedAndTheOtherClosed() {
        AtomicInteger recoveries = new AtomicInteger();
        connection.onRecovery(recoveries::incrementAndGet);
        silence("one:1/a");
        clock.advance(LOOK);
        Link other = last("one:1");
        assertThat(other).isNotSameAs(one);
        other.probes.remove().complete(List.of(1L));
        one.probes.remove().complete(List.of(1L));
        assertThat(recoveries).hasValue(1);
        clock.advance(ScriptedServers.TIMEOUT);
        assertThat(one.closed).isTrue();
        assertThat(other.closed).isFalse();
        ask("one:1/b");
        assertThat(other.keys).containsExactly("one:1/b");
    }

    @Test
    void whatAnotherConnectionAnswersDoesNotEndTheSearch() {
        silence("one:1/a");
        clock.advance(LOOK);
        Link other = last("one:1");
        other.probes.remove().completeExceptionally(new IllegalStateException("OOM"));
        assertThat(other.closed).isTrue();
        clock.advance(LOOK);
        assertThat(last("one:1")).as("still silent on the first one").isNotSameAs(other);
    }

    @Test
    void aConnectionThatBreaksWhileItIsProbedIsReplaced() {
        refuse(one, "one:1/a");
        clock.advance(LOOK);
        servers.refusal = "refused";
        one.breakOff();
        servers.refusal = null;
        one.probes.remove().complete(List.of(1L));
        assertThat(connection.isUp()).as("by the answer to a broken one").isFalse();
        clock.advance(LOOK);
        assertThat(last("one:1")).isNotSameAs(one);
        last("one:1").probes.remove().complete(List.of(1L));
        assertThat(connection.isUp()).isTrue();
        ask("one:1/b");
        assertThat(last("one:1").keys).containsExactly("one:1/b");
    }

    @Test
    void aCommandWhoseTimeEndsWhileItIsSentIsTakenBack() {
        CompletableFuture<List<Object>> reply = ask("one:1/a");
        two.whileSending = () -> clock.advance(ScriptedServers.TIMEOUT);
        one.fail("MOVED 1 two:2");
        assertThat(reply).isCompletedExceptionally();
        assertThat(two.takenBack).containsExactly(two.asked.remove());
    }

    /** Nothing follows from the changes of a server. */
    private static final class Nobody implements Server.Owner {

        @Override
        public CompletionStage<List<Object>> probe(RedisLink link, String key) {
            return new CompletableFuture<>();
        }

        @Override
        public void connected() {}

        @Override
        public void reconnected() {}

        @Override
        public void away(Throwable reason) {}

        @Override
        public void stillAway(Throwable reason) {}

        @Override
        public void answers(Server server) {}
    }

    @Test
    void aConnectionThatIsMadeWhileItsServerIsRetiredIsClosed() throws InterruptedException {
        Threads threads = new Threads(clock, Runnable::run, Runnable::run);
        Server server = new Server("new:3", servers, threads, ScriptedServers.TIMEOUT.toNanos(), new Nobody());
        Thread connecting = new Thread(server::connect);
        synchronized (server) {
            connecting.start();
            while (connecting.getState() != Thread.State.BLOCKED && connecting.isAlive()) {
                Thread.onSpinWait();
            }
            server.retire();
        }
        connecting.join();
        assertThat(server.link()).isNull();
        assertThat(last("new:3").closed).isTrue();
    }

    @Test
    void whatAnOlderSearchFindsDoesNotReplaceWhatANewerOneHasFound() {
        servers.holding = true;
        Threads threads = new Threads(clock, Runnable::run, Runnable::run);
        Primaries primaries =
                new Primaries(servers, threads, new Health(threads), ScriptedServers.TIMEOUT.toNanos(), new Nobody());
        primaries.discover();
        clock.advance(LOOK);
        primaries.discover();
        servers.searches.get(1).complete(Set.of("new:3"));
        servers.searches.get(0).complete(Set.of("one:1"));
        assertThat(primaries.all()).extracting(Server::address).containsExactly("new:3");
        assertThat(last("new:3").closed).isFalse();
    }

    @Test
    void aConnectionThatBreaksIsReplacedAtOnceAndIsNoOutage() {
        one.breakOff();
        assertThat(one.closed).isTrue();
        ask("one:1/a");
        assertThat(last("one:1").keys).containsExactly("one:1/a");
        assertThat(connection.isUp()).isTrue();
    }

    /** Under load several are written before the client hears of the break. */
    @Test
    void callsThatABrokenConnectionDoesNotTakeAreNoOutage() {
        for (int i = 0; i < 5; i++) {
            ask("one:1/a");
            one.asked.remove().completeExceptionally(new IOException("Broken pipe"));
        }
        assertThat(connection.isUp()).isTrue();
    }

    @Test
    void theLastReasonWhyAServerCannotBeReachedIsTold() {
        servers.refusal = "closed";
        one.breakOff();
        assertThat(connection.lastError()).contains("closed");
        servers.refusal = "wrong password";
        clock.advance(LOOK);
        assertThat(connection.lastError()).contains("wrong password");
    }

    @Test
    void aServerThatIsNoPrimaryAnyMoreIsNoOutage() {
        clock.advance(LOOK);
        CompletableFuture<List<Object>> reply = ask("two:2/a");
        servers.primaries.remove("two:2");
        ask("one:1/a");
        one.fail("MOVED 1 one:1");
        one.answer();
        clock.advance(LOOK);
        assertThat(reply).isCompletedExceptionally();
        assertThat(connection.isUp()).isTrue();
        assertThat(connection.lastError()).isNull();
        assertThat(two.closed).isTrue();
    }

    @Test
    void whatIsDeliveredComesBeforeAnyQuestionAndInItsOrder() {
        List<String> order = new ArrayList<>();
        connection.onRecovery(() -> {
            order.addAll(one.keys.subList(1, one.keys.size()));
            assertThat(connection.isDown("one:1/a")).isTrue();
            connection.deliver(DeliveryKind.END, List.of("one:1/registered"), ScriptArguments::new, reply -> {});
        });
        silence("one:1/a");
        connection.deliver(DeliveryKind.END, List.of("one:1/ended"), ScriptArguments::new, reply -> {});
        connection.deliver(DeliveryKind.END, List.of("one:1/nothing"), () -> null, reply -> {});
        connection.deliver(DeliveryKind.END, List.of("two:2/other"), ScriptArguments::new, reply -> {});
        assertThat(two.keys).containsExactly("two:2/other");
        one.probes.remove().complete(List.of(1L));
        assertThat(order).containsExactly("one:1/ended");
        assertThat(one.keys).containsExactly("one:1/a", "one:1/ended", "one:1/registered");
    }

    @Test
    void whatMayHaveRunIsDeliveredAgainOnlyIfThatDoesNoHarm() {
        connection.deliver(DeliveryKind.END, List.of("one:1/twice"), ScriptArguments::new, reply -> {});
        connection.deliver(DeliveryKind.CHARGE, List.of("one:1/once"), ScriptArguments::new, reply -> {});
        clock.advance(ScriptedServers.TIMEOUT);
        clock.advance(LOOK);
        last("one:1").probes.remove().complete(List.of(1L));
        assertThat(last("one:1").keys).containsExactly("one:1/twice");
    }

    /** Otherwise a caller who finds one of them connected finds no server for the keys of another. */
    @Test
    void allPrimariesAreKnownBeforeAnyOfThemIsConnected() {
        ScriptedServers both = new ScriptedServers("one:1", "two:2");
        Threads threads = new Threads(clock, Runnable::run, Runnable::run);
        Primaries primaries =
                new Primaries(both, threads, new Health(threads), ScriptedServers.TIMEOUT.toNanos(), new Nobody());
        List<Integer> known = new ArrayList<>();
        both.beforeConnecting = () -> known.add(primaries.all().size());
        primaries.discover();
        assertThat(known).containsExactly(2, 2);
    }

    /** The client waits without end for a provider of credentials that does not answer. */
    @Test
    void whatBlocksForLongerThanItsBoundHoldsUpNothingElse() throws InterruptedException {
        ManualTicker time = new ManualTicker();
        try (Threads threads = Threads.real(time, () -> {})) {
            CountDownLatch blocked = new CountDownLatch(8);
            List<CompletableFuture<String>> hanging = new ArrayList<>();
            for (int i = 0; i < 8; i++) {
                hanging.add(threads.call(
                        () -> {
                            blocked.countDown();
                            return CompletableFuture.completedFuture(
                                    Mono.<String>never().block());
                        },
                        100,
                        unused -> {}));
            }
            blocked.await();
            time.advance(Duration.ofMillis(100));
            assertThat(hanging).allMatch(CompletableFuture::isCompletedExceptionally);
            assertThat(threads.call(() -> CompletableFuture.completedFuture("next"), 100, unused -> {}))
                    .succeedsWithin(Duration.ofSeconds(20))
                    .isEqualTo("next");
        }
    }

    /** Looking up the names of all of them blocks; more wait for a thread than there are threads. */
    @Test
    void aClusterOfTwelvePrimariesIsConnectedWithoutAnOutage() throws InterruptedException {
        ScriptedServers twelve = new ScriptedServers(
                IntStream.range(0, 12).mapToObj(i -> "node:" + i).toArray(String[]::new));
        CountDownLatch blocked = new CountDownLatch(7);
        CountDownLatch end = new CountDownLatch(1);
        twelve.beforeConnecting = () -> {
            blocked.countDown();
            try {
                end.await();
            } catch (InterruptedException ex) {
                Thread.currentThread().interrupt();
            }
        };
        try (GuardedConnection cluster = new GuardedConnection(
                twelve,
                new KeyNames("rl"),
                ScriptedServers.TIMEOUT.toNanos(),
                new ManualTicker(),
                // No attempt is late, however busy the machine is: this time stands still.
                Threads.real(new ManualTicker(), () -> {}),
                false,
                UnaryOperator.identity())) {
            blocked.await();
            end.countDown();
            RedisProcess.until(() -> twelve.connections() == 12, "connected", Duration.ofMinutes(1));
            RedisProcess.until(cluster::isUp, "up", Duration.ofMinutes(1));
            assertThat(cluster.lastError()).isNull();
        }
    }

    /** As where a cluster serves the slots that it has, and a shard is gone. */
    @Test
    void aKeyWithoutAPrimaryHasOneOutageUntilItHasOne() {
        String key = "three:3/a";
        assertThat(ask(key)).isCompletedExceptionally();
        Object outage = connection.outage(key);
        assertThat(outage).isNotNull();
        for (int look = 0; look < 5; look++) {
            clock.advance(LOOK);
            assertThat(ask(key)).isCompletedExceptionally();
            assertThat(connection.outage(key)).isSameAs(outage);
        }
        assertThat(connection.isUp()).isFalse();
        assertThat(connection.isDown()).as("the others decide").isFalse();
        assertThat(connection.isDown("one:1/a")).isFalse();
        assertThat(log.all()).hasSize(1);
        assertThat(log.all().get(0)).contains("[RL-301]").contains("slot");
        servers.primaries.add("three:3");
        clock.advance(LOOK);
        assertThat(connection.outage(key)).isNull();
        assertThat(connection.isUp()).isTrue();
        assertThat(log.all()).hasSize(2);
        assertThat(ask(key)).isNotDone();
        servers.primaries.remove("three:3");
        assertThat(ask("four:4/a")).isCompletedExceptionally();
        clock.advance(LOOK);
        assertThat(connection.outage(key)).isNotNull().isNotSameAs(outage);
    }

    @Test
    void aSlotThatComesToAPrimaryWhichWasKnownEndsTheOutageOfItsKeys() {
        String key = "three:3/a";
        assertThat(ask(key)).isCompletedExceptionally();
        Object outage = connection.outage(key);
        servers.moved = "two:2";
        clock.advance(LOOK);
        assertThat(connection.outage(key)).isNull();
        assertThat(connection.isUp()).isTrue();
        servers.moved = null;
        assertThat(ask(key)).isCompletedExceptionally();
        assertThat(connection.outage(key)).isNotNull().isNotSameAs(outage);
    }
}
