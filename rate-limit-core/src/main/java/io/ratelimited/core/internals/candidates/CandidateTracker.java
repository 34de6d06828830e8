package io.ratelimited.core.internals.candidates;

import io.ratelimited.core.CanonicalKey;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Ticker;
import io.ratelimited.core.internals.candidates.CandidateReport.Caller;
import io.ratelimited.core.internals.candidates.CandidateReport.Candidate;
import io.ratelimited.core.internals.memory.Trials;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * Tries candidates with the calls that reach a limit. Decides about no call, waits for nothing, and throws nothing that the
 * limiter itself does not throw for the same key. Thread-safe; the most calls cost a hash of their key or a count, and
 * allocate nothing.
 *
 * <p>What is followed, cited by tests:
 *
 * <ul>
 *   <li>F1 Calls without a key are all followed. So is every key, as long as there are at most {@link #capacity}.
 *   <li>F2 When there are more, half of the keys are dropped by their hash, again and again: what is left is a fair sample. An
 *       eighth of the capacity is kept for the keys with most calls, which are followed whatever their hash is.
 *   <li>F3 Keys whose budgets are all unused are dropped first: they lose nothing.
 *   <li>F4 Calls of keys that are not followed are counted. A candidate rejects the share of them that it rejects of the
 *       sampled keys in all their life, without those with most calls. The spread between the sampled keys is the error.
 *   <li>F5 A key that comes late and makes many calls is found among every 64th call that is not followed.
 *   <li>F6 Calls of a budget that come more often than once in {@link #RESOLUTION} are taken together, at most 64, as of one
 *       instant. What is left over is judged by an alarm every {@link #SWEEP}, which ends with the rush. Calls of several
 *       permits, calls that may wait or are charged, and calls under algorithms that space calls are judged one by one.
 * </ul>
 */
public final class CandidateTracker {

    /** Nanoseconds within which calls have one instant (F6). */
    static final long RESOLUTION = 100_000;

    /** Nanoseconds after which calls that were taken together are judged, however few they are (F6). */
    static final long SWEEP = 1_000_000;

    /** Stands for the present time. */
    private static final long NOW = Long.MIN_VALUE;

    private static final int LARGEST_BATCH = 64;
    private static final int STRIPES = 16;
    /** Stripes are as far apart as two lines of a cache. */
    private static final int STRIDE = 16;

    private static final int HEAVY_SLOTS = 4096;
    private static final int SEEN_SLOTS = 1024;
    /** So many more of the calls looked at are of one key than of others in its slot, and it is followed (F5). */
    private static final int SEEN_OFTEN = 8;

    private static final int MOST_KEYS = 8_192;
    private static final int LEAST_KEYS = 32;
    private static final long MEMORY = 16L << 20;
    private static final int SHOWN_CALLERS = 5;

    private final Limit live;
    private final List<Limit> limits;
    private final Ticker ticker;
    private final Trials trials;
    private final int capacity;
    private final int salt;
    private final Tracked withoutKey;
    private final Map<String, Tracked> keys = new ConcurrentHashMap<>();
    /** Calls that are not followed, and calls of the sample, which only tell every 64th. */
    private final AtomicLongArray skipped = new AtomicLongArray(STRIPES * STRIDE);

    private final AtomicLongArray sampled = new AtomicLongArray(STRIPES * STRIDE);
    /** Keys whose hash has none of these bits are followed. */
    private volatile int mask;
    /** Hashes of keys that are followed whatever their hash is: open addressing; 0 is no hash. */
    private volatile int[] heavy = new int[HEAVY_SLOTS];
    /** Hashes that were looked at, and by how many calls they are ahead. Races lose a count. */
    private final int[] seen = new int[SEEN_SLOTS];

    private final int[] ahead = new int[SEEN_SLOTS];

    /** Batches of several calls. */
    private final Queue<Rush> rushes = new ConcurrentLinkedQueue<>();

    private final AtomicBoolean sweeping = new AtomicBoolean();

    private final ReentrantLock change = new ReentrantLock();
    /** Calls of keys that were dropped. Guarded by the lock, as the next two. */
    private long past;
    /** Calls, and squares of calls, of keys of the sample that were dropped unused (F3). */
    private double idleCalls;

    private double idleSquares;

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
        this.trials = new Trials(limits, live.algorithm().followsCalendar() ? ticker.epochNanos() : ticker.nanos());
        this.capacity = capacity(limits);
        this.withoutKey = new Tracked(0, STRIPES, now());
    }

    /** As many keys as fit into {@link #MEMORY}. */
    private static int capacity(List<Limit> limits) {
        long bytes = 256;
        for (Limit limit : limits) {
            bytes += switch (limit.algorithm()) {
                case SLIDING_LOG -> 64 + 16 * limit.rate().permits();
                case SLIDING_WINDOW -> 64 + 8 * limit.slots();
                default -> 48;
            };
        }
        return (int) Math.max(LEAST_KEYS, Math.min(MOST_KEYS, MEMORY / bytes));
    }

    /** The most keys that are followed; while they are being dropped, twice as many. */
    public int capacity() {
        return capacity;
    }

    /** The names of the candidates, the smallest rate first. */
    public List<String> names() {
        return limits.stream().map(limit -> Candidates.name(limit, live)).toList();
    }

    /** The keys that are followed now. */
    int followed() {
        return keys.size();
    }

    private long now() {
        return trials.followsCalendar() ? ticker.epochNanos() : ticker.nanos();
    }

    /**
     * Tries a call that happens now.
     *
     * @param key null for a call without a key
     * @param permits 0 or more
     * @param maxWaitNanos the longest wait that the policy of the limit allows
     */
    public void tried(@Nullable Object key, long permits, long maxWaitNanos) {
        Tracked tracked = key == null ? withoutKey : find(key, NOW);
        if (tracked == null) {
            return;
        }
        if (permits == 1 && maxWaitNanos <= 0 && !trials.judgesEach()) {
            Batch batch = tracked.batches.length == 1 ? tracked.batches[0] : tracked.batches[stripe()];
            if (batch.incrementAndGet() >= batch.size) {
                flush(tracked, batch, now());
            }
        } else {
            tracked.judge(1, permits, now(), maxWaitNanos);
        }
    }

    /**
     * Tries a call that happened at a time that the caller states, as of a log.
     *
     * @param now nanoseconds, for FIXED_WINDOW since 1970
     */
    public void tried(@Nullable Object key, long permits, long maxWaitNanos, long now) {
        Tracked tracked = key == null ? withoutKey : find(key, now);
        if (tracked != null) {
            tracked.judge(1, permits, now, maxWaitNanos);
        }
    }

    /** Charges a call that has been tried and has ended. Calls that the limit rejected cost nothing: nobody knows what they would have. */
    public void settled(@Nullable Object key, long permits, long cost, long maxWaitNanos) {
        Tracked tracked = key == null ? withoutKey : keys.get(CanonicalKey.text(key));
        if (tracked != null) {
            tracked.trial.charge(permits, cost, now(), maxWaitNanos);
        }
    }

    private static int stripe() {
        return (int) Thread.currentThread().getId() & (STRIPES - 1);
    }

    /** Judges the calls of a batch. */
    private void flush(Tracked tracked, Batch batch, long now) {
        int calls = batch.getAndSet(0);
        long gap = now - batch.last;
        batch.last = now;
        if (calls > 0) {
            tracked.judge(calls, 1, now, 0);
        }
        if (gap < RESOLUTION / 2 && batch.size < LARGEST_BATCH) {
            batch.size *= 2;
            if (!batch.rushing) {
                batch.rushing = true;
                rushes.add(new Rush(tracked, batch));
                if (sweeping.compareAndSet(false, true)) {
                    ticker.schedule(ticker.nanos() + SWEEP, this::sweep);
                }
            }
        } else if (gap > RESOLUTION) {
            batch.size = 1;
        }
    }

    /** Judges what is left over, and goes on while there is a rush. */
    private void sweep() {
        long now = now();
        rushes.removeIf(rush -> {
            Batch batch = rush.batch;
            boolean over = now - batch.last > SWEEP / 2;
            if (over) {
                batch.size = 1;
                batch.rushing = false;
            }
            int calls = batch.getAndSet(0);
            if (calls > 0) {
                rush.tracked.judge(calls, 1, now, 0);
            }
            return over;
        });
        sweeping.set(false);
        if (!rushes.isEmpty() && sweeping.compareAndSet(false, true)) {
            ticker.schedule(ticker.nanos() + SWEEP, this::sweep);
        }
    }

    private int hash(Object key) {
        int hash = (key.hashCode() ^ salt) * 0x9E3779B1;
        hash = (hash ^ (hash >>> 15)) * 0x85EBCA77;
        hash ^= hash >>> 13;
        return hash == 0 ? 1 : hash;
    }

    private boolean isHeavy(int hash) {
        int[] table = heavy;
        int slot = hash >>> 20;
        while (table[slot] != 0) {
            if (table[slot] == hash) {
                return true;
            }
            slot = (slot + 1) & (HEAVY_SLOTS - 1);
        }
        return false;
    }

    /** @param now {@link #NOW} to read the clock only if the key is new */
    private @Nullable Tracked find(Object key, long now) {
        int hash = hash(key);
        return (hash & mask) == 0 || isHeavy(hash) ? follow(key, hash, now) : skip(key, hash);
    }

    /** Counts a call that is not followed (F4). */
    private @Nullable Tracked skip(Object key, int hash) {
        lookAt(skipped, key, hash);
        return null;
    }

    /** Looks at every 64th call, of the sample and of others alike (F5). */
    private void lookAt(AtomicLongArray counters, Object key, int hash) {
        if ((counters.incrementAndGet(stripe() * STRIDE) & 63) == 0) {
            int slot = hash & (SEEN_SLOTS - 1);
            if (seen[slot] == hash) {
                if (++ahead[slot] >= SEEN_OFTEN) {
                    ahead[slot] = 0;
                    promote(key, hash);
                }
            } else if (--ahead[slot] < 0) {
                seen[slot] = hash;
                ahead[slot] = 1;
            }
        }
    }

    private void promote(Object key, int hash) {
        if (change.tryLock()) {
            try {
                keys.computeIfAbsent(CanonicalKey.text(key), added -> new Tracked(hash, 1, now())).heavy = true;
                chooseHeavy(capacity / 4, true);
            } finally {
                change.unlock();
            }
        }
    }

    private @Nullable Tracked follow(Object key, int hash, long stated) {
        String text = CanonicalKey.text(key);
        Tracked known = keys.get(text);
        if (known != null) {
            if (mask != 0 && !known.heavy) {
                lookAt(sampled, key, hash);
            }
            return known;
        }
        if ((hash & mask) != 0 || keys.size() >= 2 * capacity) {
            return skip(key, hash);
        }
        long now = stated == NOW ? now() : stated;
        Tracked added = new Tracked(hash, 1, now);
        known = keys.putIfAbsent(text, added);
        if (keys.size() > capacity && change.tryLock()) {
            try {
                shrink(now);
            } finally {
                change.unlock();
            }
            if (known == null && keys.get(text) != added) {
                return skip(key, hash);
            }
        }
        return known != null ? known : added;
    }

    /** Drops keys until a quarter of the capacity is free. */
    private void shrink(long now) {
        keys.forEach((text, tracked) -> {
            if (!tracked.heavy && tracked.isUnused(now) && keys.remove(text, tracked)) {
                double calls = tracked.counts.get(0);
                past += tracked.counts.get(0);
                idleCalls += calls;
                idleSquares += calls * calls;
            }
        });
        while (keys.size() > capacity - capacity / 4 && mask != Integer.MAX_VALUE) {
            boolean first = mask == 0;
            mask = mask << 1 | 1;
            // Later the sample must not lose its large keys alone: the others like them are not followed (F5).
            chooseHeavy(capacity / (first ? 8 : 4), !first);
            idleCalls /= 2;
            idleSquares /= 2;
        }
    }

    /**
     * Keeps those with most calls, and drops all others that are not of the sample.
     *
     * @param again whether only those may be kept that were kept before
     */
    private void chooseHeavy(int number, boolean again) {
        List<Tracked> most = new ArrayList<>(keys.values());
        most.removeIf(tracked -> again && !tracked.heavy);
        most.sort(Comparator.comparingLong(tracked -> -tracked.counts.get(0)));
        int[] table = new int[HEAVY_SLOTS];
        for (int i = 0; i < most.size(); i++) {
            Tracked tracked = most.get(i);
            tracked.heavy = i < number;
            if (tracked.heavy) {
                int slot = tracked.hash >>> 20;
                while (table[slot] != 0) {
                    slot = (slot + 1) & (HEAVY_SLOTS - 1);
                }
                table[slot] = tracked.hash;
            }
        }
        heavy = table;
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
            withoutKey.flush();
            keys.values().forEach(Tracked::flush);
            long exact = withoutKey.counts.get(0);
            long ofSample = 0;
            for (Tracked one : keys.values()) {
                if (one.heavy) {
                    exact += one.counts.get(0);
                } else {
                    ofSample += one.counts.get(0);
                }
            }
            long others = past;
            for (int i = 0; i < STRIPES; i++) {
                others += skipped.get(i * STRIDE);
            }
            long calls = exact + ofSample + others;
            double sample = mask == 0 ? calls - exact : ofSample + idleCalls;
            List<Candidate> candidates = new ArrayList<>();
            for (int i = 0; i < limits.size(); i++) {
                candidates.add(candidate(i, calls, calls - exact, sample));
            }
            return new CandidateReport(calls, exact + Math.round(sample), List.copyOf(candidates));
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
    private Candidate candidate(int limit, long calls, long others, double sample) {
        int at = limit + 1;
        long exact = withoutKey.counts.get(at);
        long ofSample = 0;
        long callers = 0;
        long largest = 0;
        List<Caller> most = new ArrayList<>();
        for (Map.Entry<String, Tracked> entry : keys.entrySet()) {
            Tracked one = entry.getValue();
            long own = one.counts.get(at);
            if (one.heavy) {
                exact += own;
            } else {
                ofSample += own;
                largest = Math.max(largest, one.counts.get(0));
            }
            if (own > 0) {
                callers += one.heavy ? 1 : mask + 1L;
                most.add(new Caller(entry.getKey(), own));
            }
        }
        double share = sample == 0 ? 0 : ofSample / sample;
        double error = 0;
        if (others > sample) {
            // One more key as large as the largest, rejected whole: a sample without a rejection proves no zero.
            double squares = (double) largest * largest + share * share * idleSquares;
            for (Tracked one : keys.values()) {
                double off = one.heavy ? 0 : one.counts.get(at) - share * one.counts.get(0);
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

    /** A key that is followed, or all calls without one. */
    private final class Tracked {

        private final int hash;
        private final Trials.Key trial;
        /** Calls, then for each candidate those that it would have rejected. */
        private final AtomicLongArray counts = new AtomicLongArray(1 + limits.size());

        private final Batch[] batches;
        /** Written under the lock. */
        private volatile boolean heavy;

        private Tracked(int hash, int stripes, long now) {
            this.hash = hash;
            this.trial = trials.begin(now);
            this.batches = new Batch[stripes];
            for (int i = 0; i < stripes; i++) {
                batches[i] = stripes == 1 ? new Batch(now) : new DistantBatch(now);
            }
        }

        private void judge(long calls, long permits, long now, long maxWaitNanos) {
            counts.addAndGet(0, calls);
            for (int i = 0; i < limits.size(); i++) {
                long rejected = trial.rejected(i, calls, permits, now, maxWaitNanos);
                if (rejected > 0) {
                    counts.addAndGet(1 + i, rejected);
                }
            }
        }

        /** Judges the calls that have been counted only. */
        private void flush() {
            for (Batch batch : batches) {
                if (batch.get() > 0) {
                    judge(batch.getAndSet(0), 1, now(), 0);
                }
            }
        }

        private boolean isUnused(long now) {
            // One without a call has just been begun.
            if (counts.get(0) == 0 || batches[0].get() > 0 || !trial.isInitial(now)) {
                return false;
            }
            for (int i = 1; i < counts.length(); i++) {
                if (counts.get(i) > 0) {
                    return false;
                }
            }
            return true;
        }
    }

    private record Rush(Tracked tracked, Batch batch) {}

    /** Calls that are counted and not judged yet. Its fields are hints: a lost write judges some calls a moment later. */
    private static class Batch extends AtomicInteger {

        private static final long serialVersionUID = 1;

        private int size = 1;
        private boolean rushing;
        private long last;

        private Batch(long now) {
            // Its first call is no rush.
            last = now - RESOLUTION;
        }
    }

    /** A batch that shares no line of a cache with the next. */
    @SuppressWarnings("unused")
    private static final class DistantBatch extends Batch {

        private static final long serialVersionUID = 1;

        private long p1, p2, p3, p4, p5, p6, p7, p8, p9, p10, p11, p12;

        private DistantBatch(long now) {
            super(now);
        }
    }
}
