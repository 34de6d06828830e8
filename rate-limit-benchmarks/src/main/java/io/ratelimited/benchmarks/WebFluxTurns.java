package io.ratelimited.benchmarks;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.ToDoubleFunction;

/**
 * An endpoint under a limit on Redis, beside one without, one behind a script that only returns, and one behind Spring Cloud
 * Gateway's filter: {@code WebFluxTurns CONNECTIONS MILLIS WARM_UP TURNS [MICROS]}. The endpoint needs MICROS of processor time,
 * none without. One process has an application of each kind, and they take turns of MILLIS, as in {@link
 * RedisTurns}; each has CONNECTIONS, which send one request after the other. A line is printed for each:
 *
 * <pre>{@code connections kind requests-a-second p50 p99 p50÷floor p99÷floor p50÷gateway p99÷gateway processor}</pre>
 *
 * <p>Medians of the turns; p50 and p99 are in microseconds, and the ratios are those of the same turn. The last is the
 * processor time of a request in microseconds, the client's part included. Any answer but 200 ends the run without a line.
 */
public final class WebFluxTurns {

    /** Positions of the figures among the words of a line. */
    static final int P50 = 3;

    static final int TO_FLOOR = 5;
    static final int TO_GATEWAY = 7;

    private WebFluxTurns() {}

    /** The applications, the floor first and Gateway last. */
    enum Kind {
        /** No limit. */
        floor(""),
        /** An annotated handler method. */
        annotation("RateLimit: "),
        /** A limit by route, from properties. */
        route("RateLimit: "),
        /** A script that only returns, asked by Lettuce alone; the request goes on on its own event loop. */
        script("X-RateLimit-Remaining: "),
        /** Spring Cloud Gateway's filter. */
        gateway("X-RateLimit-Remaining: ");

        private final String field;

        Kind(String field) {
            this.field = field;
        }
    }

    /** An application with its connections, and what its turns have shown. */
    @SuppressWarnings("ArrayRecordComponent") // never compared
    private record Running(Kind kind, WebFluxClient client, Turn[] turns) {}

    /** What one turn has shown. */
    private record Turn(double perSecond, double p50, double p99, double processor) {}

    /** Takes the connections, the milliseconds of a turn, and how many turns there are before and within the measurement. */
    public static void main(String[] args) throws IOException {
        int number = Integer.parseInt(args[0]);
        long nanos = Long.parseLong(args[1]) * 1_000_000;
        int warmUp = Integer.parseInt(args[2]);
        int measured = Integer.parseInt(args[3]);
        Work work = Work.ofMicros(args.length > 4 ? Integer.parseInt(args[4]) : 0);
        List<Running> all = new ArrayList<>();
        try (RedisServer redis = RedisServer.start();
                WebFluxServers servers = new WebFluxServers(redis.port(), work)) {
            for (Kind kind : Kind.values()) {
                WebFluxClient client = new WebFluxClient(servers.start(kind, Map.of()), number, false);
                check(kind, client.answer());
                all.add(new Running(kind, client, new Turn[measured]));
            }
            long[] latencies = new long[1 << 18];
            for (int i = 0; i < warmUp + measured; i++) {
                for (int j = 0; j < all.size(); j++) {
                    // Each begins in its turn, so that none always has the same place.
                    Running one = all.get((i + j) % all.size());
                    Turn turn = turn(one.client, nanos, latencies);
                    if (i >= warmUp) {
                        one.turns[i - warmUp] = turn;
                    }
                }
            }
            for (Running one : all) {
                one.client.close();
            }
        }
        Turn[] floor = all.get(0).turns;
        Turn[] gateway = all.get(all.size() - 1).turns;
        all.forEach(one -> print(number, one, floor, gateway));
        System.exit(0);
    }

    /** Whether the limit has been asked, which its header fields show. */
    private static void check(Kind kind, String answer) {
        if (kind == Kind.floor ? answer.contains("RateLimit") : !answer.contains("\n" + kind.field)) {
            throw new IllegalStateException("not what " + kind + " answers: " + answer);
        }
    }

    private static Turn turn(WebFluxClient client, long nanos, long[] latencies) throws IOException {
        long processor = processorNanos();
        long begun = System.nanoTime();
        int count = client.send(nanos, latencies);
        double took = System.nanoTime() - begun;
        processor = processorNanos() - processor;
        int kept = Math.min(count, latencies.length);
        Arrays.sort(latencies, 0, kept);
        return new Turn(
                count * 1e9 / took,
                latencies[kept / 2] / 1e3,
                latencies[(int) (kept * 0.99)] / 1e3,
                processor / 1e3 / count);
    }

    private static long processorNanos() {
        return ProcessHandle.current().info().totalCpuDuration().orElseThrow().toNanos();
    }

    private static void print(int number, Running one, Turn[] floor, Turn[] gateway) {
        System.out.printf(
                Locale.ROOT,
                "%d %s %.0f %.0f %.0f %.3f %.3f %.3f %.3f %.1f%n",
                number,
                one.kind,
                middle(one.turns, Turn::perSecond),
                middle(one.turns, Turn::p50),
                middle(one.turns, Turn::p99),
                ratio(one.turns, floor, Turn::p50),
                ratio(one.turns, floor, Turn::p99),
                ratio(one.turns, gateway, Turn::p50),
                ratio(one.turns, gateway, Turn::p99),
                middle(one.turns, Turn::processor));
    }

    private static double middle(Turn[] turns, ToDoubleFunction<Turn> figure) {
        return middle(Arrays.stream(turns).mapToDouble(figure).toArray());
    }

    private static double ratio(Turn[] turns, Turn[] others, ToDoubleFunction<Turn> figure) {
        double[] ratios = new double[turns.length];
        Arrays.setAll(ratios, i -> figure.applyAsDouble(turns[i]) / figure.applyAsDouble(others[i]));
        return middle(ratios);
    }

    private static double middle(double[] values) {
        Arrays.sort(values);
        return values[values.length / 2];
    }
}
