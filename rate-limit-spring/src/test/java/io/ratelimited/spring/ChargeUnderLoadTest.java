package io.ratelimited.spring;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.testing.ManualTicker;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.IntConsumer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;

/** What charged calls may spend when many are made at once. */
@Tag("once")
final class ChargeUnderLoadTest {

    private static final int RESERVED = 10;
    private static final int STEPS = 36;

    private final ManualTicker ticker = new ManualTicker();
    private final AnnotationConfigApplicationContext context =
            ContextRunner.start(ticker, new Class<?>[] {Service.class}, "rate-limit.limits.tokens.rate=100/m");
    private final Service service = context.getBean(Service.class);
    private final RateLimits limits = context.getBean(RateLimits.class);
    private final ExecutorService threads = Executors.newFixedThreadPool(20);

    @AfterEach
    void stop() {
        threads.shutdownNow();
        context.close();
    }

    private void atOnce(int calls, IntConsumer call) throws Exception {
        CountDownLatch gate = new CountDownLatch(1);
        List<Future<?>> all = new ArrayList<>();
        for (int i = 0; i < calls; i++) {
            int number = i;
            all.add(threads.submit(() -> {
                gate.await();
                call.accept(number);
                return null;
            }));
        }
        gate.countDown();
        for (Future<?> each : all) {
            each.get();
        }
    }

    @Test
    void ofAThousandGuessesAtOnceAtMostTheLimitIsChecked() throws Exception {
        AtomicInteger refused = new AtomicInteger();
        atOnce(1000, i -> {
            try {
                service.login("ann", "wrong");
            } catch (IllegalArgumentException wrong) {
                // Checked.
            } catch (RateLimitExceededException refusal) {
                refused.incrementAndGet();
            }
        });
        assertThat(service.checks()).isEqualTo(5);
        assertThat(refused).hasValue(995);
    }

    @Test
    void rightPasswordsCostNothing() throws Exception {
        for (int i = 0; i < 100; i++) {
            service.login("ann", "right");
        }
        assertThat(limits.peek("logins", "ann").remaining()).isEqualTo(5);
    }

    /** What one call has used, and in which step of ten seconds. */
    private record Spent(int step, long used) {

        private long beyond() {
            return Math.max(0, used - RESERVED);
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"TOKEN_BUCKET", "GCRA", "SLIDING_LOG", "FIXED_WINDOW"})
    void inNoWindowIsMoreSpentThanTheLimitAndWhatCallsUsedBeyondWhatTheyReserved(Algorithm algorithm) throws Exception {
        assertBound(algorithm, 30);
    }

    @ParameterizedTest
    @EnumSource(names = {"TOKEN_BUCKET", "GCRA", "SLIDING_LOG", "FIXED_WINDOW"})
    void whenCallsReserveAtLeastWhatTheyUseNoMoreIsSpentThanTheLimit(Algorithm algorithm) throws Exception {
        assertThat(assertBound(algorithm, RESERVED)).isZero();
    }

    /** Returns what calls used beyond what they reserved. */
    private long assertBound(Algorithm algorithm, int largest) throws Exception {
        List<Spent> spent = spend(algorithm, largest);
        assertThat(spent).hasSizeGreaterThan(STEPS / 6 * 5);
        for (int from = 0; from < STEPS; from++) {
            for (int to = from; to < STEPS; to++) {
                int first = from;
                int last = to;
                List<Spent> within = spent.stream()
                        .filter(call -> call.step >= first && call.step <= last)
                        .toList();
                assertThat(within.stream().mapToLong(Spent::used).sum())
                        .as("steps %s to %s", from, to)
                        .isLessThanOrEqualTo(limit(algorithm, to - from)
                                + within.stream().mapToLong(Spent::beyond).sum());
            }
        }
        return spent.stream().mapToLong(Spent::beyond).sum();
    }

    /** What 100 a minute allows from one step to another, both included: six steps are a minute. */
    private static long limit(Algorithm algorithm, int steps) {
        return switch (algorithm) {
            case SLIDING_LOG -> 100L * (steps / 6 + 1);
            case FIXED_WINDOW -> 100L * ((steps + 5) / 6 + 1);
            default -> 100 + 100L * steps / 6;
        };
    }

    /** Twenty calls at once in every step. */
    private List<Spent> spend(Algorithm algorithm, int largest) throws Exception {
        List<Spent> spent = Collections.synchronizedList(new ArrayList<>());
        AtomicLong seed = new AtomicLong(7);
        try (AnnotationConfigApplicationContext own = ContextRunner.start(
                ticker,
                new Class<?>[] {Service.class},
                "rate-limit.limits.tokens.rate=100/m",
                "rate-limit.limits.tokens.algorithm=" + algorithm)) {
            Service charged = own.getBean(Service.class);
            for (int i = 0; i < STEPS; i++) {
                int step = i;
                atOnce(20, call -> {
                    long use = 1L + new Random(seed.getAndIncrement()).nextInt(largest);
                    try {
                        charged.answer(use);
                        spent.add(new Spent(step, use));
                    } catch (RateLimitExceededException refusal) {
                        // Spends nothing.
                    }
                });
                ticker.advance(Duration.ofSeconds(10));
            }
        }
        return spent;
    }

    static class Service {

        private final AtomicInteger checks = new AtomicInteger();

        int checks() {
            return checks.get();
        }

        @RateLimited(name = "logins", rate = "5/h", key = "#user", charge = "#error != null ? 1 : 0")
        public void login(String user, String password) {
            checks.incrementAndGet();
            if (!password.equals("right")) {
                throw new IllegalArgumentException("wrong password");
            }
        }

        @RateLimited(name = "tokens", permits = "10", charge = "#result")
        public long answer(long use) {
            return use;
        }
    }
}
