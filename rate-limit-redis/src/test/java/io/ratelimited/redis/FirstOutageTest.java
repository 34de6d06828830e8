package io.ratelimited.redis;

import static io.ratelimited.redis.RedisProcess.until;
import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Decision.Source;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import java.io.BufferedReader;
import java.io.OutputStream;
import java.lang.management.ClassLoadingMXBean;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/**
 * The first outage that a process sees: nearly all that it needs then has been loaded before. That is counted, since the time
 * that it takes says more about the machine.
 */
@Tag("once")
@Tag("slow")
class FirstOutageTest {

    /** About sixty, most of them made for lambdas; a library that is first used then would bring hundreds. */
    private static final int MOST_CLASSES = 150;

    private static final Duration PATIENCE = Duration.ofSeconds(30);

    @RegisterExtension
    static final RedisServers REDIS = RedisServers.standalone();

    /** A process: says when it is connected, asks when it is told to, and writes how many classes were loaded for it. */
    static final class Node {

        private Node() {}

        public static void main(String[] args) throws Exception {
            RedisClientSettings client = RedisServers.settings(Integer.parseInt(args[0]));
            try (RedisBackend backend = RedisBackend.of(client, FarNode.PATIENT)) {
                RateLimiter limiter = backend.limiter(
                        Limit.of("first", Algorithm.TOKEN_BUCKET).rate("1000/s").build(), RedisLimitOptions.DEFAULTS);
                until(() -> backend.health().state() == RedisHealth.State.UP, "connected", Duration.ofSeconds(60));
                call(limiter);
                until(() -> limiter.reserve("k", 1, 0).decision().source() == Source.REDIS, "decided", PATIENCE);
                System.out.println("ready");
                System.in.read();
                ClassLoadingMXBean classes = ManagementFactory.getClassLoadingMXBean();
                long before = classes.getTotalLoadedClassCount();
                Set<Source> sources = call(limiter);
                System.out.println(sources + " " + (classes.getTotalLoadedClassCount() - before));
                System.in.read();
            }
        }

        private static Set<Source> call(RateLimiter limiter) {
            List<CompletableFuture<Reservation>> calls = new ArrayList<>();
            for (int i = 0; i < 20; i++) {
                calls.add(limiter.reserveAsync("k" + i, 1, 0).toCompletableFuture());
            }
            return calls.stream().map(call -> call.join().decision().source()).collect(Collectors.toSet());
        }
    }

    @Test
    void callersWaitForFewClasses() throws Exception {
        Process node = new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "-XX:TieredStopAtLevel=1",
                        "-cp",
                        System.getProperty("java.class.path"),
                        Node.class.getName(),
                        Integer.toString(REDIS.server().port()))
                .redirectError(ProcessBuilder.Redirect.DISCARD)
                .start();
        try (BufferedReader written = node.inputReader();
                OutputStream told = node.getOutputStream()) {
            assertThat(written.readLine()).isEqualTo("ready");
            REDIS.server().freeze();
            told.write('\n');
            told.flush();
            String[] outage = written.readLine().split(" ", -1);
            assertThat(outage[0]).isEqualTo("[FALLBACK]");
            // None if a busy machine has been an outage before.
            assertThat(Integer.parseInt(outage[1])).isLessThanOrEqualTo(MOST_CLASSES);
        } finally {
            REDIS.server().thaw();
            node.destroyForcibly().waitFor();
        }
    }
}
