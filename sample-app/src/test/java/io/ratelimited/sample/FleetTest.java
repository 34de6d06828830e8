package io.ratelimited.sample;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.ratelimited.redis.RedisProcess;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Three instances of the sample, each a process of its own, on one Redis and under load, while operators change a limit. */
@Tag("proof")
class FleetTest {

    private static final Duration PATIENCE = Duration.ofMinutes(2);
    private static final String LIMIT = "demo-fixed-window";

    /** Times for a reply of Redis: short enough to wait for, and so long that no machine is that slow. */
    private static final String OUTAGE = "5s";

    private static final String NO_OUTAGE = "20s";

    private static final Pattern PORT = Pattern.compile("Tomcat started on port (\\d+)");
    private static final Pattern RATE = Pattern.compile("\"rate\":\"(\\d+)/10s\"");
    private static final long WINDOW_MILLIS = 10_000;

    private final RedisProcess redis = RedisProcess.start();
    private final List<Instance> instances = new ArrayList<>();

    /** One instance. */
    private static final class Instance {

        private final Process process;
        private final CompletableFuture<Integer> port = new CompletableFuture<>();
        private Http http;

        private Instance(int redisPort, String redisTimeout) throws IOException {
            process = new ProcessBuilder(
                            Path.of(System.getProperty("java.home"), "bin", "java")
                                    .toString(),
                            "-Xmx256m",
                            "-XX:TieredStopAtLevel=1",
                            "-cp",
                            System.getProperty("java.class.path"),
                            SampleApplication.class.getName(),
                            "--spring.profiles.active=redis",
                            "--server.port=0",
                            "--rate-limit.redis.url=redis://127.0.0.1:" + redisPort,
                            "--rate-limit.redis.timeout=" + redisTimeout,
                            "--rate-limit.redis.expected-nodes=3",
                            "--rate-limit.limits." + LIMIT + ".on-failure=deny")
                    .redirectErrorStream(true)
                    .start();
            Runtime.getRuntime().addShutdownHook(new Thread(process::destroyForcibly));
            Thread output = new Thread(this::drain);
            output.setDaemon(true);
            output.start();
        }

        /** Each chooses a port when it starts: one that was free before may be taken by then. */
        private void awaitStart() {
            http = new Http(port.join());
            await().atMost(PATIENCE).until(this::isUp);
        }

        /** To the end, so that the process is not held up. */
        private void drain() {
            try (BufferedReader lines = process.inputReader()) {
                for (String line; (line = lines.readLine()) != null; ) {
                    Matcher started = PORT.matcher(line);
                    if (started.find()) {
                        port.complete(Integer.valueOf(started.group(1)));
                    }
                }
            } catch (IOException ex) {
                // The process has ended.
            }
            port.completeExceptionally(new AssertionError("the instance has ended"));
        }

        private int status(String path) {
            try {
                return http.get(path).statusCode();
            } catch (UncheckedIOException ex) {
                return 0;
            }
        }

        private boolean isUp() {
            try {
                return http.get("/actuator/health").body().contains("\"UP\"")
                        && http.get("/actuator/ratelimits/" + LIMIT).body().contains("\"source\":\"redis\"");
            } catch (UncheckedIOException ex) {
                return false;
            }
        }

        private int permits() {
            Matcher rate =
                    RATE.matcher(http.get("/actuator/ratelimits/" + LIMIT).body());
            assertThat(rate.find()).isTrue();
            return Integer.parseInt(rate.group(1));
        }

        private void signal(String name) throws Exception {
            assertThat(new ProcessBuilder("kill", "-" + name, Long.toString(process.pid()))
                            .start()
                            .waitFor())
                    .isZero();
        }
    }

    private void start(String redisTimeout) throws IOException {
        for (int i = 0; i < 3; i++) {
            instances.add(new Instance(redis.port(), redisTimeout));
        }
        instances.forEach(Instance::awaitStart);
    }

    @AfterEach
    void stop() throws InterruptedException {
        stopInstances();
        redis.close();
    }

    private void stopInstances() throws InterruptedException {
        for (Instance each : instances) {
            each.process.destroyForcibly();
            each.process.waitFor();
        }
        instances.clear();
    }

    /** Calls of one caller, as many as are answered; in which window each admitted one may have been counted. */
    private final class Load {

        private final AtomicBoolean over = new AtomicBoolean();
        private final ConcurrentLinkedQueue<long[]> admitted = new ConcurrentLinkedQueue<>();
        private final AtomicInteger calls = new AtomicInteger();
        private final List<Thread> threads = new ArrayList<>();

        private Load() {
            for (Instance each : instances) {
                Thread thread = new Thread(() -> {
                    while (!over.get()) {
                        long asked = System.currentTimeMillis();
                        int status = each.status("/demo/fixed-window?user=load");
                        calls.incrementAndGet();
                        if (status == 200) {
                            admitted.add(new long[] {asked, System.currentTimeMillis()});
                        }
                    }
                });
                thread.setDaemon(true);
                threads.add(thread);
                thread.start();
            }
        }

        /** Admitted calls of the fullest window, of those that were surely counted in one. */
        private int fullest() {
            Map<Long, Integer> windows = new ConcurrentHashMap<>();
            admitted.stream()
                    .filter(call -> call[0] / WINDOW_MILLIS == call[1] / WINDOW_MILLIS)
                    .forEach(call -> windows.merge(call[0] / WINDOW_MILLIS, 1, Integer::sum));
            return windows.values().stream().mapToInt(Integer::intValue).max().orElse(0);
        }

