package io.ratelimited.core.internals.candidates;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.CanonicalKey;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Ticker;
import io.ratelimited.core.internals.candidates.CandidateReport.Caller;
import io.ratelimited.core.internals.candidates.CandidateReport.Candidate;
import io.ratelimited.core.internals.memory.Trials;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.locks.ReentrantLock;
import java.util.stream.LongStream;
import org.jspecify.annotations.Nullable;

/**
 * Tries candidates with the calls that reach a limit. Decides about no call, waits for nothing, and throws nothing that the
 * limiter itself does not throw for the same key. Thread-safe; in a rush a call costs a look-up of its key and a count, and
 * allocates nothing.
 *
 * <p>What is followed, cited by tests:
 *
 * <ul>
 *   <li>F1 Calls without a key are all followed. So is every key, as long as there are at most {@link #capacity}.
 *   <li>F2 When there are more, half of the keys are dropped by their hash, again and again: what is left is a fair sample.
 *       Part of the capacity is kept for the keys with most calls, which are followed whatever their hash is.
 *   <li>F3 Calls of keys that are not followed are counted. A candidate rejects the share of them that it rejects of the
 *       sampled keys in all their life, without those with most calls. The spread between the sampled keys is the error.
 *   <li>F4 A key that comes late and makes many calls is found when two of the calls that are looked at, every {@link #LOOK}th,
 *       are of it. Keys of the sample are found as the others are, or it would lose its large keys alone.
 *   <li>F5 While calls come more often than once in {@link #RUSH}, an alarm counts ticks. The first call of a key in a tick is
 *       judged when it comes. Those after it, at most {@link #COUNTED}, are counted, and judged later as of that instant. Calls
 *       of several permits, calls that may wait or are charged, and calls under algorithms that space calls are judged one by
 *       one.
 * </ul>
 */
public final class CandidateTracker {

    static final long RUSH = 100_000;
    static final int LOOK = 64;
    static final int COUNTED = 512;

    private static final long TICK = 1_000_000;
    private static final int MOST_KEYS = 4_096;
    private static final int LEAST_KEYS = 32;
    private static final long MEMORY = 16L << 20;
    private static final int SHOWN_CALLERS = 5;
    /** Bits of a hash that tell whether it may be that of a key with most calls, and that choose a slot of those looked at. */
    private static final int HEAVY_BITS = 16;

    private static final int SEEN_BITS = 10;
    private static final int THREADS = 64;
    /** Numbers in two lines of a cache, so that threads do not share one. */
    private static final int LINE = 16;

    private final Limit live;
    private final List<Limit> limits;
    private final Ticker ticker;
    private final Trials trials;
    private final boolean followsCalendar;
    private final boolean judgesEach;
    /** The most keys that are followed; while they are being dropped, twice as many. */
    final int capacity;

    private final int salt;
    private final Tracked withoutKey;
    /** By keys that stay what they are. One that is written in several ways is several keys here. */
    final Map<Object, Tracked> keys = new ConcurrentHashMap<>();
    /** Keys whose hash has none of these bits are followed. */
    private volatile int mask;
    /** By the first bits of their hash, the keys that are followed whatever it is. */
    private volatile BitSet heavy = new BitSet(1 << HEAVY_BITS);

    /** Calls that are not followed, by threads. Two threads of one number may lose a call that they make within a few nanoseconds. */
    private final long[] skipped = new long[THREADS * LINE];

    /** The hashes of calls that were looked at. Races lose one; so they do below. */
    private final int[] seen = new int[1 << SEEN_BITS];

    private long sampled;

    /** The tick of a rush; 0 while there is none. */
    private final AtomicInteger tick = new AtomicInteger();

    private int ticks;
    private boolean used;
    private long last;

    private final ReentrantLock change = new ReentrantLock();
    /** Calls of keys that were dropped. Guarded by the lock, as the next one. */
    private long past;

    private int heavies;

    /**
     * @param live the limit beside which they are tried
     * @param limits as of {@link Candidates}
     */
    public CandidateTracker(Limit live, List<Limit> limits, Ticker ticker) {
        this(live, limits, ticker, ThreadLocalRandom.current().nextInt());
    }

    CandidateTracker(Limit live, List<Limit> limits, Ticker ticker, int salt) {
        this.live = live;
        this.limits = List.copyOf(limits);
        this.ticker = ticker;
        this.salt = salt;
        this.followsCalendar = live.algorithm().followsCalendar();
        this.judgesEach = live.algorithm().family() == Algorithm.Family.PACED || live.isCharged();
        this.trials = new Trials(limits, now());
        this.capacity = capacity(limits);
        this.withoutKey = new Tracked("", 0);
        this.withoutKey.heavy = true;
        this.last = now() - RUSH;
    }

