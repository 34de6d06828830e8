package io.ratelimited.redis;

import static io.ratelimited.redis.RedisProcess.until;
import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Decision.Source;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Outages in a row leave nothing behind: threads, connections, heap and calls in flight are as before the first. */
@Tag("once")
@Tag("slow")
class FiftyOutagesTest {

    private static final int PLACES = 8;
    private static final Limit IN_FLIGHT =
            Limit.of("places", Algorithm.CONCURRENCY).maxConcurrent(PLACES).build();

    @RegisterExtension
    static final RedisServers REDIS = RedisServers.standalone();

    private final FarNode far = FarNode.of(REDIS, FarNode.PATIENT);
    private final RateLimiter places = far.limiter(IN_FLIGHT);
    private final RateLimiter bucket = far.limiter(
            Limit.of("bucket", Algorithm.TOKEN_BUCKET).rate("1000/s").build());

    @Test
    void fiveOutagesLeaveNothingBehind() {
        leaveNothingBehind(5);
    }

    @Test
    @Tag("proof")
    void fiftyOutagesLeaveNothingBehind() {
        leaveNothingBehind(50);
    }

    private void leaveNothingBehind(int outages) {
        outage(0);
        outage(1);
        int threads = Thread.activeCount();
        long connections = connections();
        long heap = heap();
        for (int i = 0; i < outages; i++) {
            outage(i);
        }
        until(() -> free() == PLACES, "all places are free", FarNode.PATIENCE);
        until(() -> connections() <= connections, "connections are closed", Duration.ofSeconds(10));
        until(() -> Thread.activeCount() <= threads + 2, "threads have ended", Duration.ofSeconds(10));
        long grown = heap() - heap;
        System.out.printf("FIFTY: the heap grew by %,d bytes in %d outages%n", grown, outages);
        assertThat(grown).isLessThan(4_000_000);
    }

    /** Silence or a cut by turns, with calls that begin before it and end in it, and others that are cancelled. */
    private void outage(int number) {
        List<Reservation> running = new ArrayList<>();
        until(
                () -> {
                    Reservation call = places.reserve("k", 1, 0);
                    boolean taken = !call.isRefused() && call.decision().source() == Source.REDIS;
                    if (taken) {
                        running.add(call);
                    } else {
                        call.release();
                    }
                    return running.size() == PLACES;
                },
                "all places are taken",
                Duration.ofSeconds(10));
        if (number % 2 == 0) {
            far.network().silence(true);
        } else {
            far.network().cut(true);
        }
        List<CompletableFuture<Reservation>> calls = new ArrayList<>();
        for (int i = 0; i < 200; i++) {
            calls.add(bucket.reserveAsync("k" + i, 1, 0).toCompletableFuture());
            if (i % 2 == 0) {
                calls.get(i).cancel(true);
            }
        }
        running.forEach(Reservation::release);
        far.awaitOutage();
        far.healSilence();
        until(() -> calls.stream().allMatch(CompletableFuture::isDone), "all are decided", FarNode.PATIENCE);
    }

    private long free() {
        return places.peek("k", 1, 0).remaining();
    }

    private static long connections() {
        return REDIS.server().ask(commands -> commands.clientList()).lines().count();
    }

    private static long heap() {
        System.gc();
        System.gc();
        return ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed();
    }
}
