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

    private static final int CALLS = 20_000;
    private static final int ROUNDS = 20;

    private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();

    private static final Class<?>[] BEANS = {Service.class, EmptyAspect.class};

    @Test
    void admittedCallWithoutAKeyAllocatesItsSignatureOnly() {
        try (AnnotationConfigApplicationContext context = Applications.start(Ticker.system(), BEANS)) {
            Service service = context.getBean(Service.class);
            long floor = bytesPerCall(() -> service.empty("a"));
            assertThat(bytesPerCall(() -> service.plain("a")) - floor).isLessThanOrEqualTo(32);
        }
    }

    @Test
    void admittedCallWithAKeyAllocatesLittle() {
        try (AnnotationConfigApplicationContext context = Applications.start(Ticker.system(), BEANS)) {
            Service service = context.getBean(Service.class);
            long floor = bytesPerCall(() -> service.empty("a"));
            assertThat(bytesPerCall(() -> service.keyed("a")) - floor).isLessThanOrEqualTo(128);
        }
    }

    /** The fewest of many rounds, so that whatever else allocates on this thread once does not count. */
    private static long bytesPerCall(Runnable call) {
        long fewest = Long.MAX_VALUE;
        for (int round = 0; round < ROUNDS; round++) {
            long before = THREADS.getCurrentThreadAllocatedBytes();
            for (int i = 0; i < CALLS; i++) {
                call.run();
            }
            long after = THREADS.getCurrentThreadAllocatedBytes();
            fewest = Math.min(fewest, (after - before) / CALLS);
        }
        return fewest;
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
