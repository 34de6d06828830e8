package io.ratelimited.core.internals.candidates;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;
import static org.junit.jupiter.params.provider.EnumSource.Mode.EXCLUDE;

import com.sun.management.ThreadMXBean;
import io.ratelimited.core.Algorithm;
import io.ratelimited.core.CanonicalKey;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Threads;
import io.ratelimited.core.Ticker;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.testing.ManualTicker;
import java.lang.management.ManagementFactory;
import java.math.BigInteger;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/** What candidates say, beside real limits of the same numbers under the same traffic. Cites F1 to F5 of the tracker. */
@Tag("slow")
class CandidateTrackerTest {

    private static final double HALF_A_POINT = 0.005;
    private static final int SALT = 7;

    private final ManualTicker ticker = new ManualTicker(-5_000, Instant.parse("2026-01-01T00:00:00Z"));

    private record Call(long gapNanos, String key) {}

    /** So many calls in ten minutes or so, with the key of each and the time since the one before. */
    private enum Traffic {
        /** A few callers make most calls, and 60,000 make the rest. */
        ZIPF {
            @Override
            Call next(Random random, int i) {
                int rank = (int) Math.pow(60_000, random.nextDouble());
                return new Call((long) (-Math.log(1 - random.nextDouble()) * 3_000_000), "caller-" + rank);
            }
        },
        /** Each of 3,000 callers loads a page of 40 resources, at any time. */
        BURSTS {
            @Override
            Call next(Random random, int i) {
                long pause = (long) (-Math.log(1 - random.nextDouble()) * 120_000_000);
                return new Call(i % 40 == 0 ? pause : 1_000, "caller-" + new Random(i / 40).nextInt(3_000));
            }
        },
        /** Five callers make a fifth of the calls, half come from a flood of keys that are used once, and 2,000 are callers. */
        ATTACKERS {
            @Override
            Call next(Random random, int i) {
                int kind = random.nextInt(10);
                String key = kind < 2
                        ? "attacker-" + random.nextInt(5)
                        : kind < 7 ? "flood-" + i : "caller-" + random.nextInt(2_000);
                return new Call((long) (-Math.log(1 - random.nextDouble()) * 3_000_000), key);
            }
        };

        abstract Call next(Random random, int i);
    }

    private static Limit limit(Algorithm algorithm, String rate) {
        Limit.Builder limit = Limit.of("search", algorithm).rate(rate);
        return algorithm == Algorithm.WARM_UP
                ? limit.warmup(Duration.ofSeconds(10)).build()
                : limit.build();
    }

    private CandidateTracker tracker(Limit live, String... rates) {
        return new CandidateTracker(live, Candidates.of(live, String.join(",", rates)), ticker, SALT, true);
    }

    @ParameterizedTest
    @EnumSource(Traffic.class)
    void saysWhatRealLimitsOfTheSameNumbersReject(Traffic traffic) {
        CandidateReport report = compare(traffic, 1, "20/m", "60/m", "120/m", "600/m");
        if (traffic == Traffic.BURSTS) {
            assertThat(report.candidates()).allMatch(one -> one.error() == 0);
        } else {
            assertThat(report.candidates()).allMatch(one -> one.error() > 0);
        }
    }

    /** All callers come within a few seconds. */
    @ParameterizedTest
    @EnumSource(Traffic.class)
    void saysItOfARushToo(Traffic traffic) {
        compare(traffic, 100, "5/m", "20/m", "60/m", "600/m");
    }

