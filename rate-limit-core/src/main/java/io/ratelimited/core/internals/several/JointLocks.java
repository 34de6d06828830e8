package io.ratelimited.core.internals.several;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.StampedLock;
import java.util.function.Predicate;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Locks of budgets in memory, for calls under several limits. Nobody is refused by permits that such a call takes and gives
 * back, because another of its limits refuses it meanwhile:
 *
 * <ul>
 *   <li>J1 A call under several limits holds the locks of the budgets that it charges from its first charge until it goes or
 *       has given all back. Its last charge needs no lock where the call does not wait for it, since nothing gives it back. All
 *       limits have been asked before, so a call that is refused there takes no lock.
 *   <li>J2 A call that goes at once under one limit takes no lock and reads none. A call that would be refused is decided
 *       again, until nobody has held the lock meanwhile.
 *   <li>J3 A call takes its locks in the order of their numbers, each once, so that no two calls wait for each other.
 *   <li>J4 A thread that holds a lock computes and does nothing else: code of others, as of calls that it wakes and of
 *       observers, runs {@link #outside}. So all wait for the time of a few charges, as those of a cell with a monitor
 *       do.
 * </ul>
 *
 * A budget shares its lock with others, which costs time and changes no decision. Thread-safe.
 */
public final class JointLocks {

    /** The locks, as many as a set of locks has bits. */
    private static final StampedLock[] LOCKS =
            Stream.generate(StampedLock::new).limit(Long.SIZE).toArray(StampedLock[]::new);
    /** Tasks that a thread runs when it has released its locks; unset if it holds none, or wakes nobody. */
    private static final ThreadLocal<@Nullable List<Runnable>> AFTERWARDS = new ThreadLocal<>();

    private JointLocks() {}

    /** The number of the lock of a budget. */
    public static int number(Object limiter, @Nullable Object key) {
        int hash = System.identityHashCode(limiter) + (key == null ? 0 : key.hashCode());
        return (hash * 0x9e3779b9) >>> (Integer.SIZE - 6);
    }

    /**
     * Decides again on a call that was refused, until no call under several limits has charged the budget meanwhile.
     *
     * @param decision changes nothing when it refuses
     */
    public static <T> T again(Object limiter, @Nullable Object key, Supplier<T> decision, Predicate<T> isRefused) {
        StampedLock lock = LOCKS[number(limiter, key)];
        while (true) {
            long seen = lock.tryOptimisticRead();
            if (seen == 0) {
                seen = lock.tryConvertToOptimisticRead(lock.readLock());
            }
            T decided = decision.get();
            if (!isRefused.test(decided) || lock.validate(seen)) {
                return decided;
            }
        }
    }

    /**
     * Decides while no call under several limits charges the budget. Used for decisions that cannot be made {@link #again}.
     */
    public static <T> T alone(Object limiter, @Nullable Object key, Supplier<T> decision) {
        StampedLock lock = LOCKS[number(limiter, key)];
        long held = lock.readLock();
        try {
            return decision.get();
        } finally {
            lock.unlockRead(held);
        }
    }

    /**
     * Runs code of others, which may call a limiter: now, or when this thread has released its locks. What it throws then goes
     * to the uncaught exception handler.
     */
    public static void outside(Runnable code) {
        List<Runnable> later = AFTERWARDS.get();
        if (later == null) {
            code.run();
        } else {
            later.add(code);
        }
    }

    /**
     * Takes locks.
     *
     * @param locks a bit for each {@link #number}
     * @param wakes whether the charges may wake others
     */
    public static void lock(long locks, boolean wakes) {
        for (long left = locks; left != 0; left &= left - 1) {
            LOCKS[Long.numberOfTrailingZeros(left)].writeLock();
        }
        if (wakes) {
            AFTERWARDS.set(new ArrayList<>(0));
        }
    }

    /** Releases the locks, and runs the tasks that were put off. */
    public static void unlock(long locks, boolean wakes) {
        for (long left = locks; left != 0; left &= left - 1) {
            LOCKS[Long.numberOfTrailingZeros(left)].tryUnlockWrite();
        }
        List<Runnable> later = wakes ? AFTERWARDS.get() : null;
        if (later != null) {
            AFTERWARDS.remove();
            later.forEach(JointLocks::run);
        }
    }

    /** A failure of one task keeps neither the others from running nor the call from holding what it has taken. */
    private static void run(Runnable task) {
        try {
            task.run();
        } catch (RuntimeException ex) {
            Thread current = Thread.currentThread();
            current.getUncaughtExceptionHandler().uncaughtException(current, ex);
        }
    }
}
