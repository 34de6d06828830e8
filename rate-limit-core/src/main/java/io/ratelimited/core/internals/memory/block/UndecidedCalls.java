package io.ratelimited.core.internals.memory.block;

import java.time.Duration;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Function;
import java.util.function.LongPredicate;
import org.jspecify.annotations.Nullable;

/**
 * Calls that hold permits while they wait for another limit, which may reject them ({@link io.ratelimited.core.Call#isUndecided}).
 * What they give back was no evidence: a rejection is judged when all calls are decided that held permits of its key when it came.
 * It is a violation unless one of them gave its permits back. A call that is not decided for ten seconds has used its permits.
 * The script of Redis has the same rule (block.lua).
 *
 * <p>Every permit that a judge finds missing is that of a call which is decided, or which is here when he asks:
 *
 * <ul>
 *   <li>U1 A call is added before the lock is released under which it takes its permits ({@link
 *       io.ratelimited.core.internals.several.JointLocks}). A rejection is judged while that lock is held.
 *   <li>U2 A call that gives its permits back is removed afterwards. While a rejection is judged, no call of its key is removed:
 *       one that gives back after the judge has looked at the budget is still here.
 * </ul>
 *
 * Thread-safe.
 */
public final class UndecidedCalls {

    private static final long LONGEST = Duration.ofSeconds(10).toNanos();

    private final Map<Object, OfKey> keys = new ConcurrentHashMap<>();

    /** Those of a key, which are never none. Used by one thread at a time. */
    private static final class OfKey {

        /** When each of them took permits. */
        private final IdentityHashMap<Object, Long> calls = new IdentityHashMap<>();
        /** Calls that a rejection waits for; null for no rejection. */
        private @Nullable Set<Object> awaited;

        private boolean defers(long at) {
            calls.values().removeIf(since -> at - since > LONGEST);
            if (awaited == null) {
                awaited = Collections.newSetFromMap(new IdentityHashMap<>());
                awaited.addAll(calls.keySet());
            } else {
                awaited.retainAll(calls.keySet());
            }
            if (awaited.isEmpty()) {
                awaited = null;
            }
            return awaited != null;
        }

        /** Returns whether this makes a rejection a violation. */
        private boolean decided(Object call, boolean givesBack) {
            calls.remove(call);
            if (awaited == null || !awaited.remove(call) || !(givesBack || awaited.isEmpty())) {
                return false;
            }
            awaited = null;
            return !givesBack;
        }
    }

    /** Adds a call that holds permits of a key. */
    public void add(Object key, Object call, long at) {
        keys.compute(key, (same, known) -> {
            OfKey calls = known == null ? new OfKey() : known;
            calls.calls.put(call, at);
            return calls;
        });
    }

    /**
     * Judges a rejection (U2).
     *
     * @param judge looks at the budget, and then asks whether a rejection at a time, which would be a violation, is to be judged
     *     later
     */
    public <T> T judge(Object key, Function<LongPredicate, T> judge) {
        AtomicReference<@Nullable T> judged = new AtomicReference<>();
        keys.compute(key, (same, calls) -> {
            judged.set(judge.apply(at -> calls != null && calls.defers(at)));
            return calls == null || calls.calls.isEmpty() ? null : calls;
        });
        return Objects.requireNonNull(judged.get());
    }

    /**
     * Notes that a call is decided, if it is not yet.
     *
     * @param givesBack whether it gives its permits back
     * @return whether a rejection has become a violation
     */
    public boolean decided(Object key, Object call, boolean givesBack) {
        boolean[] violated = new boolean[1];
        keys.computeIfPresent(key, (same, calls) -> {
            violated[0] = calls.decided(call, givesBack);
            return calls.calls.isEmpty() ? null : calls;
        });
        return violated[0];
    }

    /** Forgets the calls and rejections of a key, which was reset. */
    public void forget(Object key) {
        keys.remove(key);
    }
}
