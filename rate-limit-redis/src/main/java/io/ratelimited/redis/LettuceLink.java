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
import io.netty.buffer.ByteBuf;
import io.netty.util.internal.ThreadExecutorMap;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
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

    private static final long DISCOVERY_PAUSE = 500_000_000;

    private final StatefulConnection<String, String> connection;
    private final @Nullable RedisClusterClient cluster;
    private final Queue<AsyncCommand<String, String, ?>> unsent = new ConcurrentLinkedQueue<>();
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
        Evaluation evaluation = new Evaluation(CommandType.EVALSHA, script, keys, args);
        write(evaluation);
        return evaluation;
    }

    @Override
    public CompletionStage<List<Object>> time(String key) {
        AsyncCommand<String, String, List<Object>> command = new AsyncCommand<>(new Command<>(
                CommandType.TIME, new NestedMultiOutput<>(StringCodec.UTF8), new Arguments(key, new Words())));
        write(command);
        return command;
    }

    @Override
    public CompletionStage<Long> delete(String key) {
        AsyncCommand<String, String, Long> command = new AsyncCommand<>(new Command<>(
                CommandType.DEL,
                new IntegerOutput<>(StringCodec.UTF8),
                new CommandArgs<>(StringCodec.UTF8).addKey(key)));
        write(command);
        return command;
    }

    /**
     * Sends a command after those that were written before. One thread sends, and all that it finds waiting at once: a
     * command waits for what that thread is at, never for company.
     */
    private void write(AsyncCommand<String, String, ?> command) {
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
            for (AsyncCommand<String, String, ?> next = unsent.poll(); next != null; next = unsent.poll()) {
                next.completeExceptionally(ex);
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
        for (AsyncCommand<String, String, ?> next = unsent.poll(); next != null; next = unsent.poll()) {
            if (!next.isDone()) {
                all.add(next);
            }
        }
        try {
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

    /** A script call; giving it up also takes back what has not been sent, so that it cannot run later. */
    private final class Evaluation extends AsyncCommand<String, String, List<Object>> {

        private final CommandType type;
        private final Script script;
        private final String[] keys;
        private final Words arguments;
        private volatile @Nullable Evaluation withText;

        private Evaluation(CommandType type, Script script, String[] keys, Words arguments) {
            super(new Command<>(type, new NestedMultiOutput<>(StringCodec.UTF8), words(type, script, keys, arguments)));
            this.type = type;
            this.script = script;
            this.keys = keys;
            this.arguments = arguments;
        }

        private static CommandArgs<String, String> words(
                CommandType type, Script script, String[] keys, Words arguments) {
            Words words = new Words().add(type == CommandType.EVAL ? script.text() : script.digest());
            words.add(keys.length);
            for (String key : keys) {
                words.add(key);
            }
            return new Arguments(keys[0], words.add(arguments));
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
            write(text);
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

    /** Arguments that need only be copied. */
    private static final class Arguments extends CommandArgs<String, String> {

        private final String key;
        private final int count;
        private final byte[] bytes;

        private Arguments(String key, Words words) {
            super(StringCodec.UTF8);
            this.key = key;
            this.count = words.count();
            this.bytes = words.bytes();
        }

        @Override
        public int count() {
            return count;
        }

        /** Says where in a cluster the command goes. */
        @Override
        public ByteBuffer getFirstEncodedKey() {
            return StringCodec.UTF8.encodeKey(key);
        }

        @Override
        public void encode(ByteBuf to) {
            to.writeBytes(bytes);
        }
    }
}
