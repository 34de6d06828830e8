package io.ratelimited.spring.internals.client;

import io.ratelimited.core.Ticker;
import io.ratelimited.core.WaitingRoom;
import io.ratelimited.spring.fields.ResponseLimits;
import io.ratelimited.spring.internals.client.ClientPace.Pass;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/**
 * Lets the calls of one client and key go by its {@link ClientPace}, in the order in which they came. Waits without threads:
 * one alarm for all that wait. Thread-safe; futures are completed outside the lock.
 *
 * <ol>
 *   <li>Everything but the futures is guarded by this. No future that anybody has is completed, and no alarm set, with the lock
 *       held: code that follows a future may enter the gate again.
 *   <li>A call proceeds immediately if its time has come and no call waits whose time has come, too. Calls that wait for the
 *       same proceed in the order in which they came, whatever their longest waits are; those to another place, which nothing
 *       holds, pass them.
 *   <li>A call is refused at once if it could not go within its longest wait even if all answers were as good as they can be,
 *       or if it finds no seat in the {@link WaitingRoom} of its client. Otherwise it waits, and is refused at its own deadline
 *       if it has not gone until then.
 *   <li>A call that waits has a seat in that room from before it is in the queue until its wait has ended; then its caller learns
 *       it. The room ends the waits when it is closed, and a wait that fails or is cancelled leaves the queue.
 *   <li>Each pass is ended once: given back, failed or answered. A pass whose wait was cancelled is given back.
 *   <li>While anybody waits, an alarm is set for the earliest of the next time to go and all deadlines, or a thread that has
 *       changed the state is about to look. An alarm that comes too early looks again. If it cannot be set, all who wait fail.
 *   <li>While all who wait follow the response to a call in flight, the alarm is a timeout. A test's clock that advances by
 *       itself leaves time for the response then. While nobody waits, no alarm is set.
 * </ol>
 */
final class ClientGate {

    private static final long FARTHEST = Long.MAX_VALUE / 4;

    private final String digest;
    private final @Nullable String key;
    private final WaitingRoom room;
    private final Ticker ticker;
    private final ClientPace pace;
    private final Deque<Waiter> waiters = new ArrayDeque<>();
    /** The threads that {@link #drain}, and whether each has to look again. */
    private final Map<Thread, Boolean> draining = new HashMap<>();

    /** Null if no alarm is set. */
    private @Nullable Alarm alarm;

    private static final class Alarm {

        private final long at;
        /** Whether all who wait follow a response. */
        private final boolean isTimeout;

        private Runnable cancel = () -> {};

        private Alarm(long at, boolean isTimeout) {
            this.at = at;
            this.isTimeout = isTimeout;
        }
    }

    /** A call that waits, with its seat in the room. */
    private final class Waiter implements WaitingRoom.Waiter {

        private final String place;
        private final CompletableFuture<Entered> entered;
        private final long deadline;
        private final Entered refused;

        private Waiter(String place, CompletableFuture<Entered> entered, long deadline, Entered refused) {
            this.place = place;
            this.entered = entered;
            this.deadline = deadline;
            this.refused = refused;
        }

        @Override
        public @Nullable Object key() {
            return key;
        }

        @Override
        public boolean mayGo() {
            return true;
        }

        @Override
        public void crowdOut() {
            entered.complete(refused);
        }

        @Override
        public void cancel() {
            // First, so that a waiter that is not in the queue yet does not enter it.
            entered.cancel(false);
            leave(this);
            // It may have been let go meanwhile.
            Pass pass =
                    entered.isCompletedExceptionally() ? null : entered.join().pass();
            if (pass != null) {
                giveBack(pass);
            }
        }
    }

    /**
     * The outcome of a call at this gate.
     *
     * @param pass null if the call is refused
     * @param delayed whether the call has waited
     * @param retryAfterNanos for a refused call, the time after which another might go
     */
    record Entered(@Nullable Pass pass, boolean delayed, long retryAfterNanos) {

        private static Entered refused(long retryAfterNanos) {
            return new Entered(null, false, Math.max(1, retryAfterNanos));
        }
    }

    /**
     * Makes a gate.
     *
     * @param digest of the key
     * @param key the text of the key; null for calls without a key
     * @param room the seats of all that wait for the client
     * @param maxPause the longest pause in nanoseconds
     */
    ClientGate(String digest, @Nullable String key, WaitingRoom room, Ticker ticker, long maxPause) {
        this.digest = digest;
        this.key = key;
        this.room = room;
        this.ticker = ticker;
        this.pace = new ClientPace(maxPause);
    }

