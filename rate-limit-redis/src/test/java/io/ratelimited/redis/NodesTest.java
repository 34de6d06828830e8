package io.ratelimited.redis;

import static io.ratelimited.redis.RedisProcess.until;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Ticker;
import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Several nodes, whose clocks are hours apart, under full load on one key of one limit. */
@Tag("once")
class NodesTest {

    private static final int PROCESSES = 2;
    private static final long LONG_MILLIS = 1500;
    private static final long SHORT_MILLIS = 400;
    /** Grants that each caller of a process waits for, however slow the machine is. */
    private static final int LEAST_GRANTS = 100 / PROCESSES / 4 + 1;

    private static final Pattern EVALS = Pattern.compile("cmdstat_evalsha:calls=(\\d+)");

    @RegisterExtension
    static final RedisServers REDIS = RedisServers.standalone();

    /** The system's monotonic time with a wrong wall clock. */
    private record WrongClock(long offsetNanos) implements Ticker {

        @Override
        public long nanos() {
            return Ticker.system().nanos();
        }

        @Override
        public long epochNanos() {
            return Ticker.system().epochNanos() + offsetNanos;
        }

        @Override
        public void sleepUntil(long deadline) throws InterruptedException {
            Ticker.system().sleepUntil(deadline);
        }

        @Override
        public Runnable schedule(long deadline, Runnable task) {
            return Ticker.system().schedule(deadline, task);
        }
    }

    /** A caller that remembers when each of its admitted calls was asked for and answered. */
    private static final class Meter implements Runnable {

        private final RateLimiter limiter;
        private final long end;
        private final int leastGrants;
        private long[] asked = new long[1024];
        private long[] answered = new long[1024];
        private int admitted;
        private long decisions;
        /** Nanoseconds between calls; 0 for none. */
        private final long pause;

        private Meter(RateLimiter limiter, long end, int leastGrants, int callsPerSecond) {
            this.leastGrants = leastGrants;
            this.pause = callsPerSecond == 0 ? 0 : 1_000_000_000L / callsPerSecond;
            this.limiter = limiter;
            this.end = end;
        }

        @Override
        public void run() {
            long next = System.nanoTime();
            for (long now = next; now - end < 0 || admitted < leastGrants; now = System.nanoTime()) {
                if (now - next < 0) {
                    LockSupport.parkNanos(next - now);
                    continue;
                }
                next += pause;
                boolean goes = limiter.tryAcquire("hot", 1);
                decisions++;
                if (goes) {
                    if (admitted == asked.length) {
                        asked = Arrays.copyOf(asked, 2 * admitted);
                        answered = Arrays.copyOf(answered, 2 * admitted);
                    }
                    asked[admitted] = now;
                    answered[admitted++] = System.nanoTime();
                }
            }
        }

        Stream<Grant> grants() {
            return IntStream.range(0, admitted).mapToObj(i -> new Grant(asked[i], answered[i]));
        }
    }

    private record Grant(long asked, long answered) {}

    /** A node that is a process of its own: says when it is connected, begins when told to, and writes what it was granted. */
    static final class Node {

        private Node() {}

        public static void main(String[] args) throws Exception {
            RedisClientSettings client = RedisServers.settings(Integer.parseInt(args[0]));
            try (RedisBackend backend = RedisBackend.of(client, options(PROCESSES, Integer.parseInt(args[1])))) {
                RateLimiter limiter = backend.limiter(limit("1000/s", 100), RedisLimitOptions.DEFAULTS);
                until(() -> backend.health().state() == RedisHealth.State.UP, "connected", Duration.ofSeconds(60));
                System.out.println("ready");
                System.in.read();
                callAtOnce(List.of(limiter), LEAST_GRANTS, 0, LONG_MILLIS).stream()
                        .flatMap(Meter::grants)
                        .forEach(grant -> System.out.println(grant.asked + " " + grant.answered));
            }
        }
    }

