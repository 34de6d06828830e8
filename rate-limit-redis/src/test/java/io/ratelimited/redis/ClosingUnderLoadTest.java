package io.ratelimited.redis;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Decision.Source;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Queue;
import java.util.SplittableRandom;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Three nodes close a log and open it again, each by itself, while six threads take permits and give some back. */
@Tag("slow")
class ClosingUnderLoadTest {

    private static final int LARGEST = 40;
    private static final long PERIOD = 1_000_000_000;

    @RegisterExtension
    static final RedisServers REDIS = RedisServers.standalone();

    /** Used permits, which Redis has counted at an instant between two. */
    private record Used(long earliest, long latest, long permits) {}

    private final Queue<Used> used = new ConcurrentLinkedQueue<>();
    private final AtomicLong locally = new AtomicLong();
    private volatile boolean stopped;

    @Test
    void aLogThatIsClosedAndOpenedUnderLoadGivesNoMoreThanTheLargestLimit() throws Exception {
        closeAndOpen(2);
    }

    /** {@code -Dclosing.seconds} chooses for how long. */
    @Test
    @Tag("proof")
    void aLogThatIsClosedAndOpenedForLongGivesNoMoreThanTheLargestLimit() throws Exception {
        closeAndOpen(Long.getLong("closing.seconds", 20));
    }

    private void closeAndOpen(long seconds) throws Exception {
        List<RedisBackend> backends = new ArrayList<>();
        List<RateLimiter> nodes = new ArrayList<>();
        for (int node = 0; node < 3; node++) {
            RedisBackend backend = REDIS.backend(FarNode.PATIENT.timeout(Duration.ofSeconds(20)));
            backends.add(backend);
            nodes.add(backend.limiter(limit(LARGEST), RedisLimitOptions.DEFAULTS.onFailure(OnFailure.DENY)));
        }
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < 6; i++) {
            RateLimiter node = nodes.get(i % 3);
            SplittableRandom random = new SplittableRandom(i);
            threads.add(new Thread(() -> call(node, random)));
        }
        threads.forEach(Thread::start);
        SplittableRandom random = new SplittableRandom(seconds);
        long changes = 0;
        for (long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(seconds); System.nanoTime() - end < 0; changes++) {
            int permits = random.nextInt(3) == 0 ? 0 : random.nextInt(LARGEST + 1);
            nodes.get(random.nextInt(3)).update(limit(permits));
            Thread.sleep(random.nextInt(30));
        }
        stopped = true;
        for (Thread thread : threads) {
            thread.join();
        }
        long most = mostInAPeriod();
        System.out.printf(
                "CLOSING %d s, %d changes: %d calls, at most %d permits in a period%n",
                seconds, changes, used.size(), most);
        assertThat(most).isLessThanOrEqualTo(LARGEST);
        assertThat(locally.get()).isZero();
        for (RedisBackend backend : backends) {
            assertThat(backend.health().errors()).isZero();
        }
    }

    private static Limit limit(int permits) {
        return Limit.of("closing", Algorithm.SLIDING_LOG).rate(permits + "/s").build();
    }

    private void call(RateLimiter node, SplittableRandom random) {
        while (!stopped) {
            long permits = 1L + random.nextInt(3);
            long before = System.nanoTime();
            Reservation call = node.reserve("k", permits, random.nextInt(3) == 0 ? 50_000_000 : 0);
            long after = System.nanoTime();
            if (call.decision().source() == Source.UNAVAILABLE) {
                locally.incrementAndGet();
            }
            if (!call.isRefused()) {
                long cost = random.nextInt(3) == 0 ? random.nextLong(permits) : permits;
                call.settle(cost);
                if (cost > 0) {
                    used.add(new Used(before + call.waitNanos(), after + call.waitNanos(), cost));
                }
            }
        }
    }

    /** The permits that Redis has surely counted in one period, at the most. */
    private long mostInAPeriod() {
        List<Used> all = new ArrayList<>(used);
        all.sort(Comparator.comparingLong(Used::earliest));
        long most = 0;
        for (int first = 0; first < all.size(); first++) {
            long begin = all.get(first).earliest;
            long sum = 0;
            for (int i = first; i < all.size() && all.get(i).earliest - begin < PERIOD; i++) {
                sum += all.get(i).latest - begin < PERIOD ? all.get(i).permits : 0;
            }
            most = Math.max(most, sum);
        }
        return most;
    }
}