    /** F5: calls that were counted before the step are judged after it. */
    @ParameterizedTest
    @CsvSource({"-PT24H", "-PT2M", "-PT30S", "PT24H"})
    void candidatesFollowAWallClockThatStepsAsTheirLimitDoes(Duration step) {
        Limit live = limit(Algorithm.FIXED_WINDOW, "100/m");
        CandidateTracker tracker = tracker(live, "5/m", "20/m");
        List<InMemoryRateLimiter> real = Stream.of("5/m", "20/m")
                .map(rate -> new InMemoryRateLimiter(limit(Algorithm.FIXED_WINDOW, rate), ticker, 10))
                .toList();
        int[] rejected = new int[2];
        for (int i = 0; i < 200; i++) {
            for (String key : Arrays.asList("k", null)) {
                for (int call = 0; call < 3; call++) {
                    tracker.tried(key, 1, 0, false);
                    for (int j = 0; j < 2; j++) {
                        rejected[j] += real.get(j).tryAcquire(key, 1) ? 0 : 1;
                    }
                }
            }
            if (i == 100) {
                ticker.setWallClock(Instant.EPOCH.plusNanos(ticker.epochNanos()).plus(step));
            }
            ticker.advance(Duration.ofSeconds(7));
        }
        CandidateReport report = tracker.report();
        assertThat(rejected[0]).isPositive();
        for (int j = 0; j < 2; j++) {
            assertThat(report.candidates().get(j).rejected()).isCloseTo(rejected[j] / 1_200.0, within(1e-9));
        }
    }

    /** What calls have cost, and new keys, also right after the step. */
    @Test
    void candidatesChargeCallsAfterAWallClockHasSteppedBack() {
        CandidateTracker tracker = tracker(limit(Algorithm.FIXED_WINDOW, "100/m"), "5/m");
        tracker.tried("k", 1, 0, true);
        ticker.setWallClock(Instant.parse("2025-06-01T00:00:00Z"));
        tracker.settled("k", 1, 5, 0);
        tracker.tried("k", 1, 0, true);
        tracker.tried("new", 1, 0, true);
        ticker.advance(Duration.ofMinutes(1));
        tracker.tried("k", 1, 0, true);
        assertThat(tracker.report().candidates().get(0).rejected()).isEqualTo(1 / 4.0);
    }

    private CandidateReport compare(Traffic traffic, int times, String... rates) {
        Limit live = limit(Algorithm.TOKEN_BUCKET, "100/m");
        CandidateTracker tracker = tracker(live, rates);
        List<InMemoryRateLimiter> real = Arrays.stream(rates)
                .map(rate -> new InMemoryRateLimiter(limit(Algorithm.TOKEN_BUCKET, rate), ticker, 1_000_000))
                .toList();
        int calls = 80_000;
        int[] rejected = new int[rates.length];
        Random random = new Random(1);
        for (int i = 0; i < calls; i++) {
            Call call = traffic.next(random, i);
            ticker.advance(Duration.ofNanos(call.gapNanos / times));
            tracker.tried(call.key, 1, 0, false);
            for (int j = 0; j < rates.length; j++) {
                rejected[j] += real.get(j).tryAcquire(call.key, 1) ? 0 : 1;
            }
        }
        CandidateReport report = tracker.report();
        assertThat(report.calls()).isEqualTo(calls);
        for (int j = 0; j < rates.length; j++) {
            double share = rejected[j] / (double) calls;
            CandidateReport.Candidate said = report.candidates().get(j);
            if (share <= 0.3) {
                assertThat(said.rejected()).isCloseTo(share, within(HALF_A_POINT));
            }
            assertThat(said.rejected()).isCloseTo(share, within(said.error() + 1e-9));
        }
        return report;
    }

    @ParameterizedTest
    @EnumSource(
            value = Algorithm.class,
            mode = EXCLUDE,
            names = {"CONCURRENCY", "ADAPTIVE", "DEFAULT"})
    void decidesByEachAlgorithmThatCountsOverTime(Algorithm algorithm) {
        Limit live = limit(algorithm, "20/s");
        CandidateTracker tracker = tracker(live, "10/s", "40/s");
        List<InMemoryRateLimiter> real = Stream.of("10/s", "40/s")
                .map(rate -> new InMemoryRateLimiter(limit(algorithm, rate), ticker, 100))
                .toList();
        Random random = new Random(2);
        int[] rejected = new int[2];
        for (int i = 0; i < 8_000; i++) {
            long gap = i % 500 < 300 ? 1_000_000 : (long) (-Math.log(1 - random.nextDouble()) * 60_000_000);
            ticker.advance(Duration.ofNanos(gap));
            String key = i % 3 == 0 ? null : "caller-" + i % 2;
            long permits = i % 7 == 0 ? random.nextInt(3) : 1;
            long maxWait = algorithm.queues() ? 300_000_000 : 0;
            tracker.tried(key, permits, maxWait, false);
            for (int j = 0; j < 2; j++) {
                rejected[j] += real.get(j).reserve(key, permits, maxWait).isRefused() ? 1 : 0;
            }
        }
        CandidateReport report = tracker.report();
        assertThat(report.calls()).isEqualTo(8_000);
        for (int j = 0; j < 2; j++) {
            assertThat(report.candidates().get(j).rejected()).isCloseTo(rejected[j] / 8_000.0, within(1e-9));
        }
        assertThat(rejected[1]).isBetween(1, rejected[0] - 1);
    }

