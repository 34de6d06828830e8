package io.ratelimited.benchmarks;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Decisions of {@link RedisBenchmark} that take turns in one process, on one server: {@code RedisTurns CALLERS NUMBER KEYS
 * PERMITS MILLIS WARM_UP TURNS [NAME...]}. Whatever else the machine does concerns all of them, so the ratio to the floor of the
 * same turn holds when figures of different minutes do not.
 *
 * <p>CALLERS is {@code threads}, each of which waits for its reply, or {@code async}: one thread that keeps NUMBER calls pending.
 * MILLIS is the length of a turn. NAMEs are those of the benchmarks, all of them if none is given. A line is printed for each:
 *
 * <pre>{@code callers number keys permits name calls-a-second ratio p50 p99 server client}</pre>
 *
 * <p>Medians of the turns; the ratio is that of calls a second to the floor's of the same turn; p50 and p99 are in
 * microseconds, and so is the processor time of a call that the server and this process use.
 */
public final class RedisTurns {

    /** Positions of the figures among the words of a line. */
    static final int PER_SECOND = 5;

    static final int RATIO = 6;
    static final int P50 = 7;
    static final int P99 = 8;
    static final int SERVER = 9;
    static final int CLIENT = 10;

    private static final int MOST_LATENCIES = 1 << 18;

    private final RedisBenchmark redis;
    private final int number;
    private final long nanos;
    /** Why a call has failed: nothing is printed then. */
    private volatile @Nullable Throwable failed;

    private RedisTurns(RedisBenchmark redis, int number, long nanos) {
        this.redis = redis;
        this.number = number;
        this.nanos = nanos;
    }

    /** One call, which blocks. */
    private interface Blocking {

        Object call();
    }

    /** Calls during one turn: how many there were, and behind it how long they took. */
    private interface Calls {

        long[] call() throws InterruptedException;
    }

    /** What one turn has shown. */
    private record Turn(double perSecond, double p50, double p99, double server, double client) {}

    /** Takes the callers, their number, keys, permits, the milliseconds of a turn, and how many turns there are before and within the measurement. */
    public static void main(String[] args) throws IOException, InterruptedException {
        RedisBenchmark redis = new RedisBenchmark();
        redis.keys = Integer.parseInt(args[2]);
        redis.permits = args[3];
        redis.setUp();
        boolean asynchronous = args[0].equals("async");
        RedisTurns turns = new RedisTurns(redis, Integer.parseInt(args[1]), Long.parseLong(args[4]) * 1_000_000);
        int warmUp = Integer.parseInt(args[5]);
        int measured = Integer.parseInt(args[6]);
        Map<String, Calls> all = asynchronous ? turns.asynchronous() : turns.blocking();
        if (args.length > 7) {
            all.keySet().retainAll(Arrays.asList(args).subList(7, args.length));
        }
        Map<String, List<Turn>> results = new LinkedHashMap<>();
        for (int i = 0; i < warmUp + measured; i++) {
            for (Map.Entry<String, Calls> one : all.entrySet()) {
                Turn turn = turns.turn(one.getValue());
                if (i >= warmUp) {
                    results.computeIfAbsent(one.getKey(), unknown -> new ArrayList<>())
                            .add(turn);
                }
            }
        }
        List<Turn> floor = results.values().iterator().next();
        String row = String.join(" ", Arrays.asList(args).subList(0, 4));
        results.forEach((name, own) -> print(row, name, own, floor));
        redis.tearDown();
        System.exit(0);
    }

    private static void print(String row, String name, List<Turn> turns, List<Turn> floor) {
        double[] ratios = new double[turns.size()];
        for (int i = 0; i < ratios.length; i++) {
            ratios[i] = turns.get(i).perSecond / floor.get(i).perSecond;
        }
        System.out.printf(
                Locale.ROOT,
                "%s %s %.0f %.3f %.0f %.0f %.1f %.1f%n",
                row,
                name,
                middle(turns.stream().mapToDouble(Turn::perSecond).toArray()),
                middle(ratios),
                middle(turns.stream().mapToDouble(Turn::p50).toArray()),
                middle(turns.stream().mapToDouble(Turn::p99).toArray()),
                middle(turns.stream().mapToDouble(Turn::server).toArray()),
                middle(turns.stream().mapToDouble(Turn::client).toArray()));
    }

