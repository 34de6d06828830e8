package io.ratelimited.redis.simulation;

import io.lettuce.core.RedisCommandExecutionException;
import io.lettuce.core.RedisConnectionException;
import io.lettuce.core.RedisException;
import io.ratelimited.redis.internals.connection.RedisConnector;
import io.ratelimited.redis.internals.connection.RedisLink;
import io.ratelimited.redis.internals.connection.Script;
import io.ratelimited.redis.internals.connection.ScriptArguments;
import io.ratelimited.redis.internals.connection.SentArguments;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.WeakHashMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import org.jspecify.annotations.Nullable;
import org.luaj.vm2.LuaString;

/**
 * The network between one node and the servers. Each connection keeps its order and has delays of its own; a silence holds
 * back what is sent until it ends, as TCP does, and a cut loses what is on its way.
 */
final class Network implements RedisConnector {

    private final World world;
    private final World.Member node;
    private final Servers servers;
    private final SplittableRandom random;
    private final long mostDelay;
    /** Runs before and after a command is sent: other threads of the node may go on there. */
    private final Runnable between;

    private final Set<Link> links = new LinkedHashSet<>();
    private final List<Long> sent = new ArrayList<>();
    /** Connections that a frozen server has accepted. */
    private final List<Shaking> shaking = new ArrayList<>();
    /** The addresses by slot, as this node knows them. */
    private String @Nullable [] topology;
    /** Until then nothing that is sent to the server arrives there, and no connection is made. */
    private long silentUpUntil;
    /** Until then no reply arrives. */
    private long silentDownUntil;
    /** Until then what is sent is lost at first, and sent again later by up to {@link #backoff}. */
    private long lossUntil;

    private long backoff;
    /** Until then what is sent takes longer by {@link #extraDelay}. */
    private long slowUntil;

    private long extraDelay;
    /** Connections are accepted, and never answered, until then. */
    private long deafUntil;

    Network(
            World world,
            World.Member node,
            Servers servers,
            SplittableRandom random,
            long mostDelay,
            Runnable between) {
        this.world = world;
        this.node = node;
        this.servers = servers;
        this.random = random;
        this.mostDelay = mostDelay;
        this.between = between;
    }

    void silence(long until, boolean up, boolean down) {
        silentUpUntil = up ? Math.max(silentUpUntil, until) : silentUpUntil;
        silentDownUntil = down ? Math.max(silentDownUntil, until) : silentDownUntil;
    }

    void loss(long until, long most) {
        silence(until, true, true);
        lossUntil = until;
        backoff = most;
    }

    void slow(long until, long extra) {
        slowUntil = until;
        extraDelay = extra;
    }

    void deaf(long until) {
        deafUntil = until;
    }

    /** Breaks all connections; the node notices at once. */
    void cut() {
        servers.all().forEach(this::cut);
    }

    /** Breaks the connections to a server. */
    void cut(Server server) {
        List<Shaking> refused =
                shaking.stream().filter(each -> each.server == server).toList();
        shaking.removeAll(refused);
        refused.forEach(each -> world.at(node, world.now() + delay(), each.answer));
        for (Link link : List.copyOf(links)) {
            if (link.server == server) {
                link.cut();
            }
        }
    }

    /** When commands were sent between two times. */
    long[] sent(long from, long to) {
        return sent.stream()
                .mapToLong(time -> time)
                .filter(time -> time >= from && time < to)
                .toArray();
    }

    /** Commands that were sent before a time and have no reply. */
    int underWay(long before) {
        return (int) links.stream()
                .flatMap(link -> link.underWay.stream())
                .filter(sent -> sent.sentAt < before)
                .count();
    }

    private long delay() {
        long usual = 100_000 + random.nextLong(mostDelay);
        return world.now() < slowUntil ? usual + random.nextLong(extraDelay) : usual;
    }

    @Override
    public CompletionStage<Set<String>> discover() {
        if (!servers.isCluster()) {
            topology = servers.topology();
            return CompletableFuture.completedFuture(Servers.addresses(topology));
        }
        CompletableFuture<Set<String>> found = new CompletableFuture<>();
        long arrives = Math.max(world.now(), Math.max(silentUpUntil, silentDownUntil)) + 2 * delay();
        world.at(node, arrives, () -> {
            // Connections that are accepted and never answered say nothing of others.
            if (world.now() >= deafUntil) {
                topology = servers.topology();
                found.complete(Servers.addresses(topology));
            }
        });
        return found;
    }

    @Override
    public @Nullable String address(String key) {
        String[] known = topology;
        return known == null ? null : known[Servers.slot(key)];
    }

    @Override
    public boolean isCluster() {
        return servers.isCluster();
    }

    @Override
    public CompletionStage<RedisLink> connect(String address) {
        CompletableFuture<RedisLink> made = new CompletableFuture<>();
        long arrives = Math.max(world.now(), Math.max(silentUpUntil, silentDownUntil)) + 2 * delay();
        world.at(node, arrives, () -> handshake(made, address));
        return made;
    }

    private void handshake(CompletableFuture<RedisLink> made, String address) {
        if (world.now() < deafUntil) {
            return;
        }
        Server server = servers.at(address);
        if (server == null || server.isDown()) {
            made.completeExceptionally(new RedisConnectionException("Unable to connect: connection refused"));
        } else if (server.isFrozen()) {
            // Accepted, but nobody answers before the server goes on.
            Shaking answer = new Shaking(server, () -> handshake(made, address));
            shaking.add(answer);
            server.arrived(() -> {
                if (shaking.remove(answer)) {
                    world.at(node, world.now() + delay(), answer.answer);
                }
            });
        } else {
            Link link = new Link(server);
            links.add(link);
            if (!made.complete(link)) {
                link.close();
            }
        }
    }

