package io.ratelimited.core.internals.several;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.StampedLock;
import java.util.function.Predicate;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Locks of state in memory, for calls under several limits. A call may take permits of one limit and refund them, because
 * another limit rejects it. These locks ensure that such permits reject no other call:
 *
 * <ul>
 *   <li>J1 A call under several limits holds the locks of the keys that it charges, from its first charge until it is
 *       admitted or has refunded everything. Its last charge needs no lock if the call does not wait for it, because it is
 *       never refunded. All limits were checked before, so a call that is rejected there takes no lock.
 *   <li>J2 A call under one limit that is admitted immediately takes no lock and reads none. A call that would be rejected is
 *       decided again, until no other call has held the lock meanwhile.
 *   <li>J3 A call takes its locks in the order of their numbers, each once, so that no two calls wait for each other.
 *   <li>J4 A thread that holds a lock only computes. Foreign code, such as observers and the callers that it wakes, runs
 *       {@link #outside}. So others only wait for a few charges, as at a cell with a monitor.
 * </ul>
 *
 * Several keys share a lock, which costs time and changes no decision. Thread-safe.
 */
public final class JointLocks {

    /** The locks, as many as a set of locks has bits. */
    private static final StampedLock[] LOCKS =
            Stream.generate(StampedLock::new).limit(Long.SIZE).toArray(StampedLock[]::new);
    /** Tasks that a thread runs when it has released its locks; unset if it holds none, or wakes nobody. */
    private static final ThreadLocal<@Nullable List<Runnable>> AFTERWARDS = new ThreadLocal<>();

    private JointLocks() {}

    /** Returns the number of the lock of a key. */
    public static int number(Object limiter, @Nullable Object key) {
        int hash = System.identityHashCode(limiter) + (key == null ? 0 : key.hashCode());
        return (hash * 0x9e3779b9) >>> (Integer.SIZE - 6);
    }

    /**
     * Repeats the decision on a rejected call, until no call under several limits has charged the key meanwhile.
     *
     * @param decision changes nothing if it rejects
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
     * Decides while no call under several limits charges the key. Used for decisions that cannot be repeated ({@link
     * #again}).
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
     * Runs foreign code, which can call a limiter: now, or when this thread has released its locks. In the latter case, its
     * exceptions go to the uncaught exception handler.
     */
    public static void outside(Runnable code) {
        List<Runnable> later = AFTERWARDS.get();
        if (later == null) {
            code.run();
        } else {
            later.add(code);
        }
    }

    /** Runs code that takes a lock of its own, and what it is to run {@link #outside} when it has returned. */
    public static <T> T postponing(Supplier<T> code) {
        if (AFTERWARDS.get() != null) {
            return code.get();
        }
        lock(0, true);
        try {
            return code.get();
        } finally {
            unlock(0, true);
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
        if (wakes && AFTERWARDS.get() == null) {
            AFTERWARDS.set(new ArrayList<>(0));
        }
    }

    /** Releases the locks, and runs the postponed tasks. */
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