    /** Stands for the key where nobody may read it. */
    String digest() {
        return digest;
    }

    /** The text of the key; null for calls without a key. */
    @Nullable
    String key() {
        return key;
    }

    /**
     * Completes when the call may go or is refused; at once if it can be known that it cannot go in time. Cancelling the future
     * gives up the place.
     *
     * @param place as {@link OutgoingRequest#place}
     * @param maxWaitNanos 0 to go at once or not at all
     */
    CompletableFuture<Entered> enter(String place, long maxWaitNanos) {
        CompletableFuture<Entered> entered = new CompletableFuture<>();
        List<Runnable> due = new ArrayList<>();
        Waiter waiter;
        synchronized (this) {
            long now = ticker.nanos();
            letGo(now, due);
            waiter = enter(place, maxWaitNanos, entered, now);
        }
        due.forEach(Runnable::run);
        if (waiter == null) {
            return entered;
        }
        CompletableFuture<Entered> wait = room.awaitAsync(entered, () -> () -> {}, waiter);
        if (!entered.isDone()) {
            synchronized (this) {
                waiters.add(waiter);
            }
            if (entered.isDone()) {
                leave(waiter);
            }
            drain();
        }
        return wait;
    }

    /** Decides on a call, with the lock held, behind those whose time has come; null unless it is to wait. */
    private @Nullable Waiter enter(String place, long maxWaitNanos, CompletableFuture<Entered> entered, long now) {
        if (pace.next(place, now) - now <= 0) {
            entered.complete(new Entered(pace.go(place, now), false, 0));
            return null;
        }
        List<String> waiting = waiters.stream().map(waiter -> waiter.place).toList();
        long wait = pace.leastWait(place, waiting, now);
        Entered refused = Entered.refused(wait);
        if (wait > maxWaitNanos || maxWaitNanos <= 0) {
            entered.complete(refused);
            return null;
        }
        return new Waiter(place, entered, now + maxWaitNanos, refused);
    }

    /** Removes a call that has left: it keeps no other out, and leaves no alarm behind. */
    private void leave(Waiter waiter) {
        Runnable stop = () -> {};
        synchronized (this) {
            waiters.remove(waiter);
            if (waiters.isEmpty()) {
                stop = stopAlarm();
            }
        }
        stop.run();
    }

    /** Lets a call go whatever the answers say, and counts it. */
    synchronized Pass enterAnyway(String place) {
        return pace.go(place, ticker.nanos());
    }

    synchronized long pauseLeft() {
        return pace.pauseLeft(ticker.nanos());
    }

    /** As {@link ClientPace#holdsAgain}. */
    synchronized boolean holdsAgain(Pass pass) {
        return pace.holdsAgain(pass, ticker.nanos());
    }

    synchronized List<Map<String, Object>> report() {
        return pace.report();
    }

    synchronized int waiting() {
        return waiters.size();
    }

    /** As {@link ClientPace#giveBack}. */
    void giveBack(Pass pass) {
        synchronized (this) {
            pace.giveBack(pass);
        }
        drain();
    }

    /** As {@link ClientPace#failed}. */
    void failed(Pass pass) {
        synchronized (this) {
            pace.failed(pass, ticker.nanos());
        }
        drain();
    }

    /** As {@link ClientPace#admittedThere}. */
    void admittedThere(Pass pass) {
        synchronized (this) {
            pace.admittedThere(pass, ticker.nanos());
        }
        drain();
    }

    /** As {@link ClientPace#answered}. */
    void answered(Pass pass, ResponseLimits answer, boolean refused) {
        synchronized (this) {
            pace.answered(pass, answer, refused, ticker.nanos());
        }
        drain();
    }

    /** As {@link ClientPace#pause}. */
    synchronized boolean pause(long nanos) {
        return pace.pause(nanos, ticker.nanos());
    }

    /**
     * Lets those go whose time has come, and sets the alarm for the next. A call that goes may be refused by its limits on this
     * thread, and ends its pass before its future has been completed: then this thread looks again afterwards, so that its stack
     * does not grow with the number of calls that wait.
     */
    private void drain() {
        Thread thread = Thread.currentThread();
        synchronized (this) {
            if (draining.put(thread, true) != null) {
                return;
            }
        }
        try {
            while (looksAgain(thread)) {
                look();
            }
        } finally {
            synchronized (this) {
                draining.remove(thread);
            }
        }
    }

