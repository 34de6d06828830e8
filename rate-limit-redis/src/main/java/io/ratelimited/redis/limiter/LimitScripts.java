package io.ratelimited.redis.limiter;

import io.ratelimited.core.Limit;
import io.ratelimited.redis.connection.Script;
import io.ratelimited.redis.connection.ScriptArguments;
import java.util.List;
import java.util.concurrent.CompletableFuture;

/** A limit as it is now, and its script calls. Thread-safe. */
final class LimitScripts {

    private final LimiterContext context;
    private volatile ScriptParameters parameters;
    /** Those of the last rate that was neither closed nor unlimited, of which a state may be stored. */
    private volatile ScriptParameters counting;

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
    ScriptArguments begin(String operation, ScriptParameters current, int calls) {
        ScriptArguments args = new ScriptArguments()
                .add(context.connection().time())
                .add(operation)
                .add(1);
        current.appendTo(args);
        return args.add(calls);
    }

    /** The arguments of {@code decide.lua} for calls under this limit alone; equal calls are given once. */
    ScriptArguments arguments(String operation, ScriptParameters current, List<PermitRequest> calls) {
        PermitRequest first = calls.get(0);
        boolean equal = true;
        for (int i = 0; i < calls.size() && equal; i++) {
            equal = first.asksAs(calls.get(i));
        }
        if (equal && operation.equals("take") && current.isUsual()) {
            ScriptArguments args =
                    new ScriptArguments().add(context.connection().time());
            return current.appendUsual(args, calls.size(), first).ofAnyKey();
        }
        ScriptArguments args = begin(operation, current, calls.size());
        for (PermitRequest call : equal ? calls.subList(0, 1) : calls) {
            current.addCost(args, call.permits()).add(call.waitArgument());
        }
        return args;
    }

    /** @param current under which the arguments were made */
    CompletableFuture<List<Object>> eval(String name, ScriptParameters current, ScriptArguments args) {
        return context.connection().eval(Script.DECIDE, new String[] {current.key(name)}, args);
    }
}
