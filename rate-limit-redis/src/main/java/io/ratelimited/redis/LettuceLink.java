package io.ratelimited.redis;

import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.RedisNoScriptException;
import io.lettuce.core.RedisReadOnlyException;
import io.lettuce.core.api.StatefulConnection;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.cluster.RedisClusterClient;
import io.lettuce.core.cluster.SlotHash;
import io.lettuce.core.cluster.api.StatefulRedisClusterConnection;
import io.lettuce.core.cluster.api.async.RedisClusterAsyncCommands;
import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.output.NestedMultiOutput;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.CommandType;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/** A dedicated connection of a Lettuce client: standalone, Sentinel or Cluster. */
final class LettuceLink implements RedisLink {

    /** Slots of a cluster that share a circuit breaker: small enough that a primary is a whole number of parts or so. */
    private static final int SLOTS_PER_PART = 256;

    private static final long DISCOVERY_PAUSE = 500_000_000;

    private final StatefulConnection<String, String> connection;
    private final RedisClusterAsyncCommands<String, String> commands;
    private final @Nullable RedisClusterClient cluster;
    private final AtomicLong discoveredAt = new AtomicLong(System.nanoTime());

    private LettuceLink(
            StatefulConnection<String, String> connection,
            RedisClusterAsyncCommands<String, String> commands,
            @Nullable RedisClusterClient cluster) {
        this.connection = connection;
        this.commands = commands;
        this.cluster = cluster;
    }

    static LettuceLink to(RedisClient client) {
        StatefulRedisConnection<String, String> connection = client.connect(StringCodec.UTF8);
        return new LettuceLink(connection, connection.async(), null);
    }

    static LettuceLink to(RedisClusterClient client) {
        StatefulRedisClusterConnection<String, String> connection = client.connect(StringCodec.UTF8);
        return new LettuceLink(connection, connection.async(), client);
    }

    @Override
    public CompletionStage<List<Object>> eval(Script script, String[] keys, String... args) {
        Evaluation result = new Evaluation();
        send(result, CommandType.EVALSHA, script.digest(), keys, args, failure -> {
            if (isNoScript(failure) && !result.isDone()) {
                send(result, CommandType.EVAL, script.text(), keys, args, null);
                return true;
            }
            return false;
        });
        return result;
    }

    private void send(
            Evaluation result,
            CommandType type,
            String script,
            String[] keys,
            String[] args,
            @Nullable Predicate<Throwable> retry) {
        // As text of ASCII, which all but the keys are, arguments are written without a buffer each.
        CommandArgs<String, String> all =
                new CommandArgs<>(StringCodec.UTF8).add(script).add(keys.length).addKeys(keys);
        for (String arg : args) {
            all.add(arg);
        }
        result.watch(commands.dispatch(type, new NestedMultiOutput<>(StringCodec.UTF8), all), retry);
    }

    private static boolean isNoScript(Throwable failure) {
        return failure instanceof RedisNoScriptException
                || (failure instanceof CompletionException && failure.getCause() instanceof RedisNoScriptException);
    }

    @Override
    public CompletionStage<Long> delete(String key) {
        return commands.del(key);
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

    /** A script call; giving it up also takes back the command if it has not been sent, so that it cannot run later. */
    private static final class Evaluation extends CompletableFuture<List<Object>> {

        private volatile @Nullable RedisFuture<?> command;

        private void watch(RedisFuture<List<Object>> sent, @Nullable Predicate<Throwable> retry) {
            command = sent;
            sent.whenComplete((reply, failure) -> {
                if (failure == null) {
                    complete(reply);
                } else if (retry == null || !retry.test(failure)) {
                    completeExceptionally(failure);
                }
            });
        }

        @Override
        public boolean cancel(boolean mayInterruptIfRunning) {
            RedisFuture<?> sent = command;
            if (sent != null) {
                sent.cancel(mayInterruptIfRunning);
            }
            return super.cancel(mayInterruptIfRunning);
        }
    }
}