        private void end() throws InterruptedException {
            over.set(true);
            for (Thread thread : threads) {
                thread.join();
            }
        }
    }

    /** How long changes took: a busy machine may hold up some of them. */
    private final List<Long> millisOfChanges = new ArrayList<>();

    /** Changes the limit through an instance, and shows how long all needed to use it. */
    private void change(Instance through, int permits, String when) {
        long begin = System.nanoTime();
        String answer = through.http
                .post("/actuator/ratelimits/" + LIMIT, "{\"rate\": \"" + permits + "/10s\"}")
                .body();
        assertThat(answer).contains("\"scope\":\"fleet\"", "\"rate\":\"" + permits + "/10s\"");
        allHave(permits, begin, when);
    }

    private void allHave(int permits, long begin, String when) {
        for (Instance each : instances) {
            await().pollInterval(Duration.ofMillis(20)).atMost(PATIENCE).until(() -> each.permits() == permits);
        }
        long millis = (System.nanoTime() - begin) / 1_000_000;
        System.out.println("FLEET " + when + ": all instances use the change after " + millis + " ms");
        millisOfChanges.add(millis);
    }

    private void requireThatAllUseAChangeInTime() {
        assertThat(Collections.min(millisOfChanges)).isLessThan(2_000);
    }

    @Test
    void aChangeIsUsedByAllAndStaysOverEverything() throws Exception {
        start(OUTAGE);
        Instance one = instances.get(0);
        Instance two = instances.get(1);
        Instance three = instances.get(2);
        Load load = new Load();
        change(one, 25, "all is well");
        change(three, 40, "through another");

        redis.freeze();
        assertThat(one.http
                        .post("/actuator/ratelimits/" + LIMIT, "{\"rate\": \"99/10s\"}")
                        .statusCode())
                .isEqualTo(503);
        assertThat(one.permits()).isEqualTo(40);
        redis.thaw();
        for (Instance each : instances) {
            await().atMost(PATIENCE).until(each::isUp);
        }
        // Whoever read no answer does not know whether the change was made: it is made anywhere or everywhere.
        change(two, 30, "after Redis was away");

        two.signal("STOP");
        one.http.post("/actuator/ratelimits/" + LIMIT, "{\"rate\": \"35/10s\"}");
        await().atMost(PATIENCE).until(() -> three.permits() == 35);
        long begin = System.nanoTime();
        two.signal("CONT");
        allHave(35, begin, "after an instance was frozen");

        load.end();
        System.out.println("FLEET " + load.calls + " calls, the fullest window has " + load.fullest());
        assertThat(load.fullest()).isBetween(1, 99);

        stopInstances();
        start(OUTAGE);
        for (Instance each : instances) {
            assertThat(each.permits()).isEqualTo(35);
        }
        begin = System.nanoTime();
        instances.get(2).http.post("/actuator/ratelimits/" + LIMIT, "{\"revert\": true}");
        allHave(10, begin, "reverted");
        requireThatAllUseAChangeInTime();
    }

    @Test
    void noWindowHasMoreThanTheLargerLimit() throws Exception {
        start(NO_OUTAGE);
        Load load = new Load();
        for (int i = 0; i < 12; i++) {
            change(instances.get(i % 3), i % 2 == 0 ? 30 : 20, "change " + i);
        }
        await().atMost(PATIENCE).until(() -> load.fullest() >= 20);
        load.end();
        System.out.println("FLEET " + load.calls + " calls, the fullest window has " + load.fullest() + " of 30");
        assertThat(load.fullest()).isLessThanOrEqualTo(30);
        requireThatAllUseAChangeInTime();
    }

    /** Through HTTP: who is greedy is held to a smaller budget everywhere, and a larger one is had everywhere. */
    @Test
    void aBudgetOfACallerIsItsOwnEverywhere() throws Exception {
        start(NO_OUTAGE);
        Instance one = instances.get(0);
        assertThat(one.http
                        .post("/actuator/ratelimits/" + LIMIT + "/greedy", "{\"rate\": \"2/d\", \"for\": \"24h\"}")
                        .body())
                .contains("\"scope\":\"fleet\"");
        one.http.post("/actuator/ratelimits/" + LIMIT + "/large", "{\"rate\": \"50/d\"}");
        long begin = System.nanoTime();
        for (Instance each : instances) {
            await().pollInterval(Duration.ofMillis(20))
                    .atMost(PATIENCE)
                    .until(() -> each.http
                            .get("/actuator/ratelimits/" + LIMIT)
                            .body()
                            .contains("\"budgets\":2"));
        }
        System.out.println(
                "FLEET budgets: all instances use them after " + (System.nanoTime() - begin) / 1_000_000 + " ms");
        int greedy = 0;
        int large = 0;
        for (int i = 0; i < 20; i++) {
            for (Instance each : instances) {
                greedy += each.status("/demo/fixed-window?user=greedy") == 200 ? 1 : 0;
                large += each.status("/demo/fixed-window?user=large") == 200 ? 1 : 0;
            }
        }
        assertThat(greedy).isEqualTo(2);
        assertThat(large).isEqualTo(50);
    }
}
