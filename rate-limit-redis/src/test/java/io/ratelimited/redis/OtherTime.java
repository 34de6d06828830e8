package io.ratelimited.redis;

import io.ratelimited.core.Ticker;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.function.Supplier;

/** A link whose plain TIME commands are answered by somebody else. */
record OtherTime(RedisLink link, Supplier<CompletionStage<List<Object>>> answer) implements RedisLink {

    /** As a server with this clock would answer at once. */
    static OtherTime of(RedisLink link, Ticker ticker) {
        return new OtherTime(link, () -> CompletableFuture.completedFuture(reply(ticker.epochNanos() / 1000)));
    }

    /** Microseconds since 1970 in the words of the server. */
    static List<Object> reply(long micros) {
        return List.of(Long.toString(micros / 1_000_000), Long.toString(micros % 1_000_000));
    }

    @Override
    public CompletionStage<List<Object>> time(String key) {
        return answer.get();
    }

    @Override
    public CompletionStage<List<Object>> eval(Script script, String[] keys, Words args) {
        return link.eval(script, keys, args);
    }

    @Override
    public CompletionStage<Long> delete(String key) {
        return link.delete(key);
    }

    @Override
    public boolean isStale(Throwable failure) {
        return link.isStale(failure);
    }

    @Override
    public CompletionStage<Void> rediscover() {
        return link.rediscover();
    }

    @Override
    public int part(String key) {
        return link.part(key);
    }

    @Override
    public int parts() {
        return link.parts();
    }

    @Override
    public void close() {
        link.close();
    }
}
