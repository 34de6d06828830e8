package io.ratelimited.redis;

import io.lettuce.core.AbstractRedisClient;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisReadOnlyException;
import io.lettuce.core.api.StatefulConnection;
import io.lettuce.core.cluster.RedisClusterClient;
import io.lettuce.core.cluster.SlotHash;
import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.output.IntegerOutput;
import io.lettuce.core.output.NestedMultiOutput;
import io.lettuce.core.protocol.AsyncCommand;
import io.lettuce.core.protocol.Command;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.CommandType;
import io.netty.util.internal.ThreadExecutorMap;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/** A dedicated connection of a Lettuce client: standalone, Sentinel or Cluster. */
final class LettuceLink implements RedisLink {

    /** Slots of a cluster that share a circuit breaker: small enough that a primary is a whole number of parts or so. */
    private static final int SLOTS_PER_PART = 256;

    /** Keys of one command at the most, so that other clients of the server do not wait long. */
    private static final int MOST_KEYS = 64;

    private static final long DISCOVERY_PAUSE = 500_000_000;

    private final StatefulConnection<String, String> connection;
    private final @Nullable RedisClusterClient cluster;
    private final Queue<Unsent> unsent = new ConcurrentLinkedQueue<>();
    /** Commands written since the sender last looked; none while nobody sends. */
    private final AtomicInteger written = new AtomicInteger();
    /**
     * The event loop of the connection, once it is known and if there is one only. Never the thread that happens to write:
     * what an event loop sends overtakes what others have told it to send.
     */
    private volatile Executor sender;

    private final AtomicLong discoveredAt = new AtomicLong(System.nanoTime());

    private LettuceLink(
            StatefulConnection<String, String> connection, @Nullable RedisClusterClient cluster, Executor sender) {
        this.connection = connection;
        this.cluster = cluster;
        this.sender = sender;
    }

    static LettuceLink to(RedisClient client) {
        return new LettuceLink(client.connect(StringCodec.UTF8), null, oneThread(client));
    }

    static LettuceLink to(RedisClusterClient client) {
        return new LettuceLink(client.connect(StringCodec.UTF8), client, oneThread(client));
    }

    private static Executor oneThread(AbstractRedisClient client) {
        return client.getResources().eventExecutorGroup().next();
    }

    @Override
    public CompletionStage<List<Object>> eval(Script script, String[] keys, Words args) {
        if (cluster == null && keys.length == 1 && args.question() != null) {
            Shared shared = new Shared(script, keys[0], args);
            write(shared);
            return shared;
        }
        Evaluation evaluation = new Evaluation(CommandType.EVALSHA, script, keys, args);
        write(new Whole(evaluation));
        return evaluation;
    }

    @Override
    public CompletionStage<List<Object>> time(String key) {
        AsyncCommand<String, String, List<Object>> command = new AsyncCommand<>(
                new Command<>(CommandType.TIME, new NestedMultiOutput<>(StringCodec.UTF8), EncodedArgs.none(key)));
        write(new Whole(command));
        return command;
    }

    @Override
    public CompletionStage<Long> delete(String key) {
        AsyncCommand<String, String, Long> command = new AsyncCommand<>(new Command<>(
                CommandType.DEL,
                new IntegerOutput<>(StringCodec.UTF8),
                new CommandArgs<>(StringCodec.UTF8).addKey(key)));
        write(new Whole(command));
        return command;
    }

    /**
     * Sends a command after those that were written before. One thread sends, and all that it finds waiting at once: a
     * command waits for what that thread is at, never for company.
     */
    private void write(Unsent command) {
        unsent.add(command);
        if (written.getAndIncrement() == 0) {
            callSender();
        }
    }

    private void callSender() {
        try {
            sender.execute(this::send);
        } catch (RejectedExecutionException ex) {
            // The client is being shut down.
            written.set(0);
            for (Unsent next = unsent.poll(); next != null; next = unsent.poll()) {
                next.future().completeExceptionally(ex);
            }
        }
    }

    private void send() {
        int seen = written.get();
        sendTogether();
        if (written.addAndGet(-seen) != 0) {
            // More has come meanwhile. An event loop reads what was answered before it goes on.
            callSender();
        }
    }

    private void sendTogether() {
        List<AsyncCommand<String, String, ?>> all = new ArrayList<>();
        try {
            collect(all);
            if (all.size() == 1) {
                connection.dispatch(all.get(0));
            } else if (!all.isEmpty()) {
                connection.dispatch(all);
            }
        } catch (RuntimeException | Error ex) {
            // Whatever it is, those who wait must hear of it, and the next must be sent.
            all.forEach(command -> command.completeExceptionally(ex));
        }
    }

