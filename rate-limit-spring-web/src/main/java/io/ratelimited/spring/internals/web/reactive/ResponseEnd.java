package io.ratelimited.spring.internals.web.reactive;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CancellationException;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * Runs actions when a response is committed and when it has ended. Actions take the failure that ended it before it was
 * complete, or null. Thread-safe.
 */
final class ResponseEnd {

    private boolean followed;
    private boolean committed;
    private List<Consumer<@Nullable Throwable>> atCommit = List.of();
    private List<Consumer<@Nullable Throwable>> atEnd = List.of();
    private volatile boolean aborted;

    /** Returns whether the caller is the first, who has to call {@link #ended}. */
    synchronized boolean tryFollow() {
        boolean first = !followed;
        followed = true;
        return first;
    }

    /** Returns whether the action will run: not after the commit, or if nobody reports the end. */
    synchronized boolean tryRunAtCommit(Consumer<@Nullable Throwable> action) {
        if (!followed || committed) {
            return false;
        }
        atCommit = with(atCommit, action);
        return true;
    }

    /** Returns whether the action will run: not after the end, or if nobody reports it. */
    synchronized boolean tryRunAtEnd(Consumer<@Nullable Throwable> action) {
        if (!followed) {
            return false;
        }
        atEnd = with(atEnd, action);
        return true;
    }

    private static List<Consumer<@Nullable Throwable>> with(
            List<Consumer<@Nullable Throwable>> actions, Consumer<@Nullable Throwable> action) {
        List<Consumer<@Nullable Throwable>> all = new ArrayList<>(actions);
        all.add(action);
        return all;
    }

    void committed() {
        committed(null);
    }

    private void committed(@Nullable Throwable failure) {
        List<Consumer<@Nullable Throwable>> actions;
        synchronized (this) {
            committed = true;
            actions = atCommit;
            atCommit = List.of();
        }
        run(actions, failure);
    }

    private static void run(List<Consumer<@Nullable Throwable>> actions, @Nullable Throwable failure) {
        for (int i = 0; i < actions.size(); i++) {
            actions.get(i).accept(failure);
        }
    }

    /** Returns whether the client has gone before the response was complete. */
    boolean isAborted() {
        return aborted;
    }

    /** Ends the response: nobody waits for it any more. */
    void aborted() {
        aborted = true;
        ended(new CancellationException("the client disconnected before the response was complete"));
    }

    /**
     * Notes the end of the response, perhaps without a commit.
     *
     * @param failure the failure that has ended it; null if it is complete
     */
    void ended(@Nullable Throwable failure) {
        committed(failure);
        List<Consumer<@Nullable Throwable>> actions;
        synchronized (this) {
            followed = false;
            actions = atEnd;
            atEnd = List.of();
        }
        run(actions, failure);
    }
}
