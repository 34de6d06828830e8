package io.ratelimited.redis.limiter;

import io.ratelimited.core.Ticker;
import io.ratelimited.redis.connection.GuardedConnection;
import io.ratelimited.redis.connection.Replies;
import java.util.List;
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

    RemoteDecisions(LimiterContext context, LimitScripts scripts, LimiterOptions options) {
        this.connection = context.connection();
        this.ticker = context.ticker();
        this.scripts = scripts;
        this.denials = new DenialCache(ticker, options.maximumKeys());
        this.leases = new Leases(ticker, context.nodes(), options);
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
        ScriptParameters current = scripts.parameters();
        boolean leasable = !current.isConstant() && !current.isNever(permits);
        ScriptReply leased = leasable ? leases.take(name, current, permits) : null;
        return leased != null ? leased : knownUnleased(name, permits, maxWaitNanos);
    }

    /** {@link #known}, for a call that pays in Redis if it goes. */
    @Nullable
    ScriptReply knownUnleased(String name, long permits, long maxWaitNanos) {
        ScriptParameters current = scripts.parameters();
        if (current.isConstant()) {
            return ScriptReply.constant(current);
        }
        return current.isNever(permits)
                ? null
                : denials.find(name, current, permits, Math.min(ScriptParameters.FAR, maxWaitNanos / 1000));
    }

    /** Asks Redis, together with other callers of the key. */
    PermitRequest submit(String name, long permits, long maxWaitNanos) {
        PermitRequest call = new PermitRequest(permits, maxWaitNanos);
        ScriptParameters current = scripts.parameters();
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
    void never(PermitRequest call, String name, ScriptParameters current) {
        PermitRequest one = new PermitRequest(1, 0);
        scripts.eval(current, name, scripts.arguments("peek", current, List.of(one)))
                .whenComplete((reply, failure) -> {
                    if (failure != null) {
                        call.completeExceptionally(failure);
                    } else {
                        call.complete(ScriptReply.of(reply, 0, current).outcome(ScriptReply.NEVER));
                    }
                });
    }

    /**
     * Takes permits that this node has given away while Redis was away, whatever the wait that results: nobody waits for
     * it. Not repeated when the reply is lost.
     */
    void charge(String name, long permits) {
        List<PermitRequest> call = List.of(new PermitRequest(permits, Long.MAX_VALUE));
        connection.deliver(
                scripts.parameters().script(),
                name,
                () -> scripts.arguments("take", scripts.parameters(), call),
                false);
        denials.forget(name);
    }

    /**
     * Gives back what nobody has reserved behind it, at the latest after an outage. Not repeated when the reply is lost,
     * because permits given back twice would be permits too many.
     */
    void giveBack(String name, long permits, ScriptReply taken) {
        String mark = taken.mark().toString();
        if (mark.isEmpty()) {
            return;
        }
        ScriptParameters then = taken.parameters();
        connection.deliver(
                then.script(),
                name,
                () -> then.addCost(scripts.begin("cancel", then, 1), permits).add(mark),
                false);
        denials.forget(name);
    }
}