    /** Takes what is unsent and still wanted. A question of any key does not pass a command that may concern the same key. */
    private void collect(List<AsyncCommand<String, String, ?>> all) {
        Map<Object, List<Shared>> questions = new LinkedHashMap<>();
        for (Unsent next = unsent.poll(); next != null; next = unsent.poll()) {
            if (next.future().isDone()) {
                continue;
            }
            if (next instanceof Shared shared) {
                Object question = shared.question();
                List<Shared> same = questions.computeIfAbsent(question, unasked -> new ArrayList<>());
                same.add(shared);
                if (same.size() == MOST_KEYS) {
                    all.add(ask(same));
                    questions.remove(question);
                }
            } else if (next instanceof Whole whole) {
                questions.values().forEach(same -> all.add(ask(same)));
                questions.clear();
                all.add(whole.command);
            }
        }
        questions.values().forEach(same -> all.add(ask(same)));
    }

    /** One command for the same question of several keys. */
    private Evaluation ask(List<Shared> same) {
        Shared first = same.get(0);
        String[] keys = same.stream().map(Shared::key).toArray(String[]::new);
        Evaluation evaluation = new Evaluation(CommandType.EVALSHA, first.script(), keys, first.args());
        Shared.ask(same, evaluation, alone -> write(new Whole(ask(List.of(alone)))));
        return evaluation;
    }

    @Override
    public boolean isStale(Throwable failure) {
        return cluster == null && (!connection.isOpen() || failure instanceof RedisReadOnlyException);
    }

    @Override
    public CompletionStage<Void> rediscover() {
        long last = discoveredAt.get();
        long now = System.nanoTime();
        if (cluster != null && now - last > DISCOVERY_PAUSE && discoveredAt.compareAndSet(last, now)) {
            return cluster.refreshPartitionsAsync();
        }
        return CompletableFuture.completedFuture(null);
    }

    @Override
    public int part(String key) {
        return cluster != null ? SlotHash.getSlot(key) / SLOTS_PER_PART : 0;
    }

    @Override
    public int parts() {
        return cluster != null ? SlotHash.SLOT_COUNT / SLOTS_PER_PART : 1;
    }

    @Override
    public void close() {
        connection.close();
    }

    /** What waits to be sent. */
    sealed interface Unsent permits Whole, Shared {

        CompletableFuture<?> future();
    }

    /** A command of its own. */
    private record Whole(AsyncCommand<String, String, ?> command) implements Unsent {

        @Override
        public CompletableFuture<?> future() {
            return command;
        }
    }

    /** A script call; giving it up also takes back what has not been sent, so that it cannot run later. */
    private final class Evaluation extends AsyncCommand<String, String, List<Object>> {

        private final CommandType type;
        private final Script script;
        private final String[] keys;
        private final Words arguments;
        private volatile @Nullable Evaluation withText;

        private Evaluation(CommandType type, Script script, String[] keys, Words arguments) {
            super(new Command<>(
                    type,
                    new NestedMultiOutput<>(StringCodec.UTF8),
                    EncodedArgs.ofScript(type == CommandType.EVAL ? script.text() : script.digest(), keys, arguments)));
            this.type = type;
            this.script = script;
            this.keys = keys;
            this.arguments = arguments;
        }

        /** On the event loop. What has been completed once could not fail any more. */
        @Override
        public void complete() {
            if (cluster == null) {
                Executor eventLoop = ThreadExecutorMap.currentExecutor();
                if (eventLoop != null && eventLoop != sender) {
                    sender = eventLoop;
                }
            }
            String error = getOutput().getError();
            if (error == null || type == CommandType.EVAL || !error.startsWith("NOSCRIPT") || isDone()) {
                super.complete();
                return;
            }
            Evaluation text = new Evaluation(CommandType.EVAL, script, keys, arguments);
            text.whenComplete((reply, failure) -> {
                if (failure == null) {
                    complete(reply);
                } else {
                    completeExceptionally(failure);
                }
            });
            withText = text;
            if (isDone()) {
                text.cancel(false);
            }
            write(new Whole(text));
        }

        @Override
        public boolean cancel(boolean mayInterruptIfRunning) {
            boolean cancelled = super.cancel(mayInterruptIfRunning);
            Evaluation text = withText;
            if (text != null) {
                text.cancel(mayInterruptIfRunning);
            }
            return cancelled;
        }
    }
}
