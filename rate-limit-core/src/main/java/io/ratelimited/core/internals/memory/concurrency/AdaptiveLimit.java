package io.ratelimited.core.internals.memory.concurrency;

import io.ratelimited.core.End;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Ticker;
import io.ratelimited.core.internals.several.JointLocks;
import io.ratelimited.core.overload.FoundLimitChange;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.DoubleAdder;
import java.util.concurrent.atomic.LongAccumulator;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * Collects how calls end, and lets the {@link Controller} take a step when it has seen enough. A call adds to a few counters
 * when it ends; one of those that find a window over takes the step. Thread-safe.
 */
final class AdaptiveLimit {

    private final Ticker ticker;
    /** Permits of calls that ended, as are {@link #late} and {@link #overloaded}: what is in use is counted in permits, too. */
    private final LongAdder answered = new LongAdder();
    /** Sums by permit, which may be too large for a long: times; below, permits in use and the other permits of the same call. */
    private final DoubleAdder nanos = new DoubleAdder();

    private final DoubleAdder inFlight = new DoubleAdder();
    private final DoubleAdder others = new DoubleAdder();
    /** Permits of calls but one for each: few calls have any, so that a counter of calls would cost more. */
    private final LongAdder more = new LongAdder();

    private final LongAccumulator most = new LongAccumulator(Math::max, 0);
    private final LongAdder late = new LongAdder();
    private final LongAdder overloaded = new LongAdder();
    /** Permits in use of calls that wait for their callers. */
    private final LongAdder atCaller = new LongAdder();

    private final List<Consumer<FoundLimitChange>> observers = new CopyOnWriteArrayList<>();
    /** Held by the thread that takes a step. */
    private final AtomicBoolean stepping = new AtomicBoolean();

    private volatile boolean bound;
    /** When a call was last rejected or waited, within {@link Tuning#SHORTEST}; at least when the limit began. */
    private volatile long boundAt;
    /** Written while {@link #stepping} is held, as the fields below. */
    private volatile Controller controller;

    /** Whether there are several classes of calls. */
    private volatile boolean classes;

    private volatile int places;
    private volatile int placesOfBest;
    private volatile long longest = Long.MAX_VALUE;
    private volatile int watched = Integer.MAX_VALUE;
    private volatile long begun;
    private volatile long lateNanos;
    private volatile FoundLimitChange last;

    AdaptiveLimit(Limit limit, Ticker ticker) {
        this.ticker = ticker;
        this.begun = ticker.nanos();
        this.controller = Controller.of(limit.minConcurrent(), limit.maxConcurrent());
        this.classes = hasClasses(limit);
        this.places = controller.places(classes);
        this.placesOfBest = controller.placesOfBest();
        this.lateNanos = lateNanos(limit);
        this.last = new FoundLimitChange(begun, controller.found(), controller.found(), FoundLimitChange.Reason.START);
    }

    private static boolean hasClasses(Limit limit) {
        return limit.priorities().size() > 1;
    }

    private static long lateNanos(Limit limit) {
        Duration late = limit.lateAfter();
        return late == null ? Long.MAX_VALUE : late.toNanos();
    }

    /** Permits that calls of a class may have in use together with all others. */
    int places(boolean best) {
        return best ? placesOfBest : places;
    }

    int limit() {
        return controller.found();
    }

    @Nullable
    Duration baseTime() {
        double base = controller.base();
        return base == 0 ? null : Duration.ofNanos((long) base);
    }

    FoundLimitChange last() {
        return last;
    }

    void observe(Consumer<FoundLimitChange> observer) {
        observers.add(observer);
    }

    /** Permits in use from which on a call that is admitted may take the step. */
    int watched() {
        return watched;
    }

    /** Counts the permits of a call that begins to wait for its caller; negative ones when it goes on. */
    void atCaller(long permits) {
        atCaller.add(permits);
    }

    /** A call was admitted while as many are in flight as {@link #watched} says: perhaps none ends any more. */
    void admitted(long now, long used) {
        if (mayStep(now, used)) {
            step(now, used);
        }
    }

    /**
     * A call was rejected or waits. It may take the step: where nothing ends, only such calls find a window over.
     *
     * @param now when it found no place
     * @param used permits in use
     */
    void full(long now, long used) {
        bound(now);
        if (mayStep(now, used)) {
            step(now, used);
        }
    }

    private void bound(long now) {
        if (!bound) {
            bound = true;
        }
        if (now - boundAt > Tuning.SHORTEST) {
            boundAt = now;
        }
    }

    /**
     * A call finds no place. Where nobody has called for long, no call has ended either, and so none has removed the limit.
     *
     * @param now when it found none
     * @param used permits in use
     * @return whether there is no limit now; another call may have removed it
     */
    boolean forgets(long now, long used) {
        while (isForgotten(now) && !step(now, used)) {
            Thread.onSpinWait();
        }
        return !controller.isLimited();
    }

