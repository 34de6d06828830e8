package io.ratelimited.spring.internals.limit;

import java.util.List;
import java.util.concurrent.CompletableFuture;

/** A call that sleeps in its thread ({@link RequestThreads}). Thread-safe. */
public final class Sleeper {

    private final List<Object> callers;
    private final List<Standing> standings;
    /** Completes when a call of a higher priority takes the place of this one. */
    private final CompletableFuture<Void> displaced = new CompletableFuture<>();

    /**
     * The priority of a call under a limit that has several.
     *
     * @param queue equal for calls whose priorities are compared
     * @param rank 0 for the highest
     */
    public record Standing(Object queue, int rank) {}

    /**
     * Makes one that does not sleep yet.
     *
     * @param callers those of the limits with keys that let it wait
     * @param standings one for each limit with priorities that lets it wait
     */
    public Sleeper(List<Object> callers, List<Standing> standings) {
        this.callers = callers;
        this.standings = standings;
    }

    List<Object> callers() {
        return callers;
    }

    /** Returns whether a call of a higher priority may take the place of this one. */
    public boolean mayBeDisplaced() {
        return !standings.isEmpty();
    }

    /** Runs a task when a call of a higher priority takes the place of this one; in its thread, or now if it has. */
    public void whenDisplaced(Runnable task) {
        displaced.thenRun(task);
    }

    void displace() {
        displaced.complete(null);
    }

    /** Returns whether a limit puts this call before the other one. */
    boolean isBefore(Sleeper other) {
        for (Standing own : standings) {
            for (Standing others : other.standings) {
                if (own.rank < others.rank && own.queue.equals(others.queue)) {
                    return true;
                }
            }
        }
        return false;
    }
}
