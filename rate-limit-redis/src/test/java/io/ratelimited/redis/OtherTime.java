package io.ratelimited.redis;

import io.ratelimited.core.Ticker;
import io.ratelimited.redis.internals.connection.RedisConnector;
import io.ratelimited.redis.internals.connection.RedisLink;
import io.ratelimited.redis.internals.connection.Script;
import io.ratelimited.redis.internals.connection.ScriptArguments;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** A connector to servers whose plain TIME commands are answered by somebody else. */
public record OtherTime(RedisConnector connector, Supplier<CompletionStage<List<Object>>> answer)
        implements RedisConnector {

    /** As a server with this clock would answer at once. */
    static OtherTime of(RedisConnector connector, Ticker ticker) {
        return new OtherTime(connector, () -> CompletableFuture.completedFuture(reply(ticker.epochNanos() / 1000)));
    }

    /** Microseconds since 1970 in the words of the server. */
    public static List<Object> reply(long micros) {
        return List.of(Long.toString(micros / 1_000_000), Long.toString(micros % 1_000_000));
    }

    @Override
    public CompletionStage<Set<String>> discover() {
        return connector.discover();
    }

    @Override
    public @Nullable String address(String key) {
        return connector.address(key);
    }

    @Override
    public CompletionStage<RedisLink> connect(String address) {
        return connector.connect(address).thenApply(link -> new Link(link, answer));
    }

    @Override
    public boolean isCluster() {
        return connector.isCluster();
    }

    @Override
    public void close() {
        connector.close();
    }

    private record Link(RedisLink link, Supplier<CompletionStage<List<Object>>> answer) implements RedisLink {

        @Override
        public CompletionStage<List<Object>> time() {
            return answer.get();
        }

        @Override
        public CompletionStage<List<Object>> eval(Script script, String[] keys, ScriptArguments args, boolean asking) {
            return link.eval(script, keys, args, asking);
        }

        @Override
        public void takeBack(CompletionStage<?> call) {
            link.takeBack(call);
        }

        @Override
        public CompletionStage<Long> delete(String key) {
            return link.delete(key);
        }

        @Override
        public void onBreak(Runnable task) {
            link.onBreak(task);
        }

        @Override
        public void close() {
            link.close();
        }
    }
}
