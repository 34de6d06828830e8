package io.ratelimited.redis.limiter;

import io.ratelimited.core.Decision.Source;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Ticker;
import io.ratelimited.redis.connection.GuardedConnection;
import io.ratelimited.redis.connection.Replies;
import io.ratelimited.redis.connection.Script;
import io.ratelimited.redis.connection.ScriptArguments;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/**
 * The decisions of Redis about one limit, and those that follow without asking Redis: leased permits and remembered
 * refusals. Thread-safe.
 */
final class RemoteDecisions {

    private final GuardedConnection connection;
    private final Ticker ticker;
    private final LimitScripts scripts;
    private final DenialCache denials;
    private final Leases leases;
    private final ConcurrentHashMap<String, KeyBatch> batches = new ConcurrentHashMap<>();

    RemoteDecisions(LimiterContext context, Limit limit, LimiterOptions options) {
        this.connection = context.connection();
        this.ticker = context.ticker();
        this.scripts = new LimitScripts(context, limit);
        this.denials = new DenialCache(ticker, options.maximumKeys());
        this.leases = new Leases(ticker, context.nodes(), options);
    }

    /** From now on every call is decided by another limit. */
    void update(Limit limit) {
        scripts.update(limit);
        denials.clear();
    }

    LimitTerms terms() {
        return scripts.terms();
    }

    LimitScripts scripts() {
        return scripts;
    }

    Ticker ticker() {
        return ticker;
    }

    DenialCache denials() {
        return denials;
    }

    Leases leases() {
        return leases;
    }

    /** What is decided without asking Redis; null when it has to be asked. */
    @Nullable
    ScriptReply known(String name, long permits, long maxWaitNanos) {
        LimitTerms current = terms();
        boolean leasable = !current.isConstant() && !current.isNever(permits);
        ScriptReply leased = leasable ? leases.take(name, current, permits) : null;
        return leased != null ? leased : knownUnleased(name, permits, maxWaitNanos);
    }

    /** {@link #known}, for a call that pays in Redis if it goes. */
    @Nullable
    ScriptReply knownUnleased(String name, long permits, long maxWaitNanos) {
        LimitTerms current = terms();
        if (current.isConstant()) {
            return constant(current);
        }
        return current.isNever(permits)
                ? null
                : denials.find(name, current, permits, Math.min(LimitTerms.FAR, maxWaitNanos / 1000));
    }

    static ScriptReply constant(LimitTerms terms) {
        boolean open = terms.limit().rate().isUnlimited();
        return new ScriptReply(open ? 0 : ScriptReply.NEVER, open ? Long.MAX_VALUE : 0, 0, "", terms, Source.MEMORY);
    }

    /** Asks Redis, together with other callers of the key. */
    PermitRequest submit(String name, long permits, long maxWaitNanos) {
        PermitRequest call = new PermitRequest(permits, maxWaitNanos);
        LimitTerms current = terms();
        if (connection.isDown(name)) {
            call.completeExceptionally(Replies.notSent("not asked, because it has just failed"));
        } else if (current.isNever(permits)) {
            never(call, name, current);
        } else {
            KeyBatch batch = batches.get(name);
            // A batch may have ended meanwhile.
            while (batch == null || !batch.add(call)) {
                batch = batches.computeIfAbsent(name, key -> new KeyBatch(this, batches, key));
            }
        }
        return call;
    }

    /** Refused for good; Redis is asked only for what is left. */
    void never(PermitRequest call, String name, LimitTerms current) {
        PermitRequest one = new PermitRequest(1, 0);
        eval(current.script(), name, arguments("peek", current, List.of(one))).whenComplete((reply, failure) -> {
            if (failure != null) {
                call.completeExceptionally(failure);
            } else {
                call.complete(ScriptReply.of(reply, 0, current).outcome(ScriptReply.NEVER));
            }
        });
    }

    /** The arguments of {@code decide.lua} for calls under this limit alone; equal calls are given once. */
    ScriptArguments arguments(String operation, LimitTerms current, List<PermitRequest> calls) {
        PermitRequest first = calls.get(0);
        boolean equal = first.asksAs(first);
        for (int i = 1; i < calls.size() && equal; i++) {
            equal = first.asksAs(calls.get(i));
        }
        ScriptArguments args = scripts.begin(operation, current, calls.size());
        for (PermitRequest call : equal ? calls.subList(0, 1) : calls) {
            add(args, call.permits(), current.cost(call.permits())).add(call.waitArgument());
        }
        return args;
    }

    static ScriptArguments add(ScriptArguments args, long permits, LimitTerms.Cost cost) {
        return args.add(permits).add(cost.micros()).add(cost.parts());
    }

    CompletableFuture<List<Object>> eval(Script script, String name, ScriptArguments args) {
        return scripts.eval(script, name, args);
    }

    /**
     * Takes permits that this node has given away while Redis was away, whatever the wait that results: nobody waits for
     * it. Not repeated when the reply is lost.
     */
    void charge(String name, long permits) {
        connection.deliver(
                terms().script(),
                name,
                () -> arguments("take", terms(), List.of(new PermitRequest(permits, Long.MAX_VALUE))),
                false);
        denials.forget(name);
    }

    /**
     * Gives back what nobody has reserved behind it, at the latest after an outage. Not repeated when the reply is lost,
     * because permits given back twice would be permits too many.
     */
    void giveBack(String name, long permits, ScriptReply verdict) {
        String mark = verdict.mark().toString();
        if (mark.isEmpty()) {
            return;
        }
        LimitTerms then = verdict.terms();
        connection.deliver(
                then.script(),
                name,
                () -> add(scripts.begin("cancel", then, 1), permits, then.cost(permits))
                        .add(mark),
                false);
        denials.forget(name);
    }
}
