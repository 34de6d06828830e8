package io.ratelimited.spring.internals.limit;

import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * The threads that serve requests. Where they are a bounded pool, callers that sleep in them keep all other requests out:
 * half of them stay free from all waits, those of methods and of outgoing calls together. One caller of a limit with keys
 * takes half of what is left, rounded up, so that nobody fills it alone. Thread-safe.
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
        this(number, new Sleeping(new AtomicInteger(), new ConcurrentHashMap<>()));
    }

    /**
     * Those who sleep.
     *
     * @param all their number
     * @param byCaller the number of calls of each caller of a limit with keys
     */
    private record Sleeping(AtomicInteger all, ConcurrentHashMap<Object, Integer> byCaller) {}

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

    /**
     * Lets a call sleep in its thread, until it {@link #leave leaves}.
     *
     * @param stated the number that a property lets sleep at once, if that is more than half of the threads
     * @param callers the callers of the limits with keys that let it wait
     * @return false when so many sleep already, or so many calls of one of the callers
     */
    public boolean tryEnter(int stated, List<?> callers) {
        if (number == 0) {
            return true;
        }
        int most = Math.max(half(), stated);
        for (int i = 0; i < callers.size(); i++) {
            if (!tryEnter(callers.get(i), most - most / 2)) {
                leaveOf(callers.subList(0, i));
                return false;
            }
        }
        if (sleeping.all.getAndUpdate(now -> now < most ? now + 1 : now) < most) {
            return true;
        }
        leaveOf(callers);
        return false;
    }

    private boolean tryEnter(Object caller, int most) {
        boolean[] entered = new boolean[1];
        sleeping.byCaller.compute(caller, (same, calls) -> {
            int before = calls == null ? 0 : calls;
            entered[0] = before < most;
            return entered[0] ? Integer.valueOf(before + 1) : calls;
        });
        return entered[0];
    }

    /**
     * Lets a call leave that has slept.
     *
     * @param callers those with which it entered
     */
    public void leave(List<?> callers) {
        if (number > 0) {
            sleeping.all.decrementAndGet();
            leaveOf(callers);
        }
    }

    private void leaveOf(List<?> callers) {
        for (Object caller : callers) {
            sleeping.byCaller.computeIfPresent(caller, (same, calls) -> calls == 1 ? null : calls - 1);
        }
    }

    /** Returns how many may sleep so that half of the threads are left for other requests. */
    public int half() {
        return number == 0 ? Integer.MAX_VALUE : Math.max(1, number / 2);
    }
}
