package io.ratelimited.core.internals.threads;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Ticker;
import java.util.Collection;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tasks that block or throw, and the number of threads. */
@Timeout(60)
class CallbackThreadsTest {

    private static final int TASKS = 200;
    /** A stall of the machine starts threads, too. */
    private static final int FEW = 20;

    private final CallbackThreads threads = new CallbackThreads(1);
    private final CountDownLatch end = new CountDownLatch(1);

    @AfterEach
    void endWhatBlocks() {
        end.countDown();
    }

    private void block() {
        try {
            end.await();
        } catch (InterruptedException ex) {
            Thread.currentThread().interrupt();
        }
    }

    @Test
    void tasksThatBlockHoldNobodyUp() throws Exception {
        CountDownLatch begun = new CountDownLatch(TASKS);
        for (int i = 0; i < TASKS; i++) {
            threads.execute(() -> {
                begun.countDown();
                block();
            });
        }
        begun.await();
        CountDownLatch ran = new CountDownLatch(1);
        threads.execute(ran::countDown);
        ran.await();
    }

    /** Also when all threads have ended by it. */
    @Test
    void aTaskThatThrowsOrIsInterruptedEndsNoOther() throws Exception {
        CountDownLatch uncaught = new CountDownLatch(TASKS / 2);
        CountDownLatch ran = new CountDownLatch(TASKS);
        for (int i = 0; i < TASKS; i++) {
            int task = i;
            threads.execute(() -> {
                ran.countDown();
                Thread.currentThread().setUncaughtExceptionHandler((thread, failure) -> uncaught.countDown());
                if (task % 2 == 0) {
                    throw new IllegalStateException("a task's own failure");
                }
                Thread.currentThread().interrupt();
            });
        }
        ran.await();
        uncaught.await();
    }

    @Test
    void manyShortTasksShareFewThreads() throws Exception {
        Collection<Thread> used = new ConcurrentLinkedQueue<>();
        for (int i = 0; i < TASKS; i++) {
            CountDownLatch ran = new CountDownLatch(1);
            threads.execute(() -> {
                used.add(Thread.currentThread());
                ran.countDown();
            });
            ran.await();
        }
        assertThat(new HashSet<>(used)).hasSizeLessThan(FEW);
    }

    /** The JDK's own timer starts a thread for each on one or two processors, up to JDK 24. */
    @Test
    void manyAlarmsShareFewThreads() throws Exception {
        Set<Thread> before = Thread.getAllStackTraces().keySet();
        Collection<Thread> used = new ConcurrentLinkedQueue<>();
        for (int i = 0; i < TASKS; i++) {
            CountDownLatch ran = new CountDownLatch(1);
            Ticker.system().schedule(Ticker.system().nanos() + 1000, () -> {
                used.add(Thread.currentThread());
                ran.countDown();
            });
            ran.await();
        }
        Set<Thread> threadsOfAlarms = new HashSet<>(used);
        assertThat(threadsOfAlarms.stream().filter(thread -> !before.contains(thread)))
                .as("threads that other tests have not left behind")
                .hasSizeLessThan(FEW);
        assertThat(threadsOfAlarms).allMatch(Thread::isDaemon);
    }
}
