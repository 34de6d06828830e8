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
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.atomic.AtomicLongFieldUpdater;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import java.util.stream.Stream;
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
 *   <li>F5 Calls of a key at one instant are counted, and judged together when another one comes, or a report is made.
 *       While calls come more often than once in {@link #RUSH}, an alarm sets the instant of all of them, once in a {@link
 *       #TICK}. Calls of several permits, calls that may wait or are charged, and calls under algorithms that space calls are
 *       judged one by one.
 * </ul>
 */
public final class CandidateTracker {

    static final long RUSH = 100_000;
    static final long TICK = 2_000_000;
    static final int LOOK = 64;

    private static final int MOST_KEYS = 4_096;
    private static final int LEAST_KEYS = 32;
    private static final long MEMORY = 16L << 20;
    private static final int SHOWN_CALLERS = 5;
    /** To read the counts of a key while none of its calls is being judged. */
    private static final int ATTEMPTS = 200;
    /** Bits of a hash that tell whether it may be that of a key with most calls, and that choose a slot of those looked at. */
    private static final int HEAVY_BITS = 16;

    private static final int SEEN_BITS = 10;
    private static final int THREADS = 64;
    /** Numbers in two lines of a cache, so that threads do not share one. */
    private static final int LINE = 16;
    /** The instant of a rush while there is none. */
    private static final long NONE = Long.MIN_VALUE;

    private static final AtomicLongFieldUpdater<CandidateTracker> BEGIN =
            AtomicLongFieldUpdater.newUpdater(CandidateTracker.class, "rush");

    private final Limit live;
    private final List<Limit> limits;
    private final Ticker ticker;
    private final Trials trials;
    private final boolean rushes;
    private final boolean paced;
    /** The most keys that are followed; while they are being dropped, twice as many. */
    final int capacity;

    private final int salt;
    private final Tracked withoutKey;
    /** By the texts of keys, as limiters know them: of bounded length, and comparable where their hash codes collide. */
    final Map<String, Tracked> keys = new ConcurrentHashMap<>();
    /** Keys whose hash has none of these bits are followed. */
    private volatile int mask;
    /** By the first bits of their hash, the keys that are followed whatever it is. */
    private volatile BitSet heavy = new BitSet(1 << HEAVY_BITS);

    /** Calls that are not followed, by threads. Two threads of one number may lose a call that they make within a few nanoseconds. */
    private final long[] skipped = new long[THREADS * LINE];

    /** The hashes of calls that were looked at. Races lose one; so they do below. */
    private final int[] seen = new int[1 << SEEN_BITS];

    private long sampled;

    /** The instant of the calls of a rush: a field, because each call reads it. */
    private volatile long rush = NONE;

    /** The instant of the last call that asked for one. */
    private long last;

    private final ReentrantLock change = new ReentrantLock();
    /** Keys that were found to make many calls. Guarded by the lock, as the next one. */
    private int heavies;
    /** Calls of keys that were dropped. */
    private long past;

    /**
     * @param live the limit beside which they are tried
     * @param limits as of {@link Candidates}
     * @param salt of the hashes by which keys are sampled; callers who know it can choose keys that are not
     */
    public CandidateTracker(Limit live, List<Limit> limits, Ticker ticker, int salt) {
        // The alarm of a rush would advance the time of a test.
        this(live, limits, ticker, salt, ticker == Ticker.system());
    }

    /** @param rushes whether the calls of a rush share an instant (F5) */
    CandidateTracker(Limit live, List<Limit> limits, Ticker ticker, int salt, boolean rushes) {
        this.live = live;
        this.limits = List.copyOf(limits);
        this.ticker = ticker;
        this.salt = salt;
        this.rushes = rushes;
        this.paced = live.algorithm().family() == Algorithm.Family.PACED;
        this.trials = new Trials(limits, ticker);
        long bytes = 256 + limits.stream().mapToLong(CandidateTracker::bytes).sum();
        this.capacity = (int) Math.max(LEAST_KEYS, Math.min(MOST_KEYS, MEMORY / bytes));
        this.withoutKey = new Tracked("", 0);
        this.withoutKey.heavy = true;
    }

    /** The memory that the state of a key takes under a limit, at most. */
    private static long bytes(Limit limit) {
        long calls = limit.algorithm() == Algorithm.SLIDING_LOG ? limit.rate().permits() : 0;
        return 64 + 16 * calls + 8L * limit.slots();
    }

    /**
     * Tries a call that happens now.
     *
     * @param key null for a call without a key
     * @param permits 0 or more
     * @param maxWaitNanos the longest wait that the policy of the limit allows
     * @param charged whether it costs nothing until it is {@link #settled}
     */
    public void tried(@Nullable Object key, long permits, long maxWaitNanos, boolean charged) {
        Tracked tracked = key == null ? withoutKey : find(CanonicalKey.text(key));
        if (tracked == null) {
            return;
        }
        boolean counted = permits == 1 && maxWaitNanos <= 0 && !charged && !paced;
        if (counted && tracked.instant == rush) {
            tracked.incrementAndGet();
            return;
        }
        long now = paced ? trials.now() : instant();
        tracked.flush();
        if (counted) {
            tracked.instant = now;
            tracked.incrementAndGet();
        } else {
            tracked.judge(1, permits, now, maxWaitNanos, charged);
        }
        if (sampled >= LOOK && !tracked.heavy) {
            sampled = 0;
            lookAt(tracked.key, tracked.hash);
        }
    }

    /** Charges a call that has been tried and has ended. Calls that did not run cost nothing: nobody knows what they would have. */
    public void settled(@Nullable Object key, long permits, long cost, long maxWaitNanos) {
        Tracked tracked = key == null ? withoutKey : keys.get(CanonicalKey.text(key));
        if (tracked != null) {
            tracked.trial.charge(permits, cost, trials.now(), maxWaitNanos);
        }
    }

    /** The instant of the rush; now if there is none. */
    private long reading() {
        long begun = rush;
        return begun == NONE ? trials.now() : begun;
    }

    /** The instant of a call, which may be the first of a rush. */
    private long instant() {
        long now = reading();
        if (rushes && rush == NONE && now - last < RUSH && BEGIN.compareAndSet(this, NONE, now)) {
            ticker.schedule(ticker.nanos() + TICK, this::tick);
        }
        last = now;
        return now;
    }

    private void tick() {
        boolean used = last == rush;
        rush = used ? trials.now() : NONE;
        if (used) {
            ticker.schedule(ticker.nanos() + TICK, this::tick);
        }
    }

    private @Nullable Tracked find(String key) {
        int hash = (key.hashCode() ^ salt) * 0x9E3779B1;
        hash ^= hash >>> 15;
        boolean maybe = (hash & mask) == 0 || heavy.get(hash >>> -HEAVY_BITS);
        Tracked known = maybe ? keys.get(key) : null;
        return known != null ? known : follow(key, hash);
    }

    /** Begins to follow a key of the sample; returns null for another one, whose call is counted (F3). */
    private @Nullable Tracked follow(String key, int hash) {
        if ((hash & mask) == 0 && keys.size() >= capacity) {
            arrange(null, hash);
        }
        if ((hash & mask) == 0 && keys.size() < 2 * capacity) {
            return keys.computeIfAbsent(key, added -> new Tracked(added, hash));
        }
        int thread = (int) Thread.currentThread().getId() & (THREADS - 1);
        if ((++skipped[thread * LINE] & (LOOK - 1)) == 0) {
            lookAt(key, hash);
        }
        return null;
    }

    /** F4 */
    private void lookAt(String key, int hash) {
        int slot = hash >>> -SEEN_BITS;
        if (seen[slot] == hash) {
            arrange(key, hash);
        }
        seen[slot] = hash;
    }

    /**
     * Makes room. If another thread does so, that is enough.
     *
     * @param key one that makes many calls; null to drop keys of the sample until a quarter of the capacity is free
     */
    private void arrange(@Nullable String key, int hash) {
        if (!change.tryLock()) {
            return;
        }
        try {
            if (key != null) {
                keys.computeIfAbsent(key, added -> new Tracked(added, hash)).heavy = true;
                heavy.set(hash >>> -HEAVY_BITS);
                heavies++;
            }
            while (key == null && keys.size() > capacity - capacity / 4 && mask != Integer.MAX_VALUE) {
                mask = mask << 1 | 1;
                drop();
            }
            if (heavies > capacity / 2) {
                drop();
            }
        } finally {
            change.unlock();
        }
    }

    /** Keeps those with most calls, later of those that were kept before, and drops all others that are not of the sample. */
    private void drop() {
        Set<Tracked> most = keys.values().stream()
                .filter(tracked -> heavies == 0 || tracked.heavy)
                .map(tracked -> Map.entry(-tracked.flush(), tracked))
                .sorted(Map.Entry.comparingByKey())
                .limit(capacity / 4)
                .map(Map.Entry::getValue)
                .collect(Collectors.toSet());
        heavies = most.size();
        BitSet bits = new BitSet(1 << HEAVY_BITS);
        most.forEach(tracked -> bits.set(tracked.hash >>> -HEAVY_BITS));
        heavy = bits;
        keys.values().removeIf(tracked -> {
            tracked.heavy = most.contains(tracked);
            boolean dropped = !tracked.heavy && (tracked.hash & mask) != 0;
            past += dropped ? tracked.flush() : 0;
            return dropped;
        });
    }

    /** What the candidates would have done until now. Takes time in proportion to {@link #capacity}. */
    public CandidateReport report() {
        change.lock();
        try {
            List<Judged> whole = new ArrayList<>(List.of(withoutKey.judged()));
            List<Judged> sample = new ArrayList<>();
            keys.values().forEach(tracked -> (tracked.heavy ? whole : sample).add(tracked.judged()));
            long ofSample = sum(sample, 0);
            long others = ofSample + past + LongStream.of(skipped).sum();
            long calls = others + sum(whole, 0);
            List<Candidate> candidates = IntStream.range(0, limits.size())
                    .mapToObj(limit -> candidate(limit, whole, sample, calls, others, ofSample))
                    .toList();
            return new CandidateReport(calls, candidates);
        } finally {
            change.unlock();
        }
    }

    /**
     * Estimates by a sample of keys that the share of all others is that of the sample.
     *
     * @param others calls of keys other than those with most calls
     * @param ofSample the part of them that is of keys of the sample
     */
    private Candidate candidate(
            int limit, List<Judged> whole, List<Judged> sample, long calls, long others, long ofSample) {
        double share = ofSample == 0 ? 0 : (double) sum(sample, limit + 1) / ofSample;
        // One more key as large as the largest, rejected whole: a sample without a rejection proves no zero.
        double largest = sample.stream().mapToDouble(one -> one.counts[0]).max().orElse(0);
        double squares = sample.stream()
                .mapToDouble(one -> Math.pow(one.counts[limit + 1] - share * one.counts[0], 2))
                .reduce(largest * largest, Double::sum);
        double error = ofSample == 0 ? 1 : Math.min(1, 2 * Math.sqrt(squares) / ofSample * others / calls);
        List<Judged> touched = Stream.concat(whole.stream(), sample.stream())
                .filter(one -> one.key != withoutKey && one.counts[limit + 1] > 0)
                .toList();
        return new Candidate(
                limits.get(limit),
                Candidates.name(limits.get(limit), live),
                calls == 0 ? 0 : (sum(whole, limit + 1) + share * others) / calls,
                others == ofSample ? 0 : error,
                touched.stream().mapToLong(one -> one.key.heavy ? 1 : mask + 1L).sum(),
                touched.stream()
                        .map(one -> new Caller(one.key.key, one.counts[limit + 1]))
                        .sorted(Comparator.comparingLong(caller -> -caller.rejected()))
                        .limit(SHOWN_CALLERS)
                        .toList());
    }

    private static long sum(List<Judged> of, int count) {
        return of.stream().mapToLong(one -> one.counts[count]).sum();
    }

    /** What was judged of a key at one time. */
    private static final class Judged {

        private final Tracked key;
        /** As those of the key. */
        private final long[] counts;

        private Judged(Tracked key, long[] counts) {
            this.key = key;
            this.counts = counts;
        }
    }

    /** A key that is followed, or all calls without one. Its number is that of calls that are counted and not judged yet. */
    final class Tracked extends AtomicInteger {

        private static final long serialVersionUID = 1;

        private final String key;
        private final int hash;
        private final transient Trials.Key trial;
        /** Calls, then for each candidate those that it would have rejected, and the calls again, once all have judged them. */
        private final AtomicLongArray counts = new AtomicLongArray(2 + limits.size());
        /** That of the calls that are counted. */
        private volatile long instant;
        /** Written under the lock. */
        private volatile boolean heavy;

        private Tracked(String key, int hash) {
            this.key = key;
            this.hash = hash;
            // Later than its first call it would not be full then.
            this.trial = trials.new Key(reading());
        }

        /** Judges the calls that have been counted. Returns how many have been judged in all. */
        private long flush() {
            if (get() > 0) {
                judge(getAndSet(0), 1, instant, 0, false);
            }
            return counts.get(0);
        }

        /** Flushes; what has been judged then. Under a load that does not pause, a candidate may count a few calls more than others. */
        private Judged judged() {
            flush();
            long[] copy = new long[counts.length()];
            for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
                for (int i = copy.length - 1; i >= 0; i--) {
                    copy[i] = counts.get(i);
                }
                if (copy[0] == copy[copy.length - 1]) {
                    break;
                }
                LockSupport.parkNanos(1_000);
            }
            return new Judged(this, copy);
        }

        private void judge(long calls, long permits, long now, long maxWaitNanos, boolean charged) {
            counts.addAndGet(0, calls);
            for (int i = 0; i < limits.size(); i++) {
                counts.addAndGet(1 + i, trial.rejected(i, calls, permits, now, maxWaitNanos, charged));
            }
            counts.addAndGet(1 + limits.size(), calls);
            sampled += mask == 0 || heavy ? 0 : calls;
        }
    }
}
