package io.ratelimited.redis.internals.connection;

import io.ratelimited.core.testing.ManualTicker;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/** A cluster whose connections answer when and as a test says; a key begins with the address of its primary and a slash. */
final class ScriptedServers implements RedisConnector {

    /** The time for a reply. */
    static final Duration TIMEOUT = Duration.ofMillis(50);

    final Set<String> primaries = new LinkedHashSet<>();
    /** All connections that were made, in order. */
    final List<Link> links = new ArrayList<>();
    /** Why connections are refused; null while they are not. */
    @Nullable
    String refusal;
    /** Searches for the primaries are answered by the test. */
    boolean holding;
    /** Whether the addresses are those of a cluster. */
    boolean cluster = true;

    final List<CompletableFuture<Set<String>>> searches = new ArrayList<>();
    /** Attempts to connect are answered by the test. */
    boolean holdingAttempts;

    final Deque<CompletableFuture<RedisLink>> attempts = new ArrayDeque<>();
    /** The address of keys whose own primary is not there; null if no other one has them. */
    @Nullable
    String moved;

    /** How often the address of a key was looked up. */
    int lookUps;
    /** Runs before each attempt to connect. */
    Runnable beforeConnecting = () -> {};

    ScriptedServers(String... addresses) {
        primaries.addAll(List.of(addresses));
    }

    /** To all of them, on one thread and a time that the test moves. */
    GuardedConnection connect(ManualTicker clock) {
        return connect(clock, TIMEOUT);
    }

    GuardedConnection connect(ManualTicker clock, Duration timeout) {
        return new GuardedConnection(
                this,
                new KeyNames("rl"),
                timeout.toNanos(),
                new ManualTicker(),
                new Threads(clock, Runnable::run, Runnable::run),
                false,
                UnaryOperator.identity());
    }

    int connections() {
        synchronized (links) {
            return links.size();
        }
    }

    Link link(int number) {
        return links.get(number);
    }

    @Override
    public CompletionStage<Set<String>> discover() {
        if (holding) {
            CompletableFuture<Set<String>> search = new CompletableFuture<>();
            searches.add(search);
            return search;
        }
        return CompletableFuture.completedFuture(new LinkedHashSet<>(primaries));
    }

    @Override
    public String address(String key) {
        lookUps++;
        int at = key.indexOf('/');
        if (at < 0) {
            return primaries.iterator().next();
        }
        String own = key.substring(0, at);
        return moved == null || primaries.contains(own) ? own : moved;
    }

    @Override
    public CompletionStage<RedisLink> connect(String address) {
        beforeConnecting.run();
        if (refusal != null) {
            return CompletableFuture.failedFuture(new IllegalStateException(refusal));
        }
        if (holdingAttempts) {
            CompletableFuture<RedisLink> attempt = new CompletableFuture<>();
            attempts.add(attempt);
            return attempt;
        }
        return CompletableFuture.completedFuture(link(address));
    }

    private Link link(String address) {
        Link link = new Link(address);
        synchronized (links) {
            links.add(link);
        }
        return link;
    }

    /** Answers the oldest attempt to connect that waits for the test. */
    Link accept() {
        Link link = link(primaries.iterator().next());
        attempts.remove().complete(link);
        return link;
    }

    @Override
    public boolean isCluster() {
        return cluster;
    }

    @Override
    public void close() {}

    /** A connection; what it is asked waits for the test to answer. */
    static final class Link implements RedisLink {

        final String address;
        final Deque<CompletableFuture<List<Object>>> probes = new ArrayDeque<>();
        final Deque<CompletableFuture<List<Object>>> asked = new ArrayDeque<>();
        /** Calls whose callers have given up. */
        final List<CompletionStage<?>> takenBack = new ArrayList<>();
        /** The first key of each script that was not a probe. */
        final List<String> keys = new ArrayList<>();
        /** Those scripts. */
        final List<Script> scripts = new ArrayList<>();
        /** Runs while such a script is sent. */
        Runnable whileSending = () -> {};

        private final CompletableFuture<Void> broken = new CompletableFuture<>();
        boolean closed;

        private Link(String address) {
            this.address = address;
        }

        void answer() {
            asked.remove().complete(List.of(1L));
        }

        void fail(String error) {
            asked.remove().completeExceptionally(new IllegalStateException(error));
        }

        void breakOff() {
            broken.complete(null);
        }

        @Override
        public CompletionStage<List<Object>> eval(Script script, String[] on, ScriptArguments args, boolean asking) {
            CompletableFuture<List<Object>> reply = new CompletableFuture<>();
            if (script.equals(Script.PROBE)) {
                probes.add(reply);
            } else {
                keys.add(on.length == 0 ? "" : on[0]);
                scripts.add(script);
                asked.add(reply);
                whileSending.run();
            }
            return reply;
        }

        @Override
        public void takeBack(CompletionStage<?> call) {
            takenBack.add(call);
        }

        @Override
        public CompletionStage<List<Object>> time() {
            return CompletableFuture.completedFuture(List.of("1", "0"));
        }

        @Override
        public CompletionStage<Long> delete(String key) {
            return CompletableFuture.completedFuture(1L);
        }

        @Override
        public void onBreak(Runnable task) {
            broken.thenRun(task);
        }

        @Override
        public void close() {
            closed = true;
        }
    }
}
