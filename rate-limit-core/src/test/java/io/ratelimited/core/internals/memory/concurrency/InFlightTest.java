package io.ratelimited.core.internals.memory.concurrency;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.testing.ManualTicker;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;

/** CONCURRENCY against its naive twin: a list of the calls in flight and a queue of those that wait. */
class InFlightTest {

    private static final long PATIENCE = Duration.ofSeconds(3).toNanos();

    private record Call(Reservation reservation, CompletableFuture<Boolean> turn, long permits, long since) {}

    @Test
    void callsAreAdmittedReleasedAndServedInOrderAsTheTwinSays() {
        for (int seed = 0; seed < 300; seed++) {
            new Timeline(seed).run();
        }
    }

    private static final class Timeline {

        private static final long MOST = 5;

        private final Random random;
        private final String name;
        private final ManualTicker ticker = new ManualTicker();
        private final RateLimiter limiter = new InMemoryRateLimiter(
                Limit.of("flight", Algorithm.CONCURRENCY)
                        .maxConcurrent((int) MOST)
                        .build(),
                ticker,
                10);
        private final List<Call> flying = new ArrayList<>();
        private final Deque<Call> queue = new ArrayDeque<>();

        Timeline(int seed) {
            this.random = new Random(seed);
            this.name = "seed " + seed;
        }

        private long used() {
            return flying.stream().mapToLong(Call::permits).sum();
        }

        void run() {
            for (int step = 0; step < 200; step++) {
                switch (random.nextInt(6)) {
                    case 0, 1 -> arrive(0);
                    case 2 -> arrive(PATIENCE);
                    case 3 -> {
                        if (!flying.isEmpty()) {
                            end(flying.remove(random.nextInt(flying.size())));
                        }
                    }
                    case 4 -> pass(Duration.ofMillis(random.nextInt(1_500)).toNanos());
                    default -> {
                        Call last = queue.pollLast();
                        if (last != null) {
                            last.reservation.cancel();
                            serve();
                        }
                    }
                }
                assertThat(limiter.peek("key", 1, 0).remaining())
                        .as(name + ", step " + step)
                        .isEqualTo(MOST - used());
                assertThat(flying)
                        .as(name)
                        .allSatisfy(call -> assertThat(call.turn).isCompletedWithValue(true));
                assertThat(queue)
                        .as(name)
                        .allSatisfy(call -> assertThat(call.turn).isNotDone());
            }
        }

        private void arrive(long maxWait) {
            long permits = 1L + random.nextInt((int) MOST + 1);
            boolean free = queue.isEmpty() && used() + permits <= MOST;
            Reservation reservation = limiter.reserve("key", permits, maxWait);
            boolean waits = !free && permits <= MOST && maxWait > 0;
            assertThat(reservation.isRefused()).as(name).isEqualTo(!free && !waits);
            if (reservation.isRefused()) {
                assertThat(reservation.decision().never()).as(name).isEqualTo(permits > MOST);
                assertThat(reservation.decision().retryAfter()).as(name).isNull();
                return;
            }
            Call call = new Call(reservation, reservation.awaitAsync(), permits, ticker.nanos());
            if (free) {
                flying.add(call);
            } else {
                queue.add(call);
                serve();
            }
        }

        /** Ends a call, sometimes more than once. */
        private void end(Call call) {
            for (int times = random.nextInt(3); times >= 0; times--) {
                call.reservation.release();
            }
            serve();
        }

        private void pass(long nanos) {
            ticker.advanceNanos(nanos);
            while (!queue.isEmpty() && ticker.nanos() - queue.peek().since >= PATIENCE) {
                assertThat(queue.remove().turn).as(name).isCompletedWithValue(false);
                serve();
            }
        }

        private void serve() {
            while (!queue.isEmpty() && used() + queue.peek().permits <= MOST) {
                flying.add(queue.remove());
            }
        }
    }

    @Test
    void aCallThatOutlivesItsLeaseNoLongerCountsAndItsReleaseFreesNothingElse() {
        ManualTicker ticker = new ManualTicker();
        RateLimiter limiter = new InMemoryRateLimiter(
                Limit.of("flight", Algorithm.CONCURRENCY)
                        .maxConcurrent(1)
                        .lease(Duration.ofSeconds(10))
                        .build(),
                ticker,
                10);
        Reservation lost = limiter.reserve(null, 1, 0);
        ticker.advanceNanos(Duration.ofSeconds(10).toNanos() - 1);
        assertThat(limiter.reserve(null, 1, 0).isRefused()).isTrue();
        ticker.advanceNanos(1);
        Reservation next = limiter.reserve(null, 1, 0);
        assertThat(next.isRefused()).isFalse();
        lost.release();
        assertThat(limiter.reserve(null, 1, 0).isRefused()).isTrue();
        next.release();
        assertThat(limiter.peek(null, 1, 0).remaining()).isEqualTo(1);
    }

    @Test
    void aCallThatNobodyCouldReleaseIsAnError() {
        RateLimiter limiter = new InMemoryRateLimiter(
                Limit.of("flight", Algorithm.CONCURRENCY).maxConcurrent(1).build());
        assertThatThrownBy(() -> limiter.tryAcquire(null, 1))
                .isInstanceOf(UnsupportedOperationException.class)
                .hasMessageContaining("limit 'flight'")
                .hasMessageContaining("use execute or reserve");
    }

    @Test
    void anIdleKeyIsNotRemembered() {
        RateLimiter limiter = new InMemoryRateLimiter(
                Limit.of("flight", Algorithm.CONCURRENCY).maxConcurrent(1).build());
        Reservation call = limiter.reserve("key", 1, 0);
        assertThat(limiter.reserve("key", 1, 0).isRefused()).isTrue();
        assertThat(limiter.keys()).isEqualTo(1);
        call.release();
        assertThat(limiter.keys()).isZero();
    }
}