    private static double middle(double[] values) {
        Arrays.sort(values);
        return values[values.length / 2];
    }

    /** In the order of their turns, the floor first. */
    private Map<String, Calls> blocking() {
        Map<String, Calls> all = new LinkedHashMap<>();
        all.put("floorScript", () -> callByThreads(redis::floorScript));
        all.put("tokenBucket", () -> callByThreads(redis::tokenBucket));
        all.put("twoLimits", () -> callByThreads(redis::twoLimits));
        all.put("peerGateway", () -> callByThreads(redis::peerGateway));
        all.put("peerRedisson", () -> callByThreads(redis::peerRedisson));
        all.put("peerBucket4j", () -> callByThreads(redis::peerBucket4j));
        return all;
    }

    /** In the order of their turns, the floor first. */
    private Map<String, Calls> asynchronous() {
        Map<String, Calls> all = new LinkedHashMap<>();
        all.put("floorScriptAsync", () -> callAsynchronously(redis::floorScriptStage));
        all.put("tokenBucketAsync", () -> callAsynchronously(redis::tokenBucketStage));
        all.put("tokenBucketReactiveAsync", () -> callAsynchronously(redis::tokenBucketReactiveStage));
        all.put("peerGatewayAsync", () -> callAsynchronously(redis::peerGatewayStage));
        all.put("peerRedissonAsync", () -> callAsynchronously(redis::peerRedissonStage));
        all.put("peerBucket4jAsync", () -> callAsynchronously(redis::peerBucket4jStage));
        return all;
    }

    private Turn turn(Calls calling) throws InterruptedException {
        long server = redis.serverNanos();
        long client = clientNanos();
        long begun = System.nanoTime();
        long[] latencies = calling.call();
        if (failed != null) {
            throw new IllegalStateException(failed);
        }
        double took = System.nanoTime() - begun;
        client = clientNanos() - client;
        server = redis.serverNanos() - server;
        double calls = latencies[0];
        int kept = (int) Math.min(MOST_LATENCIES, latencies[0]);
        Arrays.sort(latencies, 1, 1 + kept);
        return new Turn(
                calls * 1e9 / took,
                latencies[1 + kept / 2] / 1e3,
                latencies[1 + (int) (kept * 0.99)] / 1e3,
                server / 1e3 / calls,
                client / 1e3 / calls);
    }

    private static long clientNanos() {
        return ProcessHandle.current().info().totalCpuDuration().orElseThrow().toNanos();
    }

    private long[] callAsynchronously(Supplier<CompletionStage<?>> call) throws InterruptedException {
        long[] latencies = new long[1 + MOST_LATENCIES];
        Semaphore free = new Semaphore(number);
        AtomicInteger count = new AtomicInteger();
        long end = System.nanoTime() + nanos;
        long last;
        do {
            free.acquire();
            long begun = System.nanoTime();
            last = begun;
            call.get().whenComplete((result, failure) -> {
                if (failure != null) {
                    failed = failure;
                }
                latencies[1 + (count.getAndIncrement() & MOST_LATENCIES - 1)] = System.nanoTime() - begun;
                free.release();
            });
        } while (last - end < 0);
        free.acquire(number);
        latencies[0] = count.get();
        return latencies;
    }

    private void callOnce(Blocking call) {
        try {
            call.call();
        } catch (RuntimeException ex) {
            failed = ex;
        }
    }

    private long[] callByThreads(Blocking call) throws InterruptedException {
        long[] latencies = new long[1 + MOST_LATENCIES];
        AtomicInteger count = new AtomicInteger();
        long end = System.nanoTime() + nanos;
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < number; i++) {
            Thread thread = new Thread(() -> {
                long begun = System.nanoTime();
                do {
                    callOnce(call);
                    long ended = System.nanoTime();
                    latencies[1 + (count.getAndIncrement() & MOST_LATENCIES - 1)] = ended - begun;
                    begun = ended;
                } while (begun - end < 0);
            });
            thread.start();
            threads.add(thread);
        }
        for (Thread thread : threads) {
            thread.join();
        }
        latencies[0] = count.get();
        return latencies;
    }
}
