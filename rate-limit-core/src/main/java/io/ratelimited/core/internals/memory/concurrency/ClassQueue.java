package io.ratelimited.core.internals.memory.concurrency;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Waiting calls, first come, first served within a class. Used under the monitor of its cell.
 *
 * @param <C> calls, each with the rank of its class
 */
final class ClassQueue<C> {

    /** By rank; most limits have one class. */
    private final List<Deque<C>> byRank = new ArrayList<>(1);
    /** By rank, since when a call of this class or of a better one waits; meaningless while none does. */
    private final List<Long> since = new ArrayList<>(1);

    private int size;

    int size() {
        return size;
    }

    void add(int rank, C call, long now) {
        while (byRank.size() <= rank) {
            since.add(since.isEmpty() ? now : since.get(since.size() - 1));
            byRank.add(new ArrayDeque<>(0));
        }
        for (int worse = rank; worse < byRank.size() && !hasUpTo(worse); worse++) {
            since.set(worse, now);
        }
        byRank.get(rank).addLast(call);
        size++;
    }

    /** Returns whether the call stood in the queue. */
    boolean remove(int rank, C call) {
        boolean removed = rank < byRank.size() && byRank.get(rank).remove(call);
        size -= removed ? 1 : 0;
        return removed;
    }

    /** The number of ranks that may have calls. */
    int ranks() {
        return byRank.size();
    }

    /** The first call of a class; null when none waits. */
    @Nullable
    C first(int rank) {
        return byRank.get(rank).peekFirst();
    }

    /** The call that came last of the worst class that waits, if that class is worse than this one; null for none. */
    @Nullable
    C lastBelow(int rank) {
        for (int worse = byRank.size() - 1; worse > rank; worse--) {
            C last = byRank.get(worse).peekLast();
            if (last != null) {
                return last;
            }
        }
        return null;
    }

    /** Returns whether a call of this class waits. */
    boolean has(int rank) {
        return rank < byRank.size() && !byRank.get(rank).isEmpty();
    }

    /** Returns whether a call of this class or of a better one waits. */
    boolean hasUpTo(int rank) {
        for (int better = 0; better <= rank && better < byRank.size(); better++) {
            if (!byRank.get(better).isEmpty()) {
                return true;
            }
        }
        return false;
    }

    /** For how many nanoseconds a call of this class or of a better one has been waiting; 0 if none does. */
    long standing(int rank, long now) {
        return hasUpTo(rank) ? now - since.get(Math.min(rank, since.size() - 1)) : 0;
    }

    List<C> all() {
        List<C> all = new ArrayList<>(size);
        byRank.forEach(all::addAll);
        return all;
    }
}
