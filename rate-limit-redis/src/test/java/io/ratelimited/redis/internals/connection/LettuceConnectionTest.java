package io.ratelimited.redis.internals.connection;

import static org.assertj.core.api.Assertions.assertThat;

import io.lettuce.core.ClientOptions;
import io.lettuce.core.KillArgs;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisException;
import io.lettuce.core.RedisURI;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.cluster.ClusterClientOptions;
import io.lettuce.core.cluster.ClusterTopologyRefreshOptions;
import io.lettuce.core.protocol.RedisCommand;
import io.netty.buffer.Unpooled;
import io.ratelimited.redis.RedisProcess;
import io.ratelimited.redis.RedisServers;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What a connection of Lettuce counts as under way, and what a client of ours does with the options of the application. */
class LettuceConnectionTest {

    private static final Duration PATIENCE = Duration.ofSeconds(20);

    @RegisterExtension
    static final RedisServers REDIS = RedisServers.standalone();

    private static LettuceLink connect() {
        return REDIS.closeLater((LettuceLink)
                REDIS.connector().connect("").toCompletableFuture().join());
    }

    private static CompletableFuture<List<Object>> probe(LettuceLink link, String... keys) {
        return link.eval(Script.PROBE, keys, new ScriptArguments().add(""), false)
                .toCompletableFuture();
    }

    @Test
    void nothingIsUnderWayAfterwardsWhateverBecameOfIt() {
        LettuceLink link = connect();
        REDIS.server().ask(commands -> commands.scriptFlush());
        List<CompletableFuture<List<Object>>> calls = new ArrayList<>();
        for (int i = 0; i < 2000; i++) {
            CompletableFuture<List<Object>> call = probe(link, "rl:{" + i + "}:~probe");
            if (i % 3 == 0) {
                call.cancel(false);
            }
            calls.add(call);
            link.delete("rl:{" + i + "}");
        }
        CompletableFuture<List<Object>> broken = link.eval(
                        Script.HEARTBEAT, new String[] {"rl:{nodes}"}, new ScriptArguments(), false)
                .toCompletableFuture();
        RedisProcess.until(
                () -> broken.isDone() && calls.stream().allMatch(CompletableFuture::isDone), "answered", PATIENCE);
        RedisProcess.until(() -> link.pending() == 0, "nothing is pending", PATIENCE);
        assertThat(broken).isCompletedExceptionally();
    }

    @Test
    void nothingIsUnderWayWhenTheConnectionHasBroken() {
        LettuceLink link = connect();
        REDIS.server().freeze();
        List<CompletableFuture<List<Object>>> calls = new ArrayList<>();
        for (int i = 0; i < 2000; i++) {
            calls.add(probe(link, "rl:{" + i + "}:~probe"));
        }
        calls.get(1).cancel(false);
        link.close();
        REDIS.server().thaw();
        RedisProcess.until(() -> calls.stream().allMatch(CompletableFuture::isDone), "failed", PATIENCE);
        RedisProcess.until(() -> link.pending() == 0, "nothing is pending", PATIENCE);
    }

    /** A check goes before the first call of a connection, and has no key either. */
    @Test
    void aScriptWithoutKeysMayBeTheFirstOfAConnection() {
        LettuceLink link = connect();
        List<Object> reply = link.eval(Script.MEMORY, new String[0], new ScriptArguments().add("0 0 0"), false)
                .toCompletableFuture()
                .orTimeout(20, TimeUnit.SECONDS)
                .join();
        assertThat(reply).hasSize(2);
        assertThat(probe(link, "rl:{a}:~probe").orTimeout(20, TimeUnit.SECONDS).join())
                .isNotEmpty();
    }

    /** They have certainly changed nothing: what has to reach Redis is sent again, such as a charge. */
    @Test
    void callsThatABrokenConnectionHasNotTakenWereNotSent() {
        LettuceLink link = connect();
        CompletableFuture<Void> broken = new CompletableFuture<>();
        List<CompletableFuture<List<Object>>> calls = new ArrayList<>();
        link.onBreak(() -> {
            // On the thread of the connection, as calls that are queued while it is busy with the break.
            for (int i = 0; i < 10; i++) {
                calls.add(probe(link, "rl:{" + i + "}:~probe"));
            }
            broken.complete(null);
        });
        REDIS.server().ask(commands -> commands.clientKill(KillArgs.Builder.typeNormal()));
        broken.orTimeout(20, TimeUnit.SECONDS).join();
        assertThat(calls)
                .allSatisfy(call -> assertThat(call.handle((reply, failure) -> failure)
                                .orTimeout(20, TimeUnit.SECONDS)
                                .join())
                        .matches(Replies::isNotSent));
        assertThat(link.pending()).isZero();
    }

    /** Between the end of a socket and Lettuce's report of it, the connection still seems to be open. */
    @Test
    void callsThatLettuceRejectsWereNotSent() {
        RedisClient client = REDIS.client();
        client.setOptions(ClientOptions.builder().autoReconnect(false).build());
        StatefulRedisConnection<String, String> broken = client.connect();
        REDIS.server().ask(commands -> commands.clientKill(KillArgs.Builder.typeNormal()));
        RedisProcess.until(() -> !broken.isOpen(), "broken", PATIENCE);
        @SuppressWarnings("unchecked")
        StatefulRedisConnection<String, String> seemsOpen =
                (StatefulRedisConnection<String, String>) Proxy.newProxyInstance(
                        getClass().getClassLoader(),
                        new Class<?>[] {StatefulRedisConnection.class},
                        (proxy, method, args) ->
                                method.getName().equals("isOpen") ? true : method.invoke(broken, args));
        LettuceLink link = new LettuceLink(seemsOpen, new AtomicBoolean(), Runnable::run, List.of());
        assertThat(probe(link, "rl:{0}:~probe")
                        .handle((reply, failure) -> failure)
                        .join())
                .matches(Replies::isNotSent);
    }

