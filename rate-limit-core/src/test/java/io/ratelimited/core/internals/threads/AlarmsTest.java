package io.ratelimited.core.internals.threads;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
@Tag("slow")
class AlarmsTest {

    private static final long PATIENCE = TimeUnit.SECONDS.toNanos(8);

    private static boolean keepsTime() {
        return Thread.getAllStackTraces().keySet().stream()
                .anyMatch(thread -> thread.getName().equals("rate-limit-timer"));
    }

    @Test
    void theThreadThatKeepsTimeEndsSoonAfterTheLastAlarmAndComesBackWithTheNext() throws Exception {
        for (int i = 0; i < 2; i++) {
            CountDownLatch rang = new CountDownLatch(1);
            Alarms.after(0, rang::countDown);
            Alarms.after(TimeUnit.HOURS.toNanos(1), () -> {}).run();
            rang.await();
            keepsNoTimeSoon();
        }
    }

    @Test
    void aClosedLimiterLeavesNoAlarmOfItsWaitingCalls() throws Exception {
        InMemoryRateLimiter limiter = new InMemoryRateLimiter(
                Limit.of("a", Algorithm.TOKEN_BUCKET).rate("1/h").burst(1).build());
        limiter.tryAcquire(null, 1);
        List<CompletableFuture<Boolean>> waiting = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            waiting.add(limiter.reserve(null, 1, TimeUnit.HOURS.toNanos(9)).awaitAsync());
        }
        assertThat(keepsTime()).isTrue();
        limiter.close();
        assertThat(waiting).allMatch(CompletableFuture::isCompletedExceptionally);
        keepsNoTimeSoon();
    }

    private static void keepsNoTimeSoon() throws InterruptedException {
        long begin = System.nanoTime();
        while (keepsTime() && System.nanoTime() - begin < PATIENCE) {
            Thread.sleep(50);
        }
        assertThat(keepsTime()).isFalse();
    }
}