    /** F5: of a rush of calls, those of an instant are taken together; at its end nothing is left over. */
    @ParameterizedTest
    @EnumSource(
            value = Algorithm.class,
            names = {"TOKEN_BUCKET", "FIXED_WINDOW", "SLIDING_WINDOW", "SLIDING_LOG"})
    void takesTheCallsOfARushTogether(Algorithm algorithm) {
        Limit live = limit(algorithm, "1000/s");
        CandidateTracker tracker = tracker(live, "1000/s", "8000/s");
        InMemoryRateLimiter real = new InMemoryRateLimiter(limit(algorithm, "8000/s"), ticker, 100);
        int rejected = 0;
        for (int i = 0; i < 100_000; i++) {
            ticker.advance(Duration.ofNanos(i % 30_000 == 0 ? 1_500_000_000L : 5_000 + i % 7 * 20_000L));
            tracker.tried(null, 1, 0, false);
            rejected += real.tryAcquire(null, 1) ? 0 : 1;
        }
        CandidateReport report = tracker.report();
        assertThat(report.calls()).isEqualTo(100_000);
        assertThat(report.candidates().get(1).rejected()).isCloseTo(rejected / 100_000.0, within(HALF_A_POINT));
        assertThat(rejected).isBetween(10_000, 80_000);
    }

    /** F5: while nobody calls, nothing wakes the application up. */
    @Test
    void theAlarmOfARushEndsWithIt() {
        AtomicInteger alarms = new AtomicInteger();
        Ticker counting = new Ticker() {
            @Override
            public long nanos() {
                return ticker.nanos();
            }

            @Override
            public long epochNanos() {
                return ticker.epochNanos();
            }

            @Override
            public void sleepUntil(long deadline) {
                throw new AssertionError("a candidate delays nobody");
            }

            @Override
            public Runnable schedule(long deadline, Runnable task) {
                alarms.incrementAndGet();
                return ticker.schedule(deadline, task);
            }
        };
        Limit live = limit(Algorithm.TOKEN_BUCKET, "100/m");
        CandidateTracker tracker = new CandidateTracker(live, Candidates.of(live, "100/m"), counting, SALT, true);
        for (int i = 0; i < 1_000; i++) {
            ticker.advance(Duration.ofNanos(10_000));
            tracker.tried(null, 1, 0, false);
        }
        int inARush = alarms.get();
        assertThat(inARush).isBetween(2, 10);
        ticker.advance(Duration.ofSeconds(1));
        assertThat(alarms.get()).isLessThanOrEqualTo(inARush + 1);
        ticker.advance(Duration.ofSeconds(1));
        tracker.tried(null, 1, 0, false);
        ticker.advance(Duration.ofSeconds(1));
        tracker.tried(null, 1, 0, false);
        assertThat(alarms.get()).isLessThanOrEqualTo(inARush + 1);
    }

    /** F5: the alarm would advance the time of a test. */
    @Test
    void underTheClockOfATestThereIsNoRush() {
        ticker.autoAdvance();
        Limit live = limit(Algorithm.TOKEN_BUCKET, "100/m");
        CandidateTracker tracker = new CandidateTracker(live, Candidates.of(live, "2/m"), ticker, SALT);
        for (int i = 0; i < 3; i++) {
            tracker.tried(null, 1, 0, false);
        }
        assertThat(ticker.sleeping()).isZero();
        assertThat(ticker.elapsed()).isZero();
        assertThat(tracker.report().candidates().get(0).rejected()).isCloseTo(1 / 3.0, within(1e-9));
    }

