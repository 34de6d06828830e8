package io.ratelimited.spring.web.reactive;

import java.util.ArrayList;
import java.util.List;

/** What runs when a response is committed and when it has ended. Thread-safe. */
final class ResponseEnd {

    private boolean followed;
    private boolean committed;
    private List<Runnable> atCommit = List.of();
    private List<Runnable> atEnd = List.of();

    /** Returns whether the caller is the first, who has to call {@link #ended}. */
    synchronized boolean tryFollow() {
        boolean first = !followed;
        followed = true;
        return first;
    }

    /** Returns whether the action will run: not after the commit, or if nobody tells the end. */
    synchronized boolean tryRunAtCommit(Runnable action) {
        if (!followed || committed) {
            return false;
        }
        atCommit = with(atCommit, action);
        return true;
    }

    /** Returns whether the action will run: not after the end, or if nobody tells it. */
    synchronized boolean tryRunAtEnd(Runnable action) {
        if (!followed) {
            return false;
        }
        atEnd = with(atEnd, action);
        return true;
    }

    private static List<Runnable> with(List<Runnable> actions, Runnable action) {
        List<Runnable> all = new ArrayList<>(actions);
        all.add(action);
        return all;
    }

    void committed() {
        List<Runnable> actions;
        synchronized (this) {
            committed = true;
            actions = atCommit;
            atCommit = List.of();
        }
        actions.forEach(Runnable::run);
    }

    /** The response has ended, perhaps without a commit. */
    void ended() {
        committed();
        List<Runnable> actions;
        synchronized (this) {
            followed = false;
            actions = atEnd;
            atEnd = List.of();
        }
        actions.forEach(Runnable::run);
    }
}
