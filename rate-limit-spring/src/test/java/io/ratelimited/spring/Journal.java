package io.ratelimited.spring;

import io.ratelimited.spring.internals.expression.CallResult;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/** What the bodies of limited methods did, and what they wait for. */
public final class Journal {

    /** A charge that this journal decides. */
    public static final String CHARGE = "@journal.cost(#result, #error, #count, #cancelled)";

    /** Arguments of the calls whose body ran, and the threads they ran on. */
    final List<String> bodies = new CopyOnWriteArrayList<>();

    final List<Thread> threads = new CopyOnWriteArrayList<>();

    /** The result of calls that stay in flight. */
    volatile CompletableFuture<String> flight = new CompletableFuture<>();

    /** What {@link #CHARGE} evaluates to. */
    volatile Function<CallResult, @Nullable Object> cost = result -> 10;

    /** How the calls have ended that {@link #CHARGE} was evaluated for. */
    final List<CallResult> ended = new CopyOnWriteArrayList<>();

    public @Nullable Object cost(@Nullable Object result, @Nullable Throwable error, long count, boolean cancelled) {
        CallResult end = new CallResult(result, error, count, cancelled);
        ended.add(end);
        return cost.apply(end);
    }

    public String body(String id) {
        threads.add(Thread.currentThread());
        bodies.add(id);
        return "body " + id;
    }

    public CompletableFuture<String> fly(String id) {
        bodies.add(id);
        return flight;
    }
}