    /** F4 */
    @Test
    void findsAKeyThatComesLateAndMakesManyCalls() {
        CandidateTracker tracker = tracker(limit(Algorithm.TOKEN_BUCKET, "100/m"), "100/m");
        IntStream.range(0, 30_000).forEach(i -> tracker.tried("caller-" + i, 1, 0, false));
        String late = IntStream.range(0, 100)
                .mapToObj(i -> "late-" + i)
                .filter(key -> {
                    tracker.tried(key, 1, 0, false);
                    return !tracker.keys.containsKey(key);
                })
                .findFirst()
                .orElseThrow();
        for (int i = 0; i < 30_000; i++) {
            tracker.tried(late, 1, 0, false);
        }
        CandidateReport.Candidate said = tracker.report().candidates().get(0);
        assertThat(said.rejected()).isCloseTo(29_900 / 60_100.0, within(0.02));
        assertThat(said.mostRejected())
                .first()
                .extracting(CandidateReport.Caller::key)
                .isEqualTo(late);
    }

    /** F2 */
    @Test
    void followsABoundedNumberOfKeys() {
        CandidateTracker tracker = tracker(limit(Algorithm.SLIDING_LOG, "100/m"), "100/m", "10000/m");
        assertThat(tracker.capacity).isBetween(32, 200);
        for (int i = 0; i < 50_000; i++) {
            tracker.tried("flood-" + i, 1, 0, false);
            assertThat(tracker.keys.size()).isLessThanOrEqualTo(2 * tracker.capacity);
        }
        assertThat(tracker.report().calls()).isEqualTo(50_000);
    }

    /** Of the sample, and with most calls: a client may choose them, and send a megabyte as each. */
    @Test
    void ofLongKeysNoMoreIsRememberedThanByTheirLimit() {
        CandidateTracker tracker = tracker(limit(Algorithm.TOKEN_BUCKET, "5/m"), "5/m");
        String tail = "x".repeat(2_000);
        for (int i = 0; i < 20_000; i++) {
            tracker.tried(i + tail, 1, 0, false);
            tracker.tried(new BigInteger("1" + "0".repeat(200) + i % 100), 1, 0, false);
            tracker.tried("often" + tail, 1, 0, false);
        }
        assertThat(tracker.keys.keySet()).allSatisfy(key -> assertThat(key).hasSizeLessThanOrEqualTo(71));
        assertThat(tracker.report().candidates().get(0).mostRejected())
                .first()
                .extracting(CandidateReport.Caller::key)
                .isEqualTo(CanonicalKey.text("often" + tail));
    }

    /** Keys whose hash codes are all the same cannot be halved. */
    @Test
    void aFloodOfKeysWithOneHashCodeFillsNoMemory() {
        CandidateTracker tracker = tracker(limit(Algorithm.SLIDING_LOG, "100/m"), "10000/m");
        for (int i = 0; i < 1 << 15; i++) {
            StringBuilder key = new StringBuilder();
            for (int bit = 0; bit < 15; bit++) {
                key.append((i >> bit & 1) == 0 ? "Aa" : "BB");
            }
            tracker.tried(key.toString(), 1, 0, false);
            assertThat(tracker.keys.size()).isLessThanOrEqualTo(2 * tracker.capacity);
        }
        assertThat(tracker.report().calls()).isEqualTo(1 << 15);
    }

    /** Of a key that is followed, of calls without one, and of keys that are not followed. */
    @Test
    void aCallOfARushAllocatesNothing() {
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        Limit live = limit(Algorithm.TOKEN_BUCKET, "100/m");
        CandidateTracker few = tracker(live, "100/m", "200/m");
        CandidateTracker flooded = tracker(live, "100/m", "200/m");
        String[] keys = IntStream.range(0, 20_000).mapToObj(i -> "caller-" + i).toArray(String[]::new);
        long bytes = 0;
        for (int round = 0; round < 3; round++) {
            long before = threads.getCurrentThreadAllocatedBytes();
            for (String key : keys) {
                few.tried("caller", 1, 0, false);
                few.tried(null, 1, 0, false);
                flooded.tried(key, 1, 0, false);
            }
            bytes = threads.getCurrentThreadAllocatedBytes() - before;
        }
        // Some keys that are met again are taken for keys with many calls.
        assertThat(bytes / keys.length).isZero();
    }