    /** Whatever the text of the failure is: bytes are made just before they are written. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aCallWasNotSentIfItFailsBeforeItsBytesAreMade(boolean made) {
        @SuppressWarnings("unchecked")
        StatefulRedisConnection<String, String> failing =
                (StatefulRedisConnection<String, String>) Proxy.newProxyInstance(
                        getClass().getClassLoader(),
                        new Class<?>[] {StatefulRedisConnection.class},
                        (proxy, method, args) -> {
                            Iterable<?> commands = !method.getName().equals("dispatch")
                                    ? List.of()
                                    : args[0] instanceof Iterable<?> several ? several : List.of(args[0]);
                            for (Object command : commands) {
                                RedisCommand<?, ?, ?> one = (RedisCommand<?, ?, ?>) command;
                                if (made) {
                                    one.encode(Unpooled.buffer());
                                }
                                one.completeExceptionally(new RedisException("any text"));
                            }
                            return method.getReturnType() == boolean.class ? true : null;
                        });
        LettuceLink link = new LettuceLink(failing, new AtomicBoolean(), Runnable::run, List.of());
        assertThat(probe(link, "rl:{0}:~probe")
                        .handle((reply, failure) -> failure)
                        .join())
                .hasMessageContaining("any text")
                .matches(failure -> Replies.isNotSent(failure) != made);
    }

    /** As after an error of the machine: what was taken from the queue is in no command then, and stays pending. */
    @Test
    void aConnectionThatCannotMakeACommandIsReplaced() {
        LettuceLink link = connect();
        CompletableFuture<Void> broken = new CompletableFuture<>();
        link.onBreak(() -> broken.complete(null));
        onItsThread(link, () -> {
            // Sent when this thread goes on.
            String[] keys = {"rl:{1}:~probe"};
            link.eval(Script.HEARTBEAT, keys, new ScriptArguments(), false);
            keys[0] = null;
        });
        broken.orTimeout(20, TimeUnit.SECONDS).join();
    }

    /** The application ends the threads next, whose log has an error for each connection that is still being closed. */
    @Test
    void aClientIsClosedWhenItsConnectionsAre() {
        LettuceConnector connector = REDIS.connector();
        LettuceLink link =
                (LettuceLink) connector.connect("").toCompletableFuture().join();
        Thread test = Thread.currentThread();
        AtomicBoolean busy = new AtomicBoolean();
        AtomicBoolean closing = new AtomicBoolean();
        AtomicBoolean released = new AtomicBoolean();
        onItsThread(link, () -> {
            busy.set(true);
            RedisProcess.until(
                    () -> closing.get() && test.getState() == Thread.State.TIMED_WAITING, "it waits", PATIENCE);
            released.set(true);
        });
        while (!busy.get()) {
            Thread.onSpinWait();
        }
        closing.set(true);
        connector.close();
        assertThat(released).isTrue();
    }

    /** Runs a task on the thread of a connection, which goes on with it after the task. */
    private static void onItsThread(LettuceLink link, Runnable task) {
        Thread test = Thread.currentThread();
        RedisProcess.until(
                () -> {
                    AtomicBoolean taken = new AtomicBoolean();
                    CompletableFuture<Void> begun = new CompletableFuture<>();
                    probe(link, "rl:{0}:~probe").whenComplete((reply, failure) -> {
                        boolean here = Thread.currentThread() == test;
                        taken.set(!here);
                        begun.complete(null);
                        if (!here) {
                            task.run();
                        }
                    });
                    begun.orTimeout(20, TimeUnit.SECONDS).join();
                    return taken.get();
                },
                "the thread of the connection has got it",
                PATIENCE);
    }

    /** The callers beyond it would be decided without Redis, though all is well. */
    @Test
    void theBoundOfTheApplicationsOwnConnectionIsNotThatOfLimits() {
        ClientOptions given = ClientOptions.builder().requestQueueSize(1).build();
        RedisURI server = RedisURI.create("127.0.0.1", REDIS.server().port());
        try (LettuceConnector connector = RedisServers.connector(RedisServers.settings(given, server))) {
            LettuceLink link =
                    (LettuceLink) connector.connect("").toCompletableFuture().join();
            List<CompletableFuture<List<Object>>> calls = new ArrayList<>();
            for (int i = 0; i < 200; i++) {
                calls.add(probe(link, "rl:{" + i + "}:~probe"));
            }
            assertThat(calls)
                    .allSatisfy(call -> assertThat(
                                    call.orTimeout(20, TimeUnit.SECONDS).join())
                            .containsExactly(1L));
        }
    }

    /** A search of the client's own, at a time of its own, would compete with ours. */
    @Test
    @SuppressWarnings("deprecation") // Clients of applications still set it.
    void aClientOfOursDoesNotLookForPrimariesByItself() {
        ClusterClientOptions given = ClusterClientOptions.builder()
                .topologyRefreshOptions(ClusterTopologyRefreshOptions.builder()
                        .enablePeriodicRefresh(Duration.ofSeconds(1))
                        .enableAllAdaptiveRefreshTriggers()
                        .build())
                .build();
        RedisURI node = RedisURI.create("127.0.0.1", REDIS.server().port());
        try (LettuceConnector connector = RedisServers.connector(RedisServers.settings(given, node))) {
            ClusterTopologyRefreshOptions used = connector.refreshOptions();
            assertThat(used.isPeriodicRefreshEnabled()).isFalse();
            assertThat(used.getAdaptiveRefreshTriggers()).isEmpty();
        }
    }
}
