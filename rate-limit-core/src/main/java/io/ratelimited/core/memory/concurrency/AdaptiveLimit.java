package io.ratelimited.core.memory.concurrency;

import io.ratelimited.core.End;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Ticker;
import io.ratelimited.core.overload.LimitChange;
import io.ratelimited.core.several.JointLocks;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicBoolean;
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
    private final LongAdder answered = new LongAdder();
    private final LongAdder nanos = new LongAdder();
    private final LongAdder inFlight = new LongAdder();
    private final LongAccumulator most = new LongAccumulator(Math::max, 0);
    private final LongAdder late = new LongAdder();
    private final LongAdder overloaded = new LongAdder();
    private final List<Consumer<LimitChange>> observers = new CopyOnWriteArrayList<>();
    /** Held by the thread that takes a step. */
    private final AtomicBoolean stepping = new AtomicBoolean();

    private volatile boolean bound;
    /** Written while {@link #stepping} is held, as the fields below. */
    private volatile Controller controller;

    private volatile int places;
    private volatile int placesOfBest;
    private volatile long longest = Long.MAX_VALUE;
    private volatile long begun;
    private volatile long lateNanos;
    private volatile LimitChange last;

    AdaptiveLimit(Limit limit, Ticker ticker) {
        this.ticker = ticker;
        this.begun = ticker.nanos();
        this.controller = Controller.of(limit.minConcurrent(), limit.maxConcurrent());
        this.places = controller.places();
        this.placesOfBest = controller.placesOfBest();
        this.lateNanos = lateNanos(limit);
        this.last = new LimitChange(begun, controller.limit(), controller.limit(), LimitChange.Reason.START);
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
        return controller.limit();
    }

    @Nullable
    Duration baseTime() {
        double base = controller.base();
        return base == 0 ? null : Duration.ofNanos((long) base);
    }

    LimitChange last() {
        return last;
    }

    void observe(Consumer<LimitChange> observer) {
        observers.add(observer);
    }

    /** A call was refused or waits. It may take the step: where nothing ends, only such calls find a window over. */
    void full() {
        if (!bound) {
            bound = true;
        }
        long now = ticker.nanos();
        if (mayStep(now)) {
            step(now);
        }
    }

    /**
     * A call has ended.
     *
     * @param start the time of its admission
     * @param used permits in use before it ended
     * @return whether the limit may have changed
     */
    boolean ended(long start, long used, End end) {
        long now = ticker.nanos();
        if (now - begun < 0) {
            return false; // the window has not begun
        }
        long took = Math.max(0, now - start);
        boolean isLate = took > lateNanos;
        if (end == End.OVERLOADED) {
            overloaded.increment();
        } else if (end == End.ANSWERED || (end == End.FAILED && isLate)) {
            answered.increment();
            nanos.add(Math.min(took, longest));
            inFlight.add(used);
            most.accumulate(used);
            if (isLate) {
                late.increment();
            }
        }
        return mayStep(now) && step(now);
    }

    private boolean mayStep(long now) {
        return now - begun >= Controller.SHORTEST && controller.isOver(now - begun, answered.sum() + overloaded.sum());
    }

    private boolean step(long now) {
        if (!stepping.compareAndSet(false, true)) {
            return false;
        }
        try {
            if (!mayStep(now)) {
                return false;
            }
            long count = answered.sumThenReset();
            double divisor = Math.max(1, count);
            Window seen = new Window(
                    now - begun,
                    count,
                    nanos.sumThenReset() / divisor,
                    inFlight.sumThenReset() / divisor,
                    most.getThenReset(),
                    late.sumThenReset(),
                    overloaded.sumThenReset(),
                    bound);
            bound = false;
            take(controller.next(seen), now);
            begun = now + controller.settling();
            return true;
        } finally {
            stepping.set(false);
        }
    }

    private void take(Controller next, long now) {
        int before = controller.limit();
        controller = next;
        places = next.places();
        placesOfBest = next.placesOfBest();
        longest = next.longest();
        int after = next.limit();
        if (after != before) {
            LimitChange change = new LimitChange(now, before, after, next.reason());
            last = change;
            JointLocks.outside(() -> observers.forEach(observer -> tell(observer, change)));
        }
    }

    /** An observer that fails must not fail the call whose end takes the step. */
    private static void tell(Consumer<LimitChange> observer, LimitChange change) {
        try {
            observer.accept(change);
        } catch (RuntimeException ex) {
            Thread current = Thread.currentThread();
            current.getUncaughtExceptionHandler().uncaughtException(current, ex);
        }
    }

    /** Takes over other bounds. */
    void update(Limit limit) {
        while (!stepping.compareAndSet(false, true)) {
            Thread.onSpinWait();
        }
        try {
            lateNanos = lateNanos(limit);
            if (controller.least() != limit.minConcurrent() || controller.most() != limit.maxConcurrent()) {
                take(controller.within(limit.minConcurrent(), limit.maxConcurrent()), ticker.nanos());
            }
        } finally {
            stepping.set(false);
        }
    }
}
