package io.ratelimited.redis.simulation;

import io.lettuce.core.RedisCommandExecutionException;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.redis.RedisBackend;
import io.ratelimited.redis.RedisBackendOptions;
import io.ratelimited.redis.SimulatedBackend;
import io.ratelimited.redis.internals.connection.RedisConnector;
import io.ratelimited.redis.internals.connection.RedisLink;
import io.ratelimited.redis.internals.connection.Script;
import io.ratelimited.redis.internals.connection.ScriptArguments;
import io.ratelimited.redis.internals.connection.SentArguments;
import io.ratelimited.redis.internals.connection.Threads;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.luaj.vm2.LuaString;

/**
 * A server for tests in one thread, which may write to its keys what no script writes. It runs what it is sent at once, and has
 * replied before its caller goes on, unless a test holds its replies.
 */
final class DirectServer implements RedisConnector {

    final ManualTicker ticker = new ManualTicker(0, Instant.parse("2026-01-01T00:00:00Z"));
    private final Server server = new Server(Lua.shared(), () -> ticker.epochNanos() / 1000);
    /** Replies keep their order. */
    private final Deque<Runnable> held = new ArrayDeque<>();

    private boolean holding;
    /** So many replies do not wait any longer. */
    private int most = Integer.MAX_VALUE;

    private Duration roundTrip = Duration.ZERO;

    Store store() {
        return server.store();
    }

    /** Lets the replies to come wait. */
    void hold() {
        holding = true;
    }

    /** Lets the replies to come wait until there are so many. */
    void hold(int replies) {
        hold();
        most = replies;
    }

    /** Lets each reply to come take so long. */
    void delay(Duration time) {
        roundTrip = time;
    }

    /** Lets the replies that wait never come. */
    void lose() {
        held.clear();
    }

    /** Delivers the replies that wait, and each to come. */
    void release() {
        holding = false;
        for (Runnable next = held.poll(); next != null; next = held.poll()) {
            next.run();
        }
    }

    /** Delivers the replies that wait, and lets those to come wait. */
    void deliver() {
        for (int waiting = held.size(); waiting > 0; waiting--) {
            held.remove().run();
        }
    }

    /** A node that shares limits and records with those of the same server. */
    RedisBackend node(String name) {
        return node(name, 1);
    }

    /** The same, as one of so many nodes. */
    RedisBackend node(String name, int expectedNodes) {
        return SimulatedBackend.of(
                this,
                RedisBackendOptions.DEFAULTS
                        .ticker(ticker)
                        .timeout(Node.TIMEOUT)
                        .expectedNodes(expectedNodes),
                new Threads(ticker, Runnable::run, Runnable::run),
                Runnable::run,
                Runnable::run,
                name);
    }

    @Override
    public CompletionStage<Set<String>> discover() {
        return CompletableFuture.completedFuture(Set.of("server"));
    }

    @Override
    public String address(String key) {
        return "server";
    }

    @Override
    public CompletionStage<RedisLink> connect(String address) {
        return CompletableFuture.completedFuture(new Link());
    }

    @Override
    public boolean isCluster() {
        return false;
    }

    @Override
    public void close() {}

    private final class Link implements RedisLink {

        private <T> CompletionStage<T> reply(Supplier<T> command) {
            CompletableFuture<T> reply = new CompletableFuture<>();
            try {
                T value = command.get();
                held.add(() -> reply.complete(value));
            } catch (RedisError ex) {
                held.add(() -> reply.completeExceptionally(
                        new RedisCommandExecutionException(ex.getMessage() + " script: s, on @user_script:1.")));
            } catch (IllegalStateException | ArrayIndexOutOfBoundsException ex) {
                // LuaJ reads the number 0x beyond its end.
                Lua.shared().lastFailure();
                held.add(() -> reply.completeExceptionally(
                        new RedisCommandExecutionException("ERR user_script:1: attempt to run " + ex)));
            }
            if (!roundTrip.isZero()) {
                ticker.schedule(ticker.nanos() + roundTrip.toNanos(), held.removeLast());
            } else if (!holding || held.size() >= most) {
                release();
            }
            return reply;
        }

        @Override
        public CompletionStage<List<Object>> eval(Script script, String[] keys, ScriptArguments args, boolean asking) {
            List<LuaString> names = Stream.of(keys).map(LuaString::valueOf).toList();
            List<LuaString> words =
                    SentArguments.of(args).stream().map(LuaString::valueUsing).toList();
            return reply(() -> server.eval(script.digest(), true, names, words));
        }

        @Override
        public CompletionStage<List<Object>> time() {
            return reply(server::time);
        }

        @Override
        public CompletionStage<Long> delete(String key) {
            return reply(() -> server.delete(LuaString.valueOf(key)));
        }

        @Override
        public void onBreak(Runnable task) {}

        @Override
        public void close() {}
    }
}