    private synchronized boolean looksAgain(Thread thread) {
        return Boolean.TRUE.equals(draining.put(thread, false));
    }

    private void look() {
        List<Runnable> due = new ArrayList<>();
        Runnable resetAlarm;
        synchronized (this) {
            long now = ticker.nanos();
            long next = letGo(now, due);
            resetAlarm = resetAlarm(refuse(now, next, due), now);
        }
        due.forEach(Runnable::run);
        resetAlarm.run();
    }

    /**
     * Decides on the alarm, with the lock held.
     *
     * @param at the time of the next look, if any call waits
     * @return sets or stops it, without the lock
     */
    private Runnable resetAlarm(long at, long now) {
        if (waiters.isEmpty()) {
            return stopAlarm();
        }
        boolean isTimeout = waiters.stream().allMatch(waiter -> pace.awaitsAnswer(waiter.place, now));
        if (alarm != null && (alarm.isTimeout ? isTimeout && at == alarm.at : at - alarm.at >= 0)) {
            return () -> {};
        }
        Runnable stop = stopAlarm();
        Alarm next = new Alarm(at, isTimeout);
        alarm = next;
        return () -> {
            stop.run();
            setAlarm(next);
        };
    }

    /**
     * Lets those go whose time has come, with the lock held.
     *
     * @return the time at which the next of the others can proceed, if any waits
     */
    private long letGo(long now, List<Runnable> due) {
        long next = now + FARTHEST;
        for (Iterator<Waiter> each = waiters.iterator(); each.hasNext(); ) {
            long held = pace.heldUntil(now);
            if (held - now > 0) {
                return ClientPace.sooner(next, held);
            }
            Waiter waiter = each.next();
            long time = pace.next(waiter.place, now);
            if (time - now > 0) {
                next = ClientPace.sooner(next, time);
                continue;
            }
            each.remove();
            if (!waiter.entered.isDone()) {
                Pass pass = pace.go(waiter.place, now);
                due.add(() -> {
                    if (!waiter.entered.complete(new Entered(pass, true, 0))) {
                        giveBack(pass);
                    }
                });
            }
        }
        return next;
    }

    /** Forgets the alarm, with the lock held; returns a task that cancels it, without the lock. */
    private Runnable stopAlarm() {
        Runnable stop = alarm == null ? () -> {} : alarm.cancel;
        alarm = null;
        return stop;
    }

    private void setAlarm(Alarm set) {
        Runnable cancel;
        try {
            cancel = set.isTimeout
                    ? ticker.schedule(set.at, () -> wake(set))
                    : ticker.sleepUntil(set.at, () -> wake(set));
        } catch (RuntimeException | Error ex) {
            failWithout(set, ex);
            return;
        }
        boolean isNeeded;
        synchronized (this) {
            isNeeded = alarm == set;
            set.cancel = cancel;
        }
        if (!isNeeded) {
            cancel.run();
        }
    }

    /** Without an alarm, as where no thread can be started, calls might wait for ever. Another alarm may be set meanwhile. */
    private void failWithout(Alarm unset, Throwable failure) {
        List<Waiter> failed;
        synchronized (this) {
            if (alarm != unset) {
                return;
            }
            alarm = null;
            failed = List.copyOf(waiters);
            waiters.clear();
        }
        failed.forEach(waiter -> waiter.entered.completeExceptionally(failure));
    }

    /**
     * Refuses those whose time is over; their times need not be in the order of the queue.
     *
     * @return the time of the next look
     */
    private long refuse(long now, long next, List<Runnable> due) {
        long earliest = next;
        for (Iterator<Waiter> each = waiters.iterator(); each.hasNext(); ) {
            Waiter waiter = each.next();
            if (waiter.deadline - now <= 0) {
                each.remove();
                Entered refused = Entered.refused(pace.leastWait(waiter.place, List.of(), now));
                due.add(() -> waiter.entered.complete(refused));
            } else if (waiter.deadline - earliest < 0) {
                earliest = waiter.deadline;
            }
        }
        return earliest;
    }

    private void wake(Alarm rung) {
        synchronized (this) {
            if (alarm == rung) {
                alarm = null;
            }
        }
        drain();
    }
}
