package io.ratelimited.core;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.testing.ManualTicker;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.NullSource;
import org.junit.jupiter.params.provider.ValueSource;

/** A caller who waits often to keep all others from waiting. */
class WaitingAttacksTest {

    private static final long HOUR = 3_600_000_000_000L;
    private static final int SEATS = 10;

    private final ManualTicker ticker = new ManualTicker();

    private InMemoryRateLimiter limiter(Algorithm algorithm, int seats) {
        Limit.Builder limit = Limit.of("a", algorithm).maxWaiting(seats);
        Limit.Builder full = algorithm == Algorithm.CONCURRENCY
                ? limit.maxConcurrent(1)
                : limit.rate("1/s").burst(algorithm == Algorithm.LEAKY_BUCKET ? 1_000 : 1);
        return new InMemoryRateLimiter(full.build(), ticker, 100);
    }

    /** Takes what is there at once, and lets callers wait until no more may; returns those who wait. */
    private static List<CompletableFuture<Boolean>> fill(InMemoryRateLimiter limiter, @Nullable String key) {
        limiter.reserve(key, 1, 0);
        List<CompletableFuture<Boolean>> waiting = new ArrayList<>();
        while (true) {
            CompletableFuture<Boolean> call = limiter.reserve(key, 1, HOUR).awaitAsync();
            if (call.isDone()) {
                return waiting;
            }
            waiting.add(call);
        }
    }

    @ParameterizedTest
    @EnumSource(
            value = Algorithm.class,
            names = {"TOKEN_BUCKET", "LEAKY_BUCKET", "CONCURRENCY"})
    void oneCallerCannotTakeTheSeatsOfAll(Algorithm algorithm) {
        InMemoryRateLimiter limiter = limiter(algorithm, SEATS);
        assertThat(fill(limiter, "attacker")).hasSize(SEATS / 2);
        limiter.reserve("user", 1, 0);
        assertThat(limiter.peek("user", 1, HOUR).admitted()).isTrue();
        assertThat(fill(limiter, "user")).hasSize(SEATS / 2);
        assertThat(limiter.waiting()).isEqualTo(SEATS);
    }

    @Test
    void callersThatLeaveOutTheirKeyCountAsOneCaller() {
        InMemoryRateLimiter limiter = limiter(Algorithm.TOKEN_BUCKET, SEATS);
        assertThat(limiter.reserve("user", 1, HOUR).isRefused()).isFalse();
        assertThat(fill(limiter, null)).hasSize(SEATS / 2);
        assertThat(fill(limiter, "user")).hasSize(SEATS / 2);
    }

    @Test
    void aLimitWithoutKeysHasAllItsSeatsForAllItsCallers() {
        assertThat(fill(limiter(Algorithm.TOKEN_BUCKET, SEATS), null)).hasSize(SEATS);
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 2, 3})
    void ofFewSeatsOneKeyHasHalfRoundedUp(int seats) {
        assertThat(fill(limiter(Algorithm.TOKEN_BUCKET, seats), "attacker")).hasSize((seats + 1) / 2);
    }

    @Test
    void everySeatOfAKeyComesBackWhateverEndsTheWait() throws Exception {
        WaitingRoom room = new WaitingRoom(ticker, () -> SEATS);
        AtomicInteger gone = new AtomicInteger();
        Threads.run(8, thread -> {
            for (int i = 0; i < 2_000; i++) {
                Sleeper sleeper = new Sleeper(i % 3 == 0 ? null : "key" + (thread + i) % 3);
                CompletableFuture<Boolean> turn = new CompletableFuture<>();
                switch ((thread + i) % 5) {
                    case 0 -> room.awaitAsync(HOUR, sleeper).cancel(false);
                    case 1 -> room.awaitAsync(turn, () -> () -> {}, sleeper).complete(true);
                    case 2 ->
                        room.awaitAsync(turn, () -> () -> {}, sleeper)
                                .completeExceptionally(new CancellationException());
                    case 3 -> room.await(ticker.nanos(), sleeper);
                    default -> {
                        Thread.currentThread().interrupt();
                        try {
                            // Crowded out, it does not sleep.
                            room.await(HOUR, sleeper);
                            assertThat(Thread.interrupted()).isTrue();
                        } catch (InterruptedException ex) {
                            gone.incrementAndGet();
                        }
                    }
                }
            }
            return null;
        });
        assertThat(room.size()).isZero();
        assertThat(gone).hasPositiveValue();
        for (String key : new String[] {"key0", "key1", "key2"}) {
            List<CompletableFuture<Boolean>> seated = new ArrayList<>();
            for (int i = 0; i < SEATS / 2; i++) {
                assertThat(room.longestWait(key, HOUR)).isPositive();
                seated.add(room.awaitAsync(HOUR, new Sleeper(key)));
            }
            assertThat(seated).noneMatch(CompletableFuture::isDone);
            assertThat(room.longestWait(key, HOUR)).isZero();
            assertThat(room.awaitAsync(HOUR, new Sleeper(key))).isCompletedWithValue(false);
            seated.forEach(one -> one.cancel(false));
        }
        assertThat(room.size()).isZero();
    }

    @ParameterizedTest
    @NullSource
    @ValueSource(strings = "key")
    void exactlyTheSeatsOfAKeyAreTakenByRacingCallers(@Nullable String key) throws Exception {
        WaitingRoom room = new WaitingRoom(ticker, () -> SEATS);
        assertThat(room.longestWait("other", HOUR)).isPositive();
        long seated = Threads.sum(8, thread -> {
            long mine = 0;
            for (int i = 0; i < SEATS; i++) {
                mine += room.awaitAsync(HOUR, new Sleeper(key)).isDone() ? 0 : 1;
            }
            return mine;
        });
        assertThat(seated).isEqualTo(SEATS / 2);
        assertThat(room.size()).isEqualTo(SEATS / 2);
    }

    @Test
    void anInterruptedSleeperFreesTheSeatOfItsKey() throws Exception {
        InMemoryRateLimiter limiter = limiter(Algorithm.TOKEN_BUCKET, 1);
        limiter.reserve("key", 1, 0);
        Reservation first = limiter.reserve("key", 1, HOUR);
        Thread[] thread = new Thread[1];
        FutureTask<Boolean> sleeper = Threads.start(() -> {
            thread[0] = Thread.currentThread();
            return first.await();
        });
        Threads.until(() -> ticker.sleeping() == 1);
        assertThat(limiter.peek("key", 1, HOUR).admitted()).isFalse();
        thread[0].interrupt();
        assertThatThrownBy(() -> Threads.get(sleeper)).isInstanceOf(InterruptedException.class);
        assertThat(limiter.peek("key", 1, HOUR).admitted()).isTrue();
        assertThat(limiter.reserve("key", 1, HOUR).awaitAsync()).isNotDone();
    }

    private record Sleeper(@Nullable Object key) implements WaitingRoom.Waiter {

        @Override
        public boolean mayGo() {
            return true;
        }

        @Override
        public void crowdOut() {}

        @Override
        public void cancel() {}
    }
}