    /** As many keys as fit into {@link #MEMORY}. */
    private static int capacity(List<Limit> limits) {
        long bytes = 256 + 64L * limits.size();
        for (Limit limit : limits) {
            bytes += limit.algorithm() == Algorithm.SLIDING_LOG
                    ? 16 * limit.rate().permits()
                    : 0;
            bytes += limit.algorithm() == Algorithm.SLIDING_WINDOW ? 8L * limit.slots() : 0;
        }
        return (int) Math.max(LEAST_KEYS, Math.min(MOST_KEYS, MEMORY / bytes));
    }

    private long now() {
        return followsCalendar ? ticker.epochNanos() : ticker.nanos();
    }

    /**
     * Tries a call that happens now.
     *
     * @param key null for a call without a key
     * @param permits 0 or more
     * @param maxWaitNanos the longest wait that the policy of the limit allows
     */
    public void tried(@Nullable Object key, long permits, long maxWaitNanos) {
        Tracked tracked = key == null ? withoutKey : find(key);
        if (tracked == null) {
            return;
        }
        if (permits != 1 || maxWaitNanos > 0 || judgesEach) {
            tracked.judge(1, permits, now(), maxWaitNanos);
        } else if (tracked.tick == tick.get() && tracked.get() < COUNTED) {
            tracked.incrementAndGet();
            return;
        } else {
            tracked.judgeNow();
        }
        if (sampled >= LOOK && !tracked.heavy) {
            sampled = 0;
            lookAt(tracked.key, tracked.hash);
        }
    }

    /** Charges a call that has been tried and has ended. Calls that the limit rejected cost nothing: nobody knows what they would have. */
    public void settled(@Nullable Object key, long permits, long cost, long maxWaitNanos) {
        Tracked tracked = key == null ? withoutKey : keys.get(CanonicalKey.frozen(key));
        if (tracked != null) {
            tracked.trial.charge(permits, cost, now(), maxWaitNanos);
        }
    }

    /** The tick of a call that is judged; -1 if there is no rush. */
    private int inRush(long now) {
        int current = tick.get();
        if (current == 0 && now - last < RUSH && tick.compareAndSet(0, ++ticks)) {
            ticker.schedule(ticker.nanos() + TICK, this::nextTick);
        }
        used = true;
        last = now;
        return current == 0 ? -1 : current;
    }

    private void nextTick() {
        boolean goesOn = used;
        used = false;
        tick.set(goesOn ? ++ticks : 0);
        if (goesOn) {
            ticker.schedule(ticker.nanos() + TICK, this::nextTick);
        }
    }

    private @Nullable Tracked find(Object key) {
        int hash = (key.hashCode() ^ salt) * 0x9E3779B1;
        hash ^= hash >>> 15;
        boolean maybe = (hash & mask) == 0 || heavy.get(hash >>> -HEAVY_BITS);
        Tracked known = maybe ? keys.get(key) : null;
        return known != null ? known : follow(key, hash);
    }

    /** Begins to follow a key of the sample; returns null for another one, whose call is counted (F3). */
    private @Nullable Tracked follow(Object key, int hash) {
        if ((hash & mask) == 0) {
            if (keys.size() >= capacity && change.tryLock()) {
                try {
                    shrink();
                } finally {
                    change.unlock();
                }
            }
            if ((hash & mask) == 0 && keys.size() < 2 * capacity) {
                return keys.computeIfAbsent(CanonicalKey.frozen(key), added -> new Tracked(added, hash));
            }
        }
        int thread = (int) Thread.currentThread().getId() & (THREADS - 1);
        if ((++skipped[thread * LINE] & (LOOK - 1)) == 0) {
            lookAt(CanonicalKey.frozen(key), hash);
        }
        return null;
    }

    /** F4 */
    private void lookAt(Object key, int hash) {
        int slot = hash >>> -SEEN_BITS;
        if (seen[slot] != hash) {
            seen[slot] = hash;
        } else if (change.tryLock()) {
            try {
                keys.computeIfAbsent(key, added -> new Tracked(added, hash)).heavy = true;
                heavy.set(hash >>> -HEAVY_BITS);
                if (++heavies > capacity / 2) {
                    chooseHeavy();
                }
            } finally {
                change.unlock();
            }
        }
    }

    /** Drops keys until a quarter of the capacity is free. */
    private void shrink() {
        while (keys.size() > capacity - capacity / 4 && mask != Integer.MAX_VALUE) {
            mask = mask << 1 | 1;
            chooseHeavy();
        }
    }

