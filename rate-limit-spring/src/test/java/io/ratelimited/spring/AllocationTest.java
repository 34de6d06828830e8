package io.ratelimited.spring;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import io.ratelimited.core.Ticker;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.util.Map;
import java.util.stream.Collectors;
import org.aspectj.lang.ProceedingJoinPoint;
import org.aspectj.lang.annotation.Around;
import org.aspectj.lang.annotation.Aspect;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.stereotype.Component;

/**
 * What a call allocates beyond an aspect that only proceeds, in the same proxy style. In a process of
 * its own: what other tests have called decides what the compiler does.
 */
@Tag("slow")
public final class AllocationTest {

    private static final int CALLS = 20_000;
    private static final int ROUNDS = 20;
    private static final int PLAIN = 0;
    private static final int KEYED = 0;
    private static final int BEAN = 0;
    /** The compiler inlines differently from run to run: 160 to 216. */
    private static final int CHARGED = 232;

    private static final int TWO = 96;
    private static final int THREE = 160;
    /** The compiler may be late on a busy machine. */
    private static final int PATIENCE = 500;

    private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();

    private static final Class<?>[] BEANS = {Service.class, Tenants.class, EmptyAspect.class};

    @Test
    void admittedCallsAllocateLittle(@TempDir Path directory) throws Exception {
        Map<String, Integer> bytes = Fork.run(directory, Fork.classPath(entry -> true), AllocationTest.class).stream()
                .map(fact -> fact.split(" "))
                .collect(Collectors.toMap(fact -> fact[0], fact -> Integer.valueOf(fact[1])));
        assertThat(bytes.get("plain")).as("without a key").isLessThanOrEqualTo(PLAIN);
        assertThat(bytes.get("keyed")).isLessThanOrEqualTo(KEYED);
        assertThat(bytes.get("bean")).isLessThanOrEqualTo(BEAN);
        assertThat(bytes.get("charged")).isLessThanOrEqualTo(CHARGED);
        assertThat(bytes.get("two")).as("limits").isLessThanOrEqualTo(TWO);
        assertThat(bytes.get("three")).as("limits").isLessThanOrEqualTo(THREE);
    }

    /** Prints the bytes that a call allocates beyond the floor. */
    public static void main(String[] args) {
        try (AnnotationConfigApplicationContext context = ContextRunner.start(Ticker.system(), BEANS)) {
            Service service = context.getBean(Service.class);
            long floor = bytesPerCall(() -> service.empty("a"), ROUNDS, 0);
            long plain = bytesPerCall(() -> service.plain("a"), PATIENCE, floor + PLAIN);
            System.out.println("plain " + Math.max(0, plain - floor));
            long keyed = bytesPerCall(() -> service.keyed("a"), PATIENCE, floor + KEYED);
            System.out.println("keyed " + Math.max(0, keyed - floor));
            long bean = bytesPerCall(() -> service.byBean("a"), PATIENCE, floor + BEAN);
            System.out.println("bean " + Math.max(0, bean - floor));
            long two = bytesPerCall(() -> service.two("a"), PATIENCE, floor + TWO);
            System.out.println("two " + Math.max(0, two - floor));
            long three = bytesPerCall(() -> service.three("a"), PATIENCE, floor + THREE);
            System.out.println("three " + Math.max(0, three - floor));
            long charged = bytesPerCall(() -> service.charged("a"), PATIENCE, floor + CHARGED);
            System.out.println("charged " + Math.max(0, charged - floor));
        }
    }

    /** The fewest of many rounds, or the first that is few enough: what allocates on this thread once does not count. */
    private static long bytesPerCall(Runnable call, int rounds, long enough) {
        long fewest = Long.MAX_VALUE;
        for (int round = 0; round < rounds && fewest > enough; round++) {
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

        @RateLimited(rate = "1000000000/s", burst = 1_000_000_000, key = "@tenants.of(#id)")
        public void byBean(String id) {}

        @RateLimited(rate = "1000000000/s")
        @RateLimited(rate = "500000000/s")
        public void two(String id) {}

        @RateLimited(rate = "1000000000/s")
        @RateLimited(rate = "500000000/s")
        @RateLimited(rate = "400000000/s")
        public void three(String id) {}

        @RateLimited(
                rate = "1000000000/s",
                burst = 1_000_000_000,
                key = "#id",
                permits = "2",
                charge = "#error == null ? 1 : 0")
        public void charged(String id) {}
    }

    /** Names keys. Public, so that a call of it can be compiled. */
    @Component("tenants")
    public static class Tenants {

        /** The tenant of a caller. */
        public String of(String id) {
            return id;
        }
    }

    /** The floor. */
    @Aspect
    static class EmptyAspect {

        @Around("execution(* io.ratelimited.spring.AllocationTest.Service.empty(..))")
        public Object proceed(ProceedingJoinPoint call) throws Throwable {
            return call.proceed();
        }
    }
}
