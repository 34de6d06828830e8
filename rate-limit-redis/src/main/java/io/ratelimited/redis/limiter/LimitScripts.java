package io.ratelimited.redis.limiter;

import io.ratelimited.core.Limit;
import io.ratelimited.core.Ticker;
import io.ratelimited.redis.connection.GuardedConnection;
import io.ratelimited.redis.connection.Script;
import io.ratelimited.redis.connection.ScriptArguments;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.LongSupplier;

/** A limit as it is now, and its script calls. Thread-safe. */
final class LimitScripts {

    private final GuardedConnection connection;
    private final Ticker ticker;
    private final LongSupplier origin;

    private volatile LimitTerms terms;
    private volatile ZoneOffsets offsets;

    LimitScripts(LimiterContext context, Limit limit) {
        this.connection = context.connection();
        this.ticker = context.ticker();
        this.origin = context.origin();
        this.terms = new LimitTerms(limit);
        this.offsets = new ZoneOffsets(limit, ticker);
    }

    /** From now on every call is decided by another limit. */
    void update(Limit limit) {
        offsets = new ZoneOffsets(limit, ticker);
        terms = new LimitTerms(limit);
    }

    LimitTerms terms() {
        return terms;
    }

    /** The arguments of {@code decide.lua} up to the calls, under this limit alone. */
    ScriptArguments begin(String operation, LimitTerms current, int calls) {
        ScriptArguments args =
                new ScriptArguments().add(connection.time()).add(operation).add(1);
        appendTo(args, current);
        return args.add(calls);
    }

    void appendTo(ScriptArguments args, LimitTerms current) {
        current.appendTo(args, origin.getAsLong(), offsets);
    }

    /** Runs a deciding script, and if another algorithm stored the budget, the script that knows all of them. */
    CompletableFuture<List<Object>> eval(Script script, String key, ScriptArguments args) {
        String[] keys = {key};
        return connection.eval(script, keys, args).thenCompose(reply -> {
            boolean foreign = reply.size() == 1 && reply.get(0) instanceof Long code && code == -1;
            return foreign ? connection.eval(Script.ALL, keys, args) : CompletableFuture.completedFuture(reply);
        });
    }
}
