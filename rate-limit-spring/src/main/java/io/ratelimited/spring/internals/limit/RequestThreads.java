package io.ratelimited.spring.internals.limit;

import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * The threads that serve requests. Where they are a bounded pool, callers that sleep in them keep all other requests out:
 * half of them stay free from all waits, those of methods and of outgoing calls together. One caller of a limit with keys
 * takes half of what is left, rounded up, so that nobody fills it alone. Where all are taken, a call takes the place of the
 * one with the lowest priority below its own under the same limit and key, which came last. Thread-safe.
 */
public final class RequestThreads {

    /** As many as needed. */
    public static final RequestThreads UNBOUNDED = new RequestThreads(0);

    private final int number;
    private final Sleeping sleeping;

    private RequestThreads(int number, Sleeping sleeping) {
        this.number = number;
        this.sleeping = sleeping;
    }

    /** @param number 0 where there are as many as needed */
    public RequestThreads(int number) {
        this(number, new Sleeping());
    }

    /** Returns how many there are; 0 where there are as many as needed. */
    public int number() {
        return number;
    }

    /** Returns these, or others if there are fewer of them; calls that sleep already count. */
    RequestThreads orFewer(RequestThreads others) {
        return others.half() < half()
                ? new RequestThreads(others.number, number == 0 ? others.sleeping : sleeping)
                : this;
    }

    /** Returns whether so few sleep that any call may. One volatile read, because every call that may wait asks. */
    public boolean isRoomy() {
        return number == 0 || sleeping.number < ofOneCaller(half());
    }

    /** Returns what {@link #tryEnter} would return now. */
    public boolean mayEnter(int stated, Sleeper sleeper) {
        return isRoomy() || sleeping.find(most(stated), sleeper) != null;
    }

    /**
     * Lets a call sleep in its thread, until it {@link #leave leaves} or another one takes its place.
     *
     * @param stated the number that a property lets sleep at once, if that is more than half of the threads
     * @return false when so many sleep already, or so many calls of one of its callers, and none has a lower priority
     */
    public boolean tryEnter(int stated, Sleeper sleeper) {
        return number == 0 || sleeping.tryEnter(most(stated), sleeper);
    }

    /** Lets a call leave that has slept. */
    public void leave(Sleeper sleeper) {
        if (number > 0) {
            sleeping.leave(sleeper);
        }
    }

    /** Returns how many may sleep so that half of the threads are left for other requests. */
    public int half() {
        return number == 0 ? Integer.MAX_VALUE : Math.max(1, number / 2);
    }

    private int most(int stated) {
        return Math.max(half(), stated);
    }

    private static int ofOneCaller(int most) {
        return most - most / 2;
    }

    /** Those who sleep. */
    private static final class Sleeping {

        /** The answer where there is room without anybody's place. */
        private static final Sleeper NOBODY = new Sleeper(List.of(), List.of());

        /** The oldest first. Guarded by this. */
        private final Set<Sleeper> all = new LinkedHashSet<>();
        /** The number of calls of each caller of a limit with keys. Guarded by this. */
        private final Map<Object, Integer> byCaller = new HashMap<>();
        /** The size of {@link #all}. Written with it. */
        private volatile int number;

        boolean tryEnter(int most, Sleeper sleeper) {
            Sleeper last;
            synchronized (this) {
                last = find(most, sleeper);
                if (last == null) {
                    return false;
                }
                leave(last);
                all.add(sleeper);
                sleeper.callers().forEach(caller -> byCaller.merge(caller, 1, Integer::sum));
                number = all.size();
            }
            // Without the lock, because its end may let other calls go. One that has ended by itself gives up its
            // place, too.
            last.displace();
            return true;
        }

        /** Returns whose place a call would take: nobody's where there is room; null where there is none. */
        synchronized @Nullable Sleeper find(int most, Sleeper sleeper) {
            if (all.size() < most && hasRoomForCallers(most, sleeper, NOBODY)) {
                return NOBODY;
            }
            Sleeper last = null;
            for (Sleeper other : all) {
                if (sleeper.isBefore(other)
                        && (last == null || !other.isBefore(last))
                        && hasRoomForCallers(most, sleeper, other)) {
                    last = other;
                }
            }
            return last;
        }

        private boolean hasRoomForCallers(int most, Sleeper sleeper, Sleeper without) {
            for (Object caller : sleeper.callers()) {
                int calls =
                        byCaller.getOrDefault(caller, 0) - (without.callers().contains(caller) ? 1 : 0);
                if (calls >= ofOneCaller(most)) {
                    return false;
                }
            }
            return true;
        }

        /** Has no effect on a call whose place was taken. */
        synchronized void leave(Sleeper sleeper) {
            if (all.remove(sleeper)) {
                sleeper.callers()
                        .forEach(caller -> byCaller.computeIfPresent(
                                caller, (same, calls) -> calls == 1 ? null : Integer.valueOf(calls - 1)));
                number = all.size();
            }
        }
    }
}
