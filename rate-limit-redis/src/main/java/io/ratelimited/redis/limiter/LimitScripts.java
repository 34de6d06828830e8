package io.ratelimited.redis.limiter;

import io.ratelimited.core.Limit;
import io.ratelimited.redis.connection.Script;
import io.ratelimited.redis.connection.ScriptArguments;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/** A limit as it is now, and its script calls. Thread-safe. */
final class LimitScripts {

    private final LimiterContext context;
    private volatile ScriptParameters parameters;
    /** Those of the last rate that was neither closed nor unlimited: only they may have stored a state. */
    private volatile ScriptParameters counting;
    /** The last call that was alone in its script call, if the next can use its arguments. */
    private volatile @Nullable Single lastSingle;

    LimitScripts(LimiterContext context, Limit limit) {
        this.context = context;
        this.parameters = new ScriptParameters(limit, context.ticker(), context.origin());
        this.counting = parameters;
    }

    /** From now on every call is decided by another limit. */
    void update(Limit limit) {
        ScriptParameters next = new ScriptParameters(limit, context.ticker(), context.origin());
        if (!next.isConstant()) {
            counting = next;
        }
        parameters = next;
    }

    ScriptParameters counting() {
        return counting;
    }

    ScriptParameters parameters() {
        return parameters;
    }

    /** The arguments of {@code decide.lua} up to the calls, under this limit alone. */
    ScriptArguments begin(String operation, ScriptParameters current) {
        ScriptArguments args =
                new ScriptArguments().add(context.connection().time()).add(operation + " " + current.letter());
        current.appendTo(args);
        return args;
    }

    /** The arguments of {@code decide.lua} for calls under this limit alone; equal calls in a row are one group. */
    ScriptArguments arguments(String operation, ScriptParameters current, List<PermitRequest> calls) {
        Single known = lastSingle;
        if (known != null
                && known.serves(operation, current, calls, context.connection().time())) {
            return known.arguments;
        }
        ScriptArguments args = begin(operation, current);
        int end = 0;
        for (int from = 0; from < calls.size(); from = end) {
            end = PermitRequest.endOfGroup(calls, from);
            boolean all = end - from == calls.size();
            calls.get(from).appendTo(args, current, end - from);
            if (all
                    && operation.equals("take")
                    && current.isMergeable()
                    && !calls.get(from).isRefund()) {
                args.mergeable();
                if (calls.size() == 1 && context.connection().time().isEmpty()) {
                    lastSingle = new Single(
                            current, calls.get(0).permits(), calls.get(0).maxWaitMicros(), args);
                }
            }
        }
        return args;
    }

    /** The arguments of one call that takes permits, without a time. Those of the next call are mostly the same. */
    private record Single(ScriptParameters parameters, long permits, long maxWaitMicros, ScriptArguments arguments) {

        private boolean serves(String operation, ScriptParameters current, List<PermitRequest> calls, String time) {
            return calls.size() == 1
                    && parameters == current
                    && time.isEmpty()
                    && operation.equals("take")
                    && calls.get(0).takes(permits, maxWaitMicros);
        }
    }

    /** @param current under which the arguments were made */
    CompletableFuture<List<Object>> eval(String name, ScriptParameters current, ScriptArguments args) {
        return context.connection().eval(Script.DECIDE, new String[] {current.key(name)}, args);
    }
}