    private boolean isForgotten(long now) {
        return controller.isLimited() && now - boundAt > Tuning.FORGET;
    }

    /**
     * A call has ended.
     *
     * @param start the time of its admission
     * @param before permits in use before it ended
     * @param used permits in use now
     * @param waits whether another call waits for a place
     */
    void ended(long start, long before, long used, boolean waits, End end) {
        long now = ticker.nanos();
        if (waits) {
            bound(now);
        }
        if (now - begun < 0) {
            return; // the window has not begun
        }
        long took = Math.max(0, now - start);
        long permits = before - used;
        boolean isLate = took > lateNanos;
        if (end == End.OVERLOADED) {
            overloaded.add(permits);
            count(permits, took, before);
        } else if (end == End.ANSWERED || (end == End.FAILED && isLate)) {
            answered.add(permits);
            count(permits, took, before);
            if (isLate) {
                late.add(permits);
            }
        }
        if (mayStep(now, used)) {
            step(now, used);
        }
    }

    private void count(long permits, long took, long before) {
        nanos.add((double) permits * Math.min(took, longest));
        inFlight.add((double) permits * before);
        most.accumulate(before);
        if (permits > 1) {
            others.add((double) permits * (permits - 1));
            more.add(permits - 1);
        }
    }

    private boolean mayStep(long now, long used) {
        if (isForgotten(now)) {
            return true;
        }
        long length = now - begun;
        if (length < Tuning.SHORTEST) {
            return false;
        }
        long failed = overloaded.sum();
        return controller.isOver(length, answered.sum() + failed, late.sum() + failed, used);
    }

    private boolean step(long now, long used) {
        if (!stepping.compareAndSet(false, true)) {
            return false;
        }
        FoundLimitChange change;
        try {
            if (!mayStep(now, used)) {
                return false;
            }
            long count = answered.sumThenReset();
            long failed = overloaded.sumThenReset();
            double divisor = Math.max(1, count + failed);
            Window seen = new Window(
                    Math.max(1, now - begun),
                    count,
                    nanos.sumThenReset() / divisor,
                    inFlight.sumThenReset() / divisor,
                    most.getThenReset(),
                    late.sumThenReset(),
                    failed,
                    bound,
                    used,
                    Math.max(0, Math.min(used, atCaller.sum())),
                    1 + others.sumThenReset() / divisor,
                    divisor / Math.max(1, divisor - more.sumThenReset()));
            bound = false;
            change = take(isForgotten(now) ? controller.forgotten(seen) : controller.next(seen), now);
            begun = now + controller.settling();
        } finally {
            stepping.set(false);
        }
        tell(change);
        return true;
    }

    /** Takes over what a step has found; returns null where the limit is the same. */
    private @Nullable FoundLimitChange take(Controller next, long now) {
        int before = controller.found();
        if (!controller.isLimited()) {
            boundAt = now;
        }
        places = next.places(classes);
        placesOfBest = next.placesOfBest();
        longest = next.longest();
        watched = next.watched();
        controller = next; // last: who finds no limit finds the places
        int after = next.found();
        if (after == before) {
            return null;
        }
        FoundLimitChange change = new FoundLimitChange(now, before, after, next.reason());
        last = change;
        return change;
    }

    /** Tells the observers, who may call the limiter: no lock is held, neither ours nor those of other limits on the call. */
    private void tell(@Nullable FoundLimitChange change) {
        if (change != null) {
            JointLocks.outside(() -> tellNow(change));
        }
    }

    private void tellNow(FoundLimitChange change) {
        observers.forEach(observer -> tell(observer, change));
    }

    /** An observer that fails must not fail the call whose end takes the step. */
    private static void tell(Consumer<FoundLimitChange> observer, FoundLimitChange change) {
        try {
            observer.accept(change);
        } catch (RuntimeException ex) {
            Thread current = Thread.currentThread();
            current.getUncaughtExceptionHandler().uncaughtException(current, ex);
        }
    }

    /**
     * Takes over other bounds.
     *
     * @return tells the observers; for when no lock is held
     */
    Runnable update(Limit limit) {
        while (!stepping.compareAndSet(false, true)) {
            Thread.onSpinWait();
        }
        try {
            lateNanos = lateNanos(limit);
            classes = hasClasses(limit);
            boolean same = controller.least() == limit.minConcurrent() && controller.most() == limit.maxConcurrent();
            FoundLimitChange change =
                    same ? null : take(controller.within(limit.minConcurrent(), limit.maxConcurrent()), ticker.nanos());
            return () -> tell(change);
        } finally {
            stepping.set(false);
        }
    }
}
