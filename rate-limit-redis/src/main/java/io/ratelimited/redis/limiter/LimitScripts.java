package io.ratelimited.redis.limiter;

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import io.ratelimited.core.Decision.Source;
import io.ratelimited.core.Limit;
import io.ratelimited.redis.connection.Script;
import io.ratelimited.redis.connection.ScriptArguments;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** A limit as it is now, and its script calls. Thread-safe. */
final class LimitScripts {

    /** Keys whose peeks are remembered. */
    private static final int MOST_PEEKED = 100_000;
    /** Different questions about one key whose answers are remembered. */
    private static final int MOST_PEEKS = 4;

    private final LimiterContext context;
    /** By the name of the key, newest first. */
    private final Cache<String, List<Peek>> peeks;

    private volatile ScriptParameters parameters;
    /** Those of the last rate that was neither closed nor unlimited: only they may have stored a state. */
    private volatile ScriptParameters counting;
    /** The last call that was alone in its script call, if the next can use its arguments. */
    private volatile @Nullable Single lastSingle;

    LimitScripts(LimiterContext context, Limit limit) {
        this.context = context;
        this.peeks = Caffeine.newBuilder()
                .maximumSize(MOST_PEEKED)
                .expireAfterWrite(1, TimeUnit.SECONDS)
                .ticker(context.ticker()::nanos)
                .executor(Runnable::run)
                .build();
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

    /**
     * What Redis would decide about a call. The caller may complete the future, which is its own.
     *
     * @param knownNanos how long the answer serves equal calls, one second at the most, also those that come before it; 0
     *     to ask in any case
     */
    CompletableFuture<ScriptReply> peek(String name, ScriptParameters current, PermitRequest call, long knownNanos) {
        if (knownNanos <= 0) {
            return peek(name, current, call);
        }
        long now = context.ticker().nanos();
        Peek known = Peek.find(peeks.getIfPresent(name), current, call, now);
        if (known == null) {
            Peek mine = new Peek(current, call, now, now + knownNanos);
            List<Peek> all = peeks.asMap()
                    .compute(
                            name,
                            (same, before) ->
                                    Peek.find(before, current, call, now) != null ? before : mine.before(before));
            known = Peek.find(all, current, call, now);
            if (known == null || known.call == call) {
                peek(name, current, call).whenComplete((reply, failure) -> {
                    if (failure != null) {
                        call.completeExceptionally(failure);
                    } else {
                        call.complete(reply);
                    }
                });
                return call.copy();
            }
        }
        Peek earlier = known;
        return earlier.call.thenApply(reply -> earlier.at(now, reply));
    }

    private CompletableFuture<ScriptReply> peek(String name, ScriptParameters current, PermitRequest call) {
        return eval(name, current, arguments("peek", current, List.of(call)))
                .thenApply(reply -> current.read(reply, List.of(call))[0]);
    }

    /** The budget of a key has changed, so that what was peeked means nothing. */
    void forgetPeeks(String name) {
        peeks.invalidate(name);
    }

    /**
     * A question to Redis.
     *
     * @param call done when Redis has answered
     * @param until when it is to be forgotten
     */
    private record Peek(ScriptParameters parameters, PermitRequest call, long sentAt, long until) {

        private static @Nullable Peek find(
                @Nullable List<Peek> peeks, ScriptParameters current, PermitRequest call, long now) {
            if (peeks != null) {
                for (Peek peek : peeks) {
                    if (peek.serves(current, call, now)) {
                        return peek;
                    }
                }
            }
            return null;
        }

        /** Who asks for less is admitted, too. */
        private boolean serves(ScriptParameters current, PermitRequest other, long now) {
            if (parameters != current
                    || call.maxWaitMicros() != other.maxWaitMicros()
                    || call.permits() < other.permits()
                    || now - until >= 0
                    || call.isCompletedExceptionally()) {
                return false;
            }
            if (!call.isDone()) {
                return call.permits() == other.permits();
            }
            ScriptReply reply = call.join();
            return reply.admitted()
                    || (call.permits() == other.permits() && (!reply.hasRetry() || now - sentAt < ~reply.outcome()));
        }

        private List<Peek> before(@Nullable List<Peek> others) {
            List<Peek> all = new ArrayList<>(MOST_PEEKS);
            all.add(this);
            if (others != null) {
                all.addAll(others.subList(0, Math.min(others.size(), MOST_PEEKS - 1)));
            }
            return all;
        }

        /** The answer at a later time. */
        private ScriptReply at(long now, ScriptReply reply) {
            long elapsed = now - sentAt;
            return new ScriptReply(
                    reply.hasRetry() ? ~Math.max(1, ~reply.outcome() - elapsed) : reply.outcome(),
                    reply.remaining(),
                    Math.max(0, reply.reset() - elapsed),
                    reply.mark(),
                    reply.parameters(),
                    Source.DENY_CACHE);
        }
    }

    /** @param current under which the arguments were made */
    CompletableFuture<List<Object>> eval(String name, ScriptParameters current, ScriptArguments args) {
        return context.connection().eval(Script.DECIDE, new String[] {current.key(name)}, args);
    }
}
