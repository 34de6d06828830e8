package io.ratelimited.redis;

import io.ratelimited.core.Decision.Source;
import io.ratelimited.core.Limit;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;

/**
 * What this node asks Redis about one limit, and what it need not ask: the limit's terms, its lines and script calls.
 * Thread-safe.
 */
final class Inquiries {

    private final RedisBackend backend;
    private final Denials denials;
    private final Leases leases;
    private final ConcurrentHashMap<String, Line> lines = new ConcurrentHashMap<>();
    /** When the limiter was made: {@link io.ratelimited.core.Ticker#nanos}. */
    private final long madeAt;

    private volatile RedisTerms terms;
    private volatile Calendar calendar;
    /** What was asked last of any key: most often what is asked next. */
    private volatile @Nullable Words asked;

    Inquiries(RedisBackend backend, Limit limit, RedisLimitOptions options) {
        this.backend = backend;
        this.terms = new RedisTerms(limit);
        this.calendar = new Calendar(limit, backend.ticker());
        this.denials = new Denials(backend.ticker(), options.maximumKeys());
        this.leases = new Leases(backend, options);
        this.madeAt = backend.ticker().nanos();
    }

    /** From now on every call is decided by another limit. */
    void update(Limit limit) {
        calendar = new Calendar(limit, backend.ticker());
        terms = new RedisTerms(limit);
        denials.clear();
    }

    RedisBackend backend() {
        return backend;
    }

    RedisTerms terms() {
        return terms;
    }

    Denials denials() {
        return denials;
    }

    Leases leases() {
        return leases;
    }

    /** When a caller that comes now gives up. */
    long deadline() {
        return System.nanoTime() + backend.timeoutNanos();
    }

    /** What is decided without asking Redis; null when it has to be asked. */
    @Nullable
    Verdict known(String name, long permits, long maxWaitNanos) {
        RedisTerms current = terms;
        boolean leasable = !current.isConstant() && !current.isNever(permits);
        Verdict leased = leasable ? leases.take(name, current, permits) : null;
        return leased != null ? leased : knownUnleased(name, permits, maxWaitNanos);
    }

    /** {@link #known}, for a call that pays in Redis if it goes. */
    @Nullable
    Verdict knownUnleased(String name, long permits, long maxWaitNanos) {
        RedisTerms current = terms;
        if (current.isConstant()) {
            return constant(current);
        }
        return current.isNever(permits)
                ? null
                : denials.find(name, current, permits, Math.min(RedisTerms.FAR, maxWaitNanos / 1000));
    }

    static Verdict constant(RedisTerms terms) {
        boolean open = terms.limit().rate().isUnlimited();
        return new Verdict(open ? 0 : Verdict.NEVER, open ? Long.MAX_VALUE : 0, 0, "", terms, Source.MEMORY);
    }

    /** Asks Redis, together with whoever else asks for the key. */
    Call submit(String name, long permits, long maxWaitNanos) {
        Call call = new Call(permits, maxWaitNanos, deadline());
        RedisTerms current = terms;
        if (backend.isDown(name)) {
            call.completeExceptionally(new TimeoutException("not asked, because it has just failed"));
        } else if (current.isNever(permits)) {
            never(call, name, current);
        } else {
            Line line = lines.get(name);
            // A line may have ended meanwhile.
            while (line == null || !line.add(call)) {
                line = lines.computeIfAbsent(name, key -> new Line(this, lines, key));
            }
        }
        return call;
    }

    /** Refused for good; Redis is asked only for what is left. */
    void never(Call call, String name, RedisTerms current) {
        Call one = new Call(1, 0, call.deadline());
        eval(current.script(), name, arguments("peek", current, List.of(one))).whenComplete((reply, failure) -> {
            if (failure != null) {
                call.completeExceptionally(failure);
            } else {
                call.complete(Verdict.of(reply, 0, current).outcome(Verdict.NEVER));
            }
        });
    }

    /** The arguments of {@code decide.lua} for calls under this limit alone; equal calls are given once. */
    Words arguments(String operation, RedisTerms current, List<Call> calls) {
        Call first = calls.get(0);
        boolean equal = first.asksAs(first);
        for (int i = 1; i < calls.size() && equal; i++) {
            equal = first.asksAs(calls.get(i));
        }
        if (!equal || !current.isUsual() || !operation.equals("take")) {
            return words(backend.time(), operation, current, calls, equal);
        }
        Question question = new Question(current, calls.size(), first.permits(), first.maxWaitMicros());
        String time = backend.time();
        if (!time.isEmpty()) {
            return words(time, operation, current, calls, true).ofAnyKey(question);
        }
        Words last = asked;
        if (last == null || !question.equals(last.question())) {
            last = words(time, operation, current, calls, true).ofAnyKey(question);
            asked = last;
        }
        return last;
    }

    private Words words(String time, String operation, RedisTerms current, List<Call> calls, boolean equal) {
        Words args = begin(time, operation, current, calls.size());
        for (Call call : equal ? calls.subList(0, 1) : calls) {
            RedisTerms.Cost cost = current.cost(call.permits());
            add(args, call.permits(), cost).add(call.waitArgument());
        }
        return args;
    }

    /** What equal calls want, whatever their key. */
    private record Question(RedisTerms terms, int calls, long permits, long maxWaitMicros) {}

    Words begin(String operation, RedisTerms current, int calls) {
        return begin(backend.time(), operation, current, calls);
    }

    private Words begin(String time, String operation, RedisTerms current, int calls) {
        Words args = new Words().add(time).add(operation).add(1);
        appendTo(args, current);
        return args.add(calls);
    }

    void appendTo(Words args, RedisTerms current) {
        current.appendTo(args, (backend.ticker().nanos() - madeAt) / 1000, calendar);
    }

    static Words add(Words args, long permits, RedisTerms.Cost cost) {
        return args.add(permits).add(cost.micros()).add(cost.parts());
    }

    /** Runs a deciding script, and if the budget was stored by another algorithm, the one that knows them all. */
    CompletableFuture<List<Object>> eval(Script script, String name, Words args) {
        String[] keys = {name};
        return backend.eval(script, keys, args).thenCompose(reply -> {
            boolean foreign = reply.size() == 1 && reply.get(0) instanceof Long code && code == -1;
            return foreign ? backend.eval(Script.ALL, keys, args) : CompletableFuture.completedFuture(reply);
        });
    }

    /** Gives back what nobody has reserved behind it; if Redis does not answer, it stays spent. */
    void giveBack(String name, long permits, Verdict verdict) {
        String mark = verdict.mark().toString();
        if (mark.isEmpty()) {
            return;
        }
        RedisTerms then = verdict.terms();
        Words args = begin("cancel", then, 1);
        add(args, permits, then.cost(permits)).add(mark);
        backend.eval(then.script(), new String[] {name}, args);
        denials.forget(name);
    }
}
