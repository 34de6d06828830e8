package io.ratelimited.core.internals.threads;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
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
            long begin = System.nanoTime();
            while (keepsTime() && System.nanoTime() - begin < PATIENCE) {
                Thread.sleep(50);
            }
            assertThat(keepsTime()).isFalse();
        }
    }
}
