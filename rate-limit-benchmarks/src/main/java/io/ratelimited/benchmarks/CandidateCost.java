package io.ratelimited.benchmarks;

import com.sun.management.ThreadMXBean;
import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Ticker;
import io.ratelimited.core.internals.candidates.CandidateTracker;
import io.ratelimited.core.internals.candidates.Candidates;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.function.LongSupplier;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * What candidates add to a call: {@code CandidateCost ROUNDS CALLS}. Calls without them and with them take turns in one process,
 * and only the time that their thread has run counts, so the machine may do other work. The second half of the rounds counts.
 */
public final class CandidateCost {

    private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    private static final String[] KEYS =
            IntStream.range(0, 1 << 17).mapToObj(i -> "caller-" + i).toArray(String[]::new);
    private static final int FEW = 100;

    private static volatile long last;

    private final int rounds;
    private final int calls;
    private final InMemoryRateLimiter limiter = new InMemoryRateLimiter(limit());

    private CandidateCost(int rounds, int calls) {
        this.rounds = rounds;
        this.calls = calls;
    }

    /** Takes the number of rounds, and that of calls in each. */
    public static void main(String[] args) {
        new CandidateCost(Integer.parseInt(args[0]), Integer.parseInt(args[1])).print();
        // The results are used, so that no compiler leaves the calls out.
        System.exit(last == Long.MIN_VALUE ? 1 : 0);
    }

    private static Limit limit() {
        return Limit.of("live", Algorithm.TOKEN_BUCKET).rate("1000000000/s").build();
    }

    private static CandidateTracker tracker(int number) {
        String rates =
                IntStream.range(0, number).mapToObj(i -> (1L << i) * 100 + "/m").collect(Collectors.joining(","));
        return new CandidateTracker(limit(), Candidates.of(limit(), rates), Ticker.system(), 0);
    }

    private void print() {
        System.out.println("| Candidates beside a limit | ns without | ns with | added | B added |");
        System.out.println("|---|---:|---:|---:|---:|");
        for (int number : new int[] {3, 9}) {
            String of = number + " candidates, ";
            CandidateTracker few = tracker(number);
            CandidateTracker flooded = tracker(number);
            for (int i = 0; i < 2 * KEYS.length; i++) {
                flooded.tried(KEYS[i % KEYS.length], 1, 0, false);
            }
            row(of + "a call without a key", () -> keys(FEW), () -> keyless(few));
            row(of + "a key that is followed", () -> keys(FEW), () -> tried(few, FEW));
            row(of + "one of 131,072 keys", () -> keys(KEYS.length), () -> tried(flooded, KEYS.length));
            row(of + "a decision and a key that is followed", () -> decided(null), () -> decided(few));
        }
    }

    private void row(String name, LongSupplier without, LongSupplier with) {
        List<Double> plain = new ArrayList<>();
        List<Double> added = new ArrayList<>();
        long bytes = 0;
        for (int i = 0; i < rounds; i++) {
            double first = nanos(without);
            long before = THREADS.getCurrentThreadAllocatedBytes();
            double second = nanos(with);
            if (i >= rounds / 2) {
                bytes += THREADS.getCurrentThreadAllocatedBytes() - before;
                plain.add(first);
                added.add(second);
            }
        }
        double floor = median(plain);
        double cost = median(added);
        System.out.printf(
                Locale.ROOT,
                "| %s | %.1f | %.1f | %.1f | %d |%n",
                name,
                floor,
                cost,
                cost - floor,
                bytes / calls / plain.size());
    }

    private double nanos(LongSupplier action) {
        long begin = THREADS.getCurrentThreadCpuTime();
        last = action.getAsLong();
        return (double) (THREADS.getCurrentThreadCpuTime() - begin) / calls;
    }

    private static double median(List<Double> values) {
        return values.stream().sorted().toList().get(values.size() / 2);
    }

    /** To have a key in hand. */
    private long keys(int number) {
        long hashes = 0;
        for (int i = 0; i < calls; i++) {
            hashes += KEYS[i % number].hashCode();
        }
        return hashes;
    }

    private long keyless(CandidateTracker tracker) {
        long hashes = 0;
        for (int i = 0; i < calls; i++) {
            hashes += KEYS[i % FEW].hashCode();
            tracker.tried(null, 1, 0, false);
        }
        return hashes;
    }

    private long tried(CandidateTracker tracker, int number) {
        long hashes = 0;
        for (int i = 0; i < calls; i++) {
            String key = KEYS[i % number];
            hashes += key.hashCode();
            tracker.tried(key, 1, 0, false);
        }
        return hashes;
    }

    /** In the order of a plain call: its candidates are tried after its decision. */
    private long decided(@Nullable CandidateTracker tracker) {
        long admitted = 0;
        for (int i = 0; i < calls; i++) {
            String key = KEYS[i % FEW];
            admitted += limiter.tryAcquire(key, 1) ? 1 : 0;
            if (tracker != null) {
                tracker.tried(key, 1, 0, false);
            }
        }
        return admitted;
    }
}
