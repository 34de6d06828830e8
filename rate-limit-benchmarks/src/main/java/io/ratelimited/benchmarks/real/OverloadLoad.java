package io.ratelimited.benchmarks.real;

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.util.Locale;
import java.util.Random;
import java.util.concurrent.Phaser;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.LockSupport;

/**
 * Sends requests at random times of a stated mean rate, whatever the answers are, and gives each up after a deadline. Takes the
 * port, and phases as {@code seconds:rate}. Prints a line for each phase: a second, requests offered, answered in time, refused
 * and not answered; the median and the 99th percentile of the times in milliseconds; and the answers in time of each second.
 * Times count from when a request was due.
 */
public final class OverloadLoad {

    /** The time after which nobody waits for an answer any more. */
    static final int DEADLINE_MILLIS = 500;

    private final HttpClient client =
            HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    private final HttpRequest request;

    private OverloadLoad(int port) {
        this.request = HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + "/report"))
                .timeout(Duration.ofMillis(DEADLINE_MILLIS))
                .build();
    }

    /** Runs the phases one after the other. */
    public static void main(String[] args) {
        OverloadLoad load = new OverloadLoad(Integer.parseInt(args[0]));
        Random random = new Random(1);
        for (int i = 1; i < args.length; i++) {
            String[] phase = args[i].split(":", 2);
            System.out.println(load.run(Integer.parseInt(phase[0]), Double.parseDouble(phase[1]), random));
        }
        // The client has threads that would keep the process.
        System.exit(0);
    }

    private String run(int seconds, double rate, Random random) {
        Answers answers = new Answers(seconds);
        Phaser open = new Phaser(1);
        long begun = System.nanoTime();
        long due = begun;
        long end = begun + Duration.ofSeconds(seconds).toNanos();
        while (due - end < 0) {
            for (long left = due - System.nanoTime(); left > 0; left = due - System.nanoTime()) {
                LockSupport.parkNanos(left);
            }
            send(due, (int) ((due - begun) / 1_000_000_000), answers, open);
            due += (long) (-Math.log(1 - random.nextDouble()) / rate * 1e9);
        }
        open.arriveAndAwaitAdvance();
        return answers.line();
    }

    private void send(long due, int second, Answers answers, Phaser open) {
        open.register();
        client.sendAsync(request, BodyHandlers.discarding()).whenComplete((response, failure) -> {
            int millis = (int) ((System.nanoTime() - due) / 1_000_000);
            answers.add(response == null ? 0 : response.statusCode(), millis, second);
            open.arriveAndDeregister();
        });
    }

    private static final class Answers {

        private final LongAdder offered = new LongAdder();
        private final LongAdder inTime = new LongAdder();
        private final LongAdder refused = new LongAdder();
        /** Answers in time by their milliseconds. */
        private final AtomicIntegerArray times = new AtomicIntegerArray(DEADLINE_MILLIS + 1);
        /** Answers in time by the second in which they were due. */
        private final AtomicIntegerArray seconds;

        private Answers(int seconds) {
            this.seconds = new AtomicIntegerArray(seconds);
        }

        private void add(int status, int millis, int second) {
            offered.increment();
            if (status == 200 && millis <= DEADLINE_MILLIS) {
                inTime.increment();
                times.incrementAndGet(millis);
                seconds.incrementAndGet(second);
            } else if (status == 503 || status == 429) {
                refused.increment();
            }
        }

        private int quantile(double part) {
            long rank = (long) Math.ceil(part * inTime.sum());
            long seen = 0;
            for (int millis = 0; millis < times.length(); millis++) {
                seen += times.get(millis);
                if (rank > 0 && seen >= rank) {
                    return millis;
                }
            }
            return 0;
        }

        private String line() {
            double length = seconds.length();
            long none = offered.sum() - inTime.sum() - refused.sum();
            StringBuilder line = new StringBuilder(String.format(
                    Locale.ROOT,
                    "%.0f %.0f %.0f %.0f %d %d",
                    offered.sum() / length,
                    inTime.sum() / length,
                    refused.sum() / length,
                    none / length,
                    quantile(0.5),
                    quantile(0.99)));
            for (int second = 0; second < seconds.length(); second++) {
                line.append(' ').append(seconds.get(second));
            }
            return line.toString();
        }
    }
}