    /** An hour between the wall clocks of two nodes; a long timeout, so that a slow machine is no outage. */
    private static RedisBackendOptions options(int nodes, int node) {
        return RedisBackendOptions.DEFAULTS
                .timeout(Duration.ofSeconds(20))
                .expectedNodes(nodes)
                .ticker(new WrongClock((node - 1) * 3_600_000_000_000L));
    }

    private static Limit limit(String rate, int burst) {
        return Limit.of("hot", Algorithm.TOKEN_BUCKET).rate(rate).burst(burst).build();
    }

    /** Four callers of each limiter. */
    private static List<Meter> callAtOnce(List<RateLimiter> limiters, int leastGrants, int callsPerLimiter, long millis)
            throws InterruptedException {
        long end = System.nanoTime() + 1_000_000 * millis;
        List<Meter> meters = new ArrayList<>();
        List<Thread> threads = new ArrayList<>();
        for (RateLimiter limiter : limiters) {
            for (int caller = 0; caller < 4; caller++) {
                Meter meter = new Meter(limiter, end, leastGrants, callsPerLimiter / 4);
                meters.add(meter);
                Thread thread = new Thread(meter);
                threads.add(thread);
                thread.start();
            }
        }
        for (Thread thread : threads) {
            thread.join();
        }
        return meters;
    }

    private static long evals() {
        Matcher stats = EVALS.matcher(REDIS.server().ask(commands -> commands.info("commandstats")));
        return stats.find() ? Long.parseLong(stats.group(1)) : 0;
    }

    /**
     * By how much the permits in any window exceed burst + rate · (window + lease). A permit counts where it surely was:
     * if asked for and answered within the window.
     */
    private static double worstExcess(List<Grant> all, double burst, double perNano, long leaseNanos) {
        long[] asked = all.stream().mapToLong(Grant::asked).sorted().toArray();
        List<Grant> grants = new ArrayList<>(all);
        grants.sort((a, b) -> Long.compare(a.answered, b.answered));
        // For a window [from, to]: grants asked at or after from and answered at or before to. With x = answered, the
        // excess is count - burst - rate * (to - from + lease); scanned from every 16th start.
        double worst = Double.NEGATIVE_INFINITY;
        for (int start = 0; start < asked.length; start += Math.max(1, asked.length / 500)) {
            long from = asked[start];
            int count = 0;
            for (Grant grant : grants) {
                if (grant.asked - from >= 0) {
                    count++;
                    worst = Math.max(worst, count - burst - perNano * (grant.answered - from + leaseNanos));
                }
            }
        }
        return worst;
    }

    @ParameterizedTest
    @CsvSource({"2, 0.00, 1000/s, 100, 0", "2, 0.05, 10000/s, 1000, 0"})
    void staysWithinTheLimit(int nodes, double maxOvershoot, String rate, int burst, int callsPerNode)
            throws Exception {
        staysWithin(nodes, maxOvershoot, rate, burst, callsPerNode, SHORT_MILLIS);
    }

    @ParameterizedTest
    @Tag("proof")
    @CsvSource({
        "2, 0.00, 1000/s, 100, 0",
        "4, 0.00, 1000/s, 100, 0",
        "2, 0.00, 100000/s, 100000, 20000",
        "2, 0.05, 100000/s, 100000, 20000",
        "2, 0.00, 5000/s, 500, 20000",
        "2, 0.05, 5000/s, 500, 20000",
        "4, 0.05, 100000/s, 100000, 0",
        "2, 0.05, 10000/s, 1000, 0",
        "4, 0.05, 10000/s, 1000, 0",
    })
    void staysWithinTheLimitAtLength(int nodes, double maxOvershoot, String rate, int burst, int callsPerNode)
            throws Exception {
        staysWithin(nodes, maxOvershoot, rate, burst, callsPerNode, LONG_MILLIS);
    }