    @Override
    public void close() {
        List.copyOf(links).forEach(Link::close);
    }

    private record Shaking(Server server, Runnable answer) {}

    private interface Command<T> {

        T run();
    }

    /** One connection. */
    private final class Link implements RedisLink {

        private final Server server;
        private final CompletableFuture<Void> broken = new CompletableFuture<>();
        private final Set<Sent<?>> underWay = new LinkedHashSet<>();
        private final List<Sent<?>> unsent = new ArrayList<>();
        /** Results of scripts whose callers have given up. */
        private final Set<CompletionStage<?>> unwanted = Collections.newSetFromMap(new WeakHashMap<>());

        private boolean closed;
        /** What has not arrived never will. */
        private boolean severed;

        private long lastUp;
        private long lastDown;

        private Link(Server server) {
            this.server = server;
        }

        /** A command and its reply. */
        private static final class Sent<T> extends CompletableFuture<T> {

            private final Command<T> command;
            private long sentAt;

            private Sent(Command<T> command) {
                this.command = command;
            }
        }

        @Override
        public CompletionStage<List<Object>> eval(Script script, String[] keys, ScriptArguments args, boolean asking) {
            List<LuaString> names = new ArrayList<>(keys.length);
            for (String key : keys) {
                names.add(LuaString.valueOf(key));
            }
            List<byte[]> sent = SentArguments.of(args);
            List<LuaString> words = new ArrayList<>(sent.size());
            for (byte[] word : sent) {
                words.add(LuaString.valueUsing(word));
            }
            CompletableFuture<List<Object>> result = new CompletableFuture<>();
            eval(script, names, words, asking, false, result);
            return result;
        }

        private void eval(
                Script script,
                List<LuaString> keys,
                List<LuaString> args,
                boolean asking,
                boolean withText,
                CompletableFuture<List<Object>> result) {
            Sent<List<Object>> sent = send(
                    () -> {
                        servers.route(server, keys, asking);
                        return server.eval(script.digest(), withText, keys, args);
                    },
                    result);
            sent.whenComplete((reply, failure) -> {
                boolean unknown =
                        failure != null && String.valueOf(failure.getMessage()).startsWith("NOSCRIPT");
                if (failure == null) {
                    result.complete(reply);
                } else if (!unknown || withText) {
                    result.completeExceptionally(failure);
                } else if (isWanted(result)) {
                    eval(script, keys, args, asking, true, result);
                }
            });
        }

        @Override
        public void takeBack(CompletionStage<?> call) {
            unwanted.add(call);
        }

        private boolean isWanted(CompletableFuture<?> result) {
            return !result.isDone() && !unwanted.contains(result);
        }

        @Override
        public CompletionStage<List<Object>> time() {
            return send(server::time, null);
        }

        @Override
        public CompletionStage<Long> delete(String key) {
            LuaString name = LuaString.valueOf(key);
            return send(
                    () -> {
                        servers.route(server, List.of(name), false);
                        return server.delete(name);
                    },
                    null);
        }

        /** @param wanted whoever gives it up before the command is sent takes the command back */
        private <T> Sent<T> send(Command<T> command, @Nullable CompletableFuture<T> wanted) {
            Sent<T> sent = new Sent<>(command);
            if (closed) {
                sent.completeExceptionally(new RedisException("Connection is closed"));
                return sent;
            }
            between.run();
            unsent.add(sent);
            world.at(node, world.now(), () -> {
                if (unsent.remove(sent) && !sent.isDone() && (wanted == null || isWanted(wanted))) {
                    write(sent);
                }
            });
            between.run();
            return sent;
        }

        private <T> void write(Sent<T> sent) {
            sent.sentAt = world.now();
            Network.this.sent.add(world.now());
            underWay.add(sent);
            long late = world.now() < lossUntil ? random.nextLong(backoff) : 0;
            lastUp = Math.max(lastUp + 1, Math.max(world.now(), silentUpUntil) + late + delay());
            world.at(lastUp, () -> {
                if (!severed) {
                    server.arrived(() -> run(sent));
                }
            });
        }

        private <T> void run(Sent<T> sent) {
            T reply = null;
            RuntimeException failure = null;
            try {
                reply = sent.command.run();
            } catch (RedisError ex) {
                failure = new RedisCommandExecutionException(ex.getMessage());
            }
            T told = reply;
            RuntimeException error = failure;
            lastDown = Math.max(lastDown + 1, Math.max(world.now(), silentDownUntil) + delay());
            world.at(node, lastDown, () -> {
                if (underWay.remove(sent)) {
                    if (error != null) {
                        sent.completeExceptionally(error);
                    } else {
                        sent.complete(told);
                    }
                }
            });
        }

        private void cut() {
            severed = true;
            links.remove(this);
            world.at(node, world.now(), this::lost);
        }

        /** The node notices. */
        private void lost() {
            List<Sent<?>> all = new ArrayList<>(underWay);
            all.addAll(unsent);
            underWay.clear();
            unsent.clear();
            closed = true;
            all.forEach(one -> one.completeExceptionally(new RedisException("Connection closed prematurely")));
            broken.complete(null);
        }

        @Override
        public void onBreak(Runnable task) {
            broken.thenRun(task);
        }

        /** What has been sent still arrives. */
        @Override
        public void close() {
            if (!closed) {
                closed = true;
                links.remove(this);
                world.at(node, world.now(), this::lost);
            }
        }
    }
}
