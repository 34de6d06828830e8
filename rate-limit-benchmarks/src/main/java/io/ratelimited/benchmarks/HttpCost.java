package io.ratelimited.benchmarks;

import com.sun.management.OperatingSystemMXBean;
import com.sun.management.ThreadMXBean;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.IntSupplier;
import java.util.function.ToDoubleFunction;

/**
 * What a request costs a server, over HTTP: {@code HttpCost CONNECTIONS MILLIS WARM_UP TURNS [NAME...]}. One process has an
 * application of each kind, or of those that are named, and a client with CONNECTIONS to each, which send one request after the other, of 10,000 callers; the
 * applications take turns of MILLIS. A line is printed for each:
 *
 * <pre>{@code name processor processor÷floor bytes bytes-above-floor requests-a-second}</pre>
 *
 * <p>Medians of the turns. The processor time of a request, in microseconds, is that of the process without the client's
 * thread, so with the collector and the compiler. The bytes are those that all threads but the client's have allocated for a
 * request. The floor is the application of the same stack without a limit, in the same turn. A server that rejects is asked by
 * callers who have used up what they had.
 */
public final class HttpCost {

    private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    private static final OperatingSystemMXBean PROCESS =
            (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

    private HttpCost() {}

    private record Turn(double processor, double bytes, double perSecond) {}

    @SuppressWarnings("ArrayRecordComponent") // never compared
    private record Running(String name, WebFluxClient client, Turn[] turns) {}

    /** Takes the connections, the milliseconds of a turn, how many turns there are before and within the measurement, and names. */
    public static void main(String[] args) throws IOException {
        int number = Integer.parseInt(args[0]);
        long nanos = Long.parseLong(args[1]) * 1_000_000;
        int warmUp = Integer.parseInt(args[2]);
        int measured = Integer.parseInt(args[3]);
        Map<String, Running> all = new LinkedHashMap<>();
        try (RedisServer redis = RedisServer.start();
                WebFluxServers webFlux = new WebFluxServers(redis.port(), Work.ofMicros(0));
                MvcServers mvc = new MvcServers()) {
            Map<String, Object> onRedis = Map.of(
                    "spring.data.redis.port", redis.port(),
                    "rate-limit.backend", "redis",
                    "rate-limit.redis.expected-nodes", "1",
                    "rate-limit.redis.timeout", "10s",
                    "rate-limit.redis.on-failure", "deny");
            Map<String, Object> inMemory = Map.of("rate-limit.backend", "memory");
            Map<String, Object> rejecting =
                    Map.of("rate-limit.backend", "memory", "rate-limit.limits.people.rate", "1/h", "admitted", 1);
            Map<String, IntSupplier> ports = new LinkedHashMap<>();
            ports.put("mvc-floor", () -> mvc.start(MvcServers.Kind.floor, Map.of()));
            ports.put("mvc-memory", () -> mvc.start(MvcServers.Kind.ours, inMemory));
            ports.put("mvc-memory-resilience4j", () -> mvc.start(MvcServers.Kind.resilience4j, Map.of()));
            ports.put("mvc-memory-bucket4j", () -> mvc.start(MvcServers.Kind.bucket4j, Map.of()));
            ports.put("mvc-rejected", () -> mvc.start(MvcServers.Kind.ours, rejecting));
            ports.put("mvc-rejected-resilience4j", () -> mvc.start(MvcServers.Kind.resilience4j, rejecting));
            ports.put("mvc-rejected-bucket4j", () -> mvc.start(MvcServers.Kind.bucket4j, rejecting));
            ports.put("mvc-redis", () -> mvc.start(MvcServers.Kind.ours, onRedis));
            ports.put("mvc-redis-bucket4j", () -> mvc.start(MvcServers.Kind.bucket4jOnRedis, onRedis));
            ports.put("webflux-floor", () -> webFlux.start(WebFluxTurns.Kind.floor, Map.of()));
            ports.put("webflux-memory", () -> webFlux.start(WebFluxTurns.Kind.annotation, inMemory));
            ports.put("webflux-rejected", () -> webFlux.start(WebFluxTurns.Kind.annotation, rejecting));
            ports.put("webflux-redis", () -> webFlux.start(WebFluxTurns.Kind.annotation, Map.of()));
            ports.put("webflux-redis-gateway", () -> webFlux.start(WebFluxTurns.Kind.gateway, Map.of()));
            if (args.length > 4) {
                ports.keySet().retainAll(Arrays.asList(args).subList(4, args.length));
            }
            for (Map.Entry<String, IntSupplier> port : ports.entrySet()) {
                String name = port.getKey();
                WebFluxClient client = new WebFluxClient(port.getValue().getAsInt(), number, name.contains("rejected"));
                all.put(name, new Running(name, client, new Turn[measured]));
            }
            List<Running> order = new ArrayList<>(all.values());
            long[] latencies = new long[1];
            for (int i = 0; i < warmUp + measured; i++) {
                for (int j = 0; j < order.size(); j++) {
                    Running one = order.get((i + j) % order.size());
                    Turn turn = turn(one.client, nanos, latencies);
                    if (i >= warmUp) {
                        one.turns[i - warmUp] = turn;
                    }
                }
            }
            for (Running one : order) {
                check(one);
                one.client.close();
            }
        }
        all.values().forEach(one -> print(one, all.getOrDefault(one.name.replaceFirst("-.*", "-floor"), one).turns));
        System.exit(0);
    }

    /** Whether the limit has been asked, and whether it rejects. */
    private static void check(Running one) throws IOException {
        String answer = one.client.answer();
        boolean rejected = answer.startsWith("HTTP/1.1 429");
        if (rejected != one.name.contains("rejected")) {
            throw new IllegalStateException("not what " + one.name + " answers: " + answer);
        }
    }

    private static Turn turn(WebFluxClient client, long nanos, long[] latencies) throws IOException {
        long bytes = bytes();
        long processor = processor();
        long begun = System.nanoTime();
        int count = client.send(nanos, latencies);
        double took = System.nanoTime() - begun;
        processor = processor() - processor;
        bytes = bytes() - bytes;
        return new Turn(processor / 1e3 / count, (double) bytes / count, count * 1e9 / took);
    }

    /** Of all threads but this one, which is the client's. */
    private static long bytes() {
        return Arrays.stream(THREADS.getThreadAllocatedBytes(THREADS.getAllThreadIds()))
                        .filter(allocated -> allocated > 0)
                        .sum()
                - THREADS.getThreadAllocatedBytes(Thread.currentThread().getId());
    }

    private static long processor() {
        return PROCESS.getProcessCpuTime() - THREADS.getCurrentThreadCpuTime();
    }

    private static void print(Running one, Turn[] floor) {
        double[] ratios = new double[one.turns.length];
        Arrays.setAll(ratios, i -> one.turns[i].processor / floor[i].processor);
        double bytes = middle(one.turns, Turn::bytes);
        System.out.printf(
                Locale.ROOT,
                "%s %.1f %.2f %.0f %.0f %.0f%n",
                one.name,
                middle(one.turns, Turn::processor),
                middle(ratios),
                bytes,
                bytes - middle(floor, Turn::bytes),
                middle(one.turns, Turn::perSecond));
    }

    private static double middle(Turn[] turns, ToDoubleFunction<Turn> figure) {
        return middle(Arrays.stream(turns).mapToDouble(figure).toArray());
    }

    private static double middle(double[] values) {
        Arrays.sort(values);
        return values[values.length / 2];
    }
}
