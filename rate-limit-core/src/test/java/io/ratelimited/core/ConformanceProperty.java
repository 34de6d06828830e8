package io.ratelimited.core;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.testing.ManualTicker;
import java.time.Duration;
import java.util.List;
import java.util.Queue;
import java.util.Random;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.stream.IntStream;
import tools.jackson.databind.JsonNode;

/** The laws behind the cases that have no steps, told by their parameters. A case with no law here fails. */
final class ConformanceProperty {

    private ConformanceProperty() {}

    static void check(ConformanceCase test) {
        JsonNode params = test.params();
        JsonNode expected = test.expected();
        if (params.has("duration_ms") && expected.has("granted_permits_min")) {
            saturatingDemandIsServedWithoutDrift(test);
        } else if (params.has("threads") && expected.has("granted_exact")) {
            simultaneousCallersShareOutTheSlots(test);
        } else if (params.has("burst_range")) {
            everyProbeBeforeTheAdvertisedWaitIsRefused(test);
        } else if (params.has("limit") && params.has("window_ms")) {
            noTrueWindowExceedsTheLimit(test);
        } else if (params.has("burst") && expected.path("statement").asString().contains("none rejected")) {
            threadsDrainABurst(test);
        } else {
            throw new AssertionError("no law is written for the property case " + test.id());
        }
    }

    /** Demand is saturating: the clock jumps to the time of the retry. */
    private static void saturatingDemandIsServedWithoutDrift(ConformanceCase test) {
        RateLimiter limiter = test.limiter();
        ManualTicker ticker = test.ticker();
        long permits = test.params().path("permits_per_call").asLong();
        long left =
                Duration.ofMillis(test.params().path("duration_ms").asLong()).toNanos();
        long granted = 0;
        while (left >= 0) {
            if (limiter.tryAcquire(null, permits)) {
                granted += permits;
                continue;
            }
            long retry = limiter.peek(null, permits, 0).retryAfter().toNanos();
            ticker.advanceNanos(retry);
            left -= retry;
        }
        assertThat(granted)
                .isBetween(
                        test.expected().path("granted_permits_min").asLong(),
                        test.expected().path("granted_permits_max").asLong());
    }

    private static void simultaneousCallersShareOutTheSlots(ConformanceCase test) {
        Queue<Long> waits = new ConcurrentLinkedQueue<>();
        together(test.params().path("threads").asInt(), thread -> {
            Reservation reservation = test.limiter().reserve(null, 1, test.maxWait());
            if (!reservation.isRefused()) {
                waits.add(reservation.waitNanos());
            }
        });
        List<Long> expected = test.expected()
                .path("waits_ms_sorted")
                .valueStream()
                .map(wait -> Math.round(wait.asDouble() * 1e6))
                .toList();
        assertThat(waits).hasSize(test.expected().path("granted_exact").asInt());
        assertThat(waits).containsExactlyInAnyOrderElementsOf(expected);
    }

    private static void everyProbeBeforeTheAdvertisedWaitIsRefused(ConformanceCase test) {
        Random random = new Random(7);
        int least = test.params().path("burst_range").get(0).asInt();
        int most = test.params().path("burst_range").get(1).asInt();
        for (int trial = 0; trial < 300; trial++) {
            int burst = trial == 0 ? least : trial == 1 ? most : least + random.nextInt(most - least + 1);
            ManualTicker ticker = new ManualTicker();
            Limit limit = Limit.of(test.id(), test.algorithm())
                    .rate(new Rate(burst, Duration.ofSeconds(1)))
                    .burst(burst)
                    .build();
            RateLimiter limiter = new InMemoryRateLimiter(limit, ticker, 1);
            assertThat(limiter.tryAcquire(null, burst)).isTrue();
            for (int single = random.nextInt(20); single >= 0; single--) {
                long wait = limiter.peek(null, 1, 0).retryAfter().toNanos();
                long passed = 0;
                for (int probe = 0; probe < 5 && passed < wait - 1; probe++) {
                    long step = Math.min(wait - 1 - passed, wait * (1 + random.nextInt(9_999)) / 10_000);
                    ticker.advanceNanos(step);
                    passed += step;
                    assertThat(limiter.tryAcquire(null, 1))
                            .as("burst " + burst + ", trial " + trial)
                            .isFalse();
                }
                ticker.advanceNanos(wait - passed);
                assertThat(limiter.tryAcquire(null, 1))
                        .as("burst " + burst + ", trial " + trial)
                        .isTrue();
            }
        }
    }

    private static void noTrueWindowExceedsTheLimit(ConformanceCase test) {
        long period = test.limiter().limit().rate().period().toNanos();
        long limit = test.limiter().limit().rate().permits();
        for (int seed = 0; seed < 200; seed++) {
            Random random = new Random(seed);
            ManualTicker ticker = new ManualTicker();
            RateLimiter limiter = new InMemoryRateLimiter(test.limiter().limit(), ticker, 1);
            GrantLog grants = new GrantLog();
            for (int call = 0; call < 200; call++) {
                ticker.advanceNanos((long) (random.nextDouble() * random.nextDouble() * period / 2));
                if (limiter.tryAcquire(null, 1)) {
                    grants.add(ticker.nanos(), 1);
                }
            }
            assertThat(grants.mostWithin(period)).as("seed " + seed).isEqualTo(limit);
        }
    }

    private static void threadsDrainABurst(ConformanceCase test) {
        Queue<Integer> refused = new ConcurrentLinkedQueue<>();
        together(2, thread -> {
            for (int call = 0; call < 200_000; call++) {
                if (!test.limiter().tryAcquire(null, 1)) {
                    refused.add(call);
                }
            }
        });
        assertThat(refused).isEmpty();
    }

    private static void together(int count, java.util.function.IntConsumer work) {
        CountDownLatch gate = new CountDownLatch(1);
        List<Thread> threads = IntStream.range(0, count)
                .mapToObj(i -> new Thread(() -> {
                    try {
                        gate.await();
                    } catch (InterruptedException ex) {
                        throw new IllegalStateException(ex);
                    }
                    work.accept(i);
                }))
                .toList();
        threads.forEach(Thread::start);
        gate.countDown();
        for (Thread thread : threads) {
            try {
                thread.join();
            } catch (InterruptedException ex) {
                throw new IllegalStateException(ex);
            }
        }
    }
}
