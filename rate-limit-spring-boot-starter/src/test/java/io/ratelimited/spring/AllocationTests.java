package io.ratelimited.spring;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import io.ratelimited.core.Ticker;
import java.lang.management.ManagementFactory;
import org.aspectj.lang.ProceedingJoinPoint;
import org.aspectj.lang.annotation.Around;
import org.aspectj.lang.annotation.Aspect;
import org.junit.jupiter.api.Test;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;

/** What a call allocates beyond an aspect that only proceeds, in the same proxy style in the same process. */
final class AllocationTests {

    private static final int CALLS = 10_000;
    /** Enough for the compiler to have come to the end of its work, also on a busy machine. */
    private static final int ROUNDS = 500;

    private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();

    private static final Class<?>[] BEANS = {Service.class, EmptyAspect.class};

    @Test
    void admittedCallWithoutAKeyAllocatesLittleMore() {
        try (AnnotationConfigApplicationContext context = Applications.start(Ticker.system(), BEANS)) {
            Service service = context.getBean(Service.class);
            assertAllocates(() -> service.plain("a"), () -> service.empty("a"), 64);
        }
    }

    @Test
    void admittedCallWithAKeyAllocatesLittle() {
        try (AnnotationConfigApplicationContext context = Applications.start(Ticker.system(), BEANS)) {
            Service service = context.getBean(Service.class);
            assertAllocates(() -> service.keyed("a"), () -> service.empty("a"), 128);
        }
    }

    /**
     * The fewest bytes of many rounds, so that what else this thread allocates once does not count. What the compiler
     * spares a call depends on when it compiled what: the bound leaves one object of room.
     */
    private static void assertAllocates(Runnable call, Runnable floor, long atMost) {
        long fewest = Long.MAX_VALUE;
        long fewestOfFloor = Long.MAX_VALUE;
        for (int round = 0; round < ROUNDS; round++) {
            fewestOfFloor = Math.min(fewestOfFloor, bytesPerCall(floor));
            fewest = Math.min(fewest, bytesPerCall(call));
            if (round >= 20 && fewest - fewestOfFloor <= atMost) {
                return;
            }
        }
        assertThat(fewest - fewestOfFloor).isLessThanOrEqualTo(atMost);
    }

    private static long bytesPerCall(Runnable call) {
        long before = THREADS.getCurrentThreadAllocatedBytes();
        for (int i = 0; i < CALLS; i++) {
            call.run();
        }
        return (THREADS.getCurrentThreadAllocatedBytes() - before) / CALLS;
    }

    /** Methods that differ in their advice only. */
    static class Service {

        public void empty(String id) {}

        @RateLimited(rate = "1000000000/s", burst = 1_000_000_000)
        public void plain(String id) {}

        @RateLimited(rate = "1000000000/s", burst = 1_000_000_000, key = "#id")
        public void keyed(String id) {}
    }

    /** The floor. */
    @Aspect
    static class EmptyAspect {

        @Around("execution(* io.ratelimited.spring.AllocationTests.Service.empty(..))")
        public Object proceed(ProceedingJoinPoint call) throws Throwable {
            return call.proceed();
        }
    }
}