    @Test
    void countsEachCallOfManyThreadsOnce() throws Exception {
        CandidateTracker tracker = tracker(limit(Algorithm.TOKEN_BUCKET, "100/m"), "100/m", "1000/m");
        CyclicBarrier gate = new CyclicBarrier(4);
        List<Thread> threads = new ArrayList<>();
        for (int t = 0; t < 4; t++) {
            int own = t;
            Thread thread = new Thread(() -> {
                try {
                    gate.await();
                } catch (Exception ex) {
                    throw new IllegalStateException(ex);
                }
                for (int i = 0; i < 20_000; i++) {
                    tracker.tried(i % 2 == 0 ? null : "caller-" + (i + own) % 50, 1, 0, false);
                }
            });
            threads.add(thread);
            thread.start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        CandidateReport report = tracker.report();
        assertThat(report.calls()).isEqualTo(80_000);
        // On a clock that stands still: 100 without a key, and 100 of each of 50 callers.
        assertThat(report.candidates().get(0).rejected()).isCloseTo(1 - 5_100 / 80_000.0, within(1e-9));
        assertThat(report.candidates().get(0).callers()).isEqualTo(50);
    }

    @Test
    void chargesTheCostOfACallThatHasEnded() {
        Limit live = Limit.of("logins", Algorithm.TOKEN_BUCKET)
                .rate("5/h")
                .charged(true)
                .build();
        CandidateTracker tracker = tracker(live, "2/h", "5/h");
        for (int i = 0; i < 10; i++) {
            tracker.tried("right", 1, 0, true);
            tracker.settled("right", 1, 0, 0);
            tracker.tried("wrong", 1, 0, true);
            tracker.settled("wrong", 1, 1, 0);
        }
        CandidateReport report = tracker.report();
        assertThat(report.candidates())
                .extracting(CandidateReport.Candidate::rejected)
                .containsExactly(0.4, 0.25);
    }

    @Test
    void theSmallestBelowAShareIsTheFirstThatIs() {
        CandidateTracker tracker = tracker(limit(Algorithm.TOKEN_BUCKET, "4/m"), "10/m", "2/m", "5/m");
        assertThat(tracker.report().smallestBelow(0.5)).isEmpty();
        IntStream.range(0, 10).forEach(i -> tracker.tried(null, 1, 0, false));
        CandidateReport report = tracker.report();
        assertThat(report.smallestBelow(0.6)).contains("5/m");
        assertThat(report.smallestBelow(0.5)).contains("10/m");
        assertThat(report)
                .hasToString(
                        "10 calls: 2/m rejects 80 %, 5/m rejects 50 %, 10/m rejects 0 %; the smallest below 1 % is 10/m");
    }

    /** The clock stands still: each candidate admits what it holds, and rejects the rest of the calls of the report. */
    @Test
    void allCandidatesOfAReportHaveJudgedTheSameCalls() throws Exception {
        CandidateTracker tracker = tracker(limit(Algorithm.TOKEN_BUCKET, "100/d"), "2/d", "4/d", "8/d", "16/d", "32/d");
        AtomicBoolean over = new AtomicBoolean();
        FutureTask<Boolean> calls = Threads.start(() -> {
            while (!over.get()) {
                tracker.tried(null, 2, 0, false);
                for (int pause = 0; pause < 100; pause++) {
                    Thread.onSpinWait();
                }
            }
            return true;
        });
        int reports = 5_000;
        int differing = 0;
        for (int i = 0; i < reports; i++) {
            CandidateReport report = tracker.report();
            differing += report.candidates().stream().allMatch(one -> rejectsTheRest(one, report.calls())) ? 0 : 1;
        }
        over.set(true);
        Threads.get(calls);
        // Most of them would, if a report were read while a call is being judged: a busy machine may stop a judge for
        // long.
        assertThat(differing).isLessThan(reports / 10);
    }

    private static boolean rejectsTheRest(CandidateReport.Candidate candidate, long calls) {
        long admitted = Math.min(calls, candidate.limit().burst() / 2);
        return Math.abs(candidate.rejected() * calls - (calls - admitted)) < 0.5;
    }
}