    /** Keeps those with most calls, later of those that were kept before, and drops all others that are not of the sample. */
    private void chooseHeavy() {
        List<Tracked> most = new ArrayList<>(keys.values());
        most.removeIf(tracked -> heavies > 0 && !tracked.heavy);
        most.sort(Comparator.comparingLong(tracked -> -tracked.counts.get(0)));
        heavies = Math.min(capacity / 4, most.size());
        most.forEach(tracked -> tracked.heavy = false);
        BitSet bits = new BitSet(1 << HEAVY_BITS);
        for (Tracked tracked : most.subList(0, heavies)) {
            tracked.heavy = true;
            bits.set(tracked.hash >>> -HEAVY_BITS);
        }
        heavy = bits;
        keys.values().removeIf(tracked -> {
            boolean dropped = !tracked.heavy && (tracked.hash & mask) != 0;
            if (dropped) {
                tracked.flush();
                past += tracked.counts.get(0);
            }
            return dropped;
        });
    }

    /** What the candidates would have done until now. Takes time in proportion to {@link #capacity}. */
    public CandidateReport report() {
        change.lock();
        try {
            List<Tracked> followed = new ArrayList<>(keys.values());
            followed.add(withoutKey);
            long exact = 0;
            long others = past + LongStream.of(skipped).sum();
            long calls = others;
            for (Tracked one : followed) {
                one.flush();
                exact += one.heavy ? one.counts.get(0) : 0;
                calls += one.counts.get(0);
            }
            List<Candidate> candidates = new ArrayList<>();
            for (int i = 0; i < limits.size(); i++) {
                candidates.add(candidate(i, followed, calls, calls - exact, calls - exact - others));
            }
            return new CandidateReport(calls, calls - others, List.copyOf(candidates));
        } finally {
            change.unlock();
        }
    }

    /**
     * Estimates by a sample of keys that the share of all others is that of the sample.
     *
     * @param others calls of keys other than those with most calls
     * @param sample the part of them that is of keys of the sample
     */
    private Candidate candidate(int limit, List<Tracked> followed, long calls, long others, long sample) {
        long exact = 0;
        long ofSample = 0;
        long largest = 0;
        long callers = 0;
        List<Caller> most = new ArrayList<>();
        for (Tracked one : followed) {
            long rejected = one.counts.get(limit + 1);
            exact += one.heavy ? rejected : 0;
            ofSample += one.heavy ? 0 : rejected;
            largest = Math.max(largest, one.heavy ? 0 : one.counts.get(0));
            if (rejected > 0 && one != withoutKey) {
                callers += one.heavy ? 1 : mask + 1L;
                most.add(new Caller(CanonicalKey.text(one.key), rejected));
            }
        }
        double share = sample == 0 ? 0 : (double) ofSample / sample;
        double error = 0;
        if (others > sample) {
            // One more key as large as the largest, rejected whole: a sample without a rejection proves no zero.
            double squares = (double) largest * largest;
            for (Tracked one : followed) {
                double off = one.heavy ? 0 : one.counts.get(limit + 1) - share * one.counts.get(0);
                squares += off * off;
            }
            error = sample == 0 ? 1 : Math.min(1, 2 * Math.sqrt(squares) / sample * others / calls);
        }
        most.sort(Comparator.comparingLong(Caller::rejected).reversed().thenComparing(Caller::key));
        return new Candidate(
                limits.get(limit),
                Candidates.name(limits.get(limit), live),
                calls == 0 ? 0 : (exact + share * others) / calls,
                error,
                callers,
                List.copyOf(most.subList(0, Math.min(SHOWN_CALLERS, most.size()))));
    }

    /** A key that is followed, or all calls without one. Its number is that of calls that are counted and not judged yet. */
    final class Tracked extends AtomicInteger {

        private static final long serialVersionUID = 1;

        private final transient Object key;
        private final int hash;
        private final transient Trials.Key trial;
        /** Calls, then for each candidate those that it would have rejected. */
        private final AtomicLongArray counts = new AtomicLongArray(1 + limits.size());
        /** The tick and the instant of the last call that was judged when it came. */
        private int tick = -1;

        private long judged;
        /** Written under the lock. */
        private volatile boolean heavy;

        private Tracked(Object key, int hash) {
            this.key = key;
            this.hash = hash;
            this.trial = trials.begin(now());
        }

        /** Judges a call; before it, those that have been counted. */
        private void judgeNow() {
            long now = now();
            flush();
            judge(1, 1, now, 0);
            judged = now;
            tick = inRush(now);
        }

        /** Judges the calls that have been counted, as of the last one that was judged when it came. */
        private void flush() {
            judge(get() == 0 ? 0 : getAndSet(0), 1, judged, 0);
        }

        private void judge(long calls, long permits, long now, long maxWaitNanos) {
            if (calls <= 0) {
                return;
            }
            counts.addAndGet(0, calls);
            for (int i = 0; i < limits.size(); i++) {
                long rejected = trial.rejected(i, calls, permits, now, maxWaitNanos);
                if (rejected > 0) {
                    counts.addAndGet(1 + i, rejected);
                }
            }
            sampled += mask == 0 || heavy ? 0 : calls;
        }
    }
}