    private static void staysWithin(
            int nodes, double maxOvershoot, String rate, int burst, int callsPerNode, long millis) throws Exception {
        Limit limit = limit(rate, burst);
        double perNano = (double) limit.rate().permits() / limit.rate().period().toNanos();
        List<RateLimiter> limiters = new ArrayList<>();
        for (int i = 0; i < nodes; i++) {
            RedisBackend backend = REDIS.backend(options(nodes, i));
            limiters.add(backend.limiter(limit, RedisLimitOptions.DEFAULTS.maxOvershoot(maxOvershoot)));
        }
        long before = evals();
        long begin = System.nanoTime();
        List<Meter> meters = callAtOnce(limiters, 0, callsPerNode, millis);
        double seconds = (System.nanoTime() - begin) / 1e9;
        long calls = evals() - before;
        long decisions = meters.stream().mapToLong(meter -> meter.decisions).sum();
        long admitted = meters.stream().mapToLong(meter -> meter.admitted).sum();
        // The tolerated share of a period; all limits here are in permits a second.
        long lease = (long) (1e9 * maxOvershoot);
        double worst = worstExcess(meters.stream().flatMap(Meter::grants).toList(), burst, perNano, lease);
        double allowed = burst + perNano * 1e9 * seconds;
        System.out.printf(
                "METER nodes=%d overshoot=%.2f rate=%s burst=%d wanted=%d/s a node: %,.0f decisions/s, %,.0f redis calls/s, ratio %.1f,"
                        + " admitted %,d of %,.0f, worst window %.1f permits beyond the bound%n",
                nodes,
                maxOvershoot,
                rate,
                burst,
                callsPerNode,
                decisions / seconds,
                calls / seconds,
                (double) decisions / Math.max(1, calls),
                admitted,
                allowed,
                worst);
        assertThat(worst).isLessThanOrEqualTo(0);
        if (maxOvershoot > 0 && callsPerNode > 0) {
            assertThat((double) decisions / calls).isGreaterThan(10);
        }
    }

    @Test
    @Tag("proof")
    void staysWithinTheLimitOfSeveralProcesses() throws Exception {
        long begin = System.nanoTime();
        List<Process> nodes = new ArrayList<>();
        List<Grant> grants = new ArrayList<>();
        try {
            List<BufferedReader> told = new ArrayList<>();
            for (int i = 0; i < PROCESSES; i++) {
                Process node = startNode(i);
                nodes.add(node);
                told.add(node.inputReader());
            }
            for (BufferedReader node : told) {
                assertThat(node.readLine()).isEqualTo("ready");
            }
            for (Process node : nodes) {
                node.getOutputStream().close();
            }
            for (BufferedReader node : told) {
                int before = grants.size();
                node.lines()
                        .map(line -> line.split(" ", -1))
                        .forEach(times -> grants.add(new Grant(Long.parseLong(times[0]), Long.parseLong(times[1]))));
                System.out.printf("METER a process was granted %,d permits%n", grants.size() - before);
            }
            for (Process node : nodes) {
                assertThat(node.waitFor()).isZero();
            }
        } finally {
            nodes.forEach(Process::destroyForcibly);
        }
        long end = System.nanoTime();
        assumeThat(grants)
                .as("processes of this machine have the same monotonic time")
                .allMatch(grant -> grant.asked - begin >= 0 && end - grant.answered >= 0);
        double worst = worstExcess(grants, 100, 1000 / 1e9, 0);
        System.out.printf("METER processes=%d: worst window %.1f permits beyond the bound%n", PROCESSES, worst);
        assertThat(grants).hasSizeGreaterThanOrEqualTo(100);
        assertThat(worst).isLessThanOrEqualTo(0);
    }

    private static Process startNode(int number) throws IOException {
        return new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "-cp",
                        System.getProperty("java.class.path"),
                        Node.class.getName(),
                        Integer.toString(REDIS.server().port()),
                        Integer.toString(number))
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
    }
}
