package io.ratelimited.redis;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Decision;
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
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** How many entries a log in Redis has, and that it decides as one in memory when many have been removed. */
@Tag("once")
@Tag("slow")
class SlidingLogEntriesTest {

    @RegisterExtension
    static final RedisServers REDIS = RedisServers.standalone();

    private final ManualTicker ticker = RedisServers.ticker();

    private RateLimiter limiter(Limit limit) {
        return REDIS.backend(ticker).limiter(limit, RedisLimitOptions.DEFAULTS);
    }

    private static long entries(String limit) {
        return REDIS.server().ask(redis -> redis.llen(REDIS.keyOf(limit, "k")));
    }

    /** At no time is nothing in flight, so that the newest entry always has permits. */
    @Test
    void callsThatCostNothingLeaveNoEntries() {
        Limit limit = Limit.of("free", Algorithm.SLIDING_LOG).rate("5/d").build();
        RateLimiter limiter = limiter(limit);
        Deque<Reservation> calls = new ArrayDeque<>();
        for (int i = 0; i < 1_500; i++) {
            ticker.advance(Duration.ofMillis(1));
            Reservation call = limiter.reserve("k", 1, 0);
            assertThat(call.isRefused()).isFalse();
            calls.add(call);
            if (calls.size() > 2) {
                calls.remove().settle(0);
            }
        }
        assertThat(limiter.peek("k", 1, 0).remaining()).isEqualTo(3);
        assertThat(entries("free")).isLessThan(600);
    }

    /** Instances of an earlier version write no number of empty entries, also while instances are replaced. */
    @Test
    void aLogOfAnEarlierVersionIsContinued() {
        RateLimiter limiter =
                limiter(Limit.of("old", Algorithm.SLIDING_LOG).rate("5/d").build());
        Reservation given = limiter.reserve("k", 1, 0);
        ticker.advance(Duration.ofMillis(1));
        assertThat(limiter.tryAcquire("k", 2)).isTrue();
        String key = REDIS.keyOf("old", "k");
        String header = REDIS.server().ask(redis -> redis.lindex(key, 0));
        String seven = header.substring(0, header.lastIndexOf(' '));
        assertThat(seven.split(" ")).hasSize(7);
        REDIS.server().ask(redis -> redis.lset(key, 0, seven));
        assertThat(limiter.peek("k", 1, 0).source()).isEqualTo(Decision.Source.REDIS);
        assertThat(limiter.peek("k", 1, 0).remaining()).isEqualTo(2);
        given.settle(0);
        assertThat(limiter.peek("k", 1, 0).remaining()).isEqualTo(3);
        assertThat(limiter.tryAcquire("k", 3)).isTrue();
        assertThat(limiter.tryAcquire("k", 1)).isFalse();
    }

    private static long bytes(String limit) {
        return REDIS.server().ask(redis -> redis.lrange(REDIS.keyOf(limit, "k"), 0, -1)).stream()
                .mapToLong(String::length)
                .sum();
    }

    /** All of them wait for the same instant. */
    @Test
    void callsThatGiveUpWaitingLeaveNothingAndTakeNothingFromOthers() {
        RateLimiter limiter =
                limiter(Limit.of("waits", Algorithm.SLIDING_LOG).rate("10/m").build());
        assertThat(limiter.tryAcquire("k", 10)).isTrue();
        ticker.advance(Duration.ofSeconds(1));
        long longest = Duration.ofMinutes(2).toNanos();
        Reservation kept = limiter.reserve("k", 1, longest);
        long before = bytes("waits");
        for (int call = 0; call < 2_000; call++) {
            limiter.reserve("k", 1, longest).cancel();
        }
        assertThat(bytes("waits")).isLessThan(before + 50);
        long rest = Duration.ofSeconds(59).toNanos();
        assertThat(limiter.peek("k", 10, longest).waitTime().toNanos()).isGreaterThan(rest);
        kept.cancel();
        kept.cancel();
        assertThat(limiter.peek("k", 10, longest).waitTime().toNanos()).isEqualTo(rest);
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3})
    void callsOfOneInstantGiveBackInAnyOrder(long seed) {
        Limit limit = Limit.of("instant", Algorithm.SLIDING_LOG).rate("300/m").build();
        RateLimiter redis = limiter(limit);
        RateLimiter memory = new InMemoryRateLimiter(limit, ticker, 10);
        Random random = new Random(seed);
        List<Reservation[]> calls = new ArrayList<>();
        for (int step = 0; step < 1_000; step++) {
            if (random.nextInt(5) > 2 || calls.isEmpty()) {
                long permits = 1L + random.nextInt(3);
                Reservation[] both = {redis.reserve("k", permits, 0), memory.reserve("k", permits, 0)};
                assertThat(both[0].isRefused()).as("step %d", step).isEqualTo(both[1].isRefused());
                if (!both[0].isRefused()) {
                    calls.add(both);
                }
            } else {
                Reservation[] both = calls.remove(random.nextInt(calls.size()));
                long cost = random.nextInt(4);
                both[0].settle(cost);
                both[1].settle(cost);
            }
            assertThat(redis.peek("k", 1, 0).remaining())
                    .as("step %d", step)
                    .isEqualTo(memory.peek("k", 1, 0).remaining());
        }
    }

    /** More than are kept for an instant: what cannot be told from another one is not given back. */
    @Test
    void anInstantOfVeryManyCallsHasABound() {
        RateLimiter limiter =
                limiter(Limit.of("many", Algorithm.SLIDING_LOG).rate("4000/m").build());
        List<Reservation> calls = new ArrayList<>();
        for (int call = 0; call < 2_400; call++) {
            calls.add(limiter.reserve("k", 1, 0));
        }
        for (int call = 0; call < 2_400; call += 2) {
            calls.get(call).cancel();
            assertThat(limiter.peek("k", 1, 0).remaining()).isEqualTo(1_600 + Math.min(1_001, call / 2 + 1));
        }
        assertThat(bytes("many")).isLessThan(10_000);
        Reservation next = limiter.reserve("k", 1, 0);
        next.cancel();
        assertThat(limiter.peek("k", 1, 0).remaining()).isEqualTo(2_601);
    }

    /** Over several blocks of entries, with weights, charges and calls that are given back in any order. */
    @ParameterizedTest
    @ValueSource(longs = {1, 4})
    void aLogWithoutEmptyEntriesDecidesAsOneInMemory(long seed) {
        decidesAsInMemory(seed);
    }

    @ParameterizedTest
    @ValueSource(longs = {2, 3, 5, 6, 7, 8})
    @Tag("proof")
    void manyLogsWithoutEmptyEntriesDecideAsInMemory(long seed) {
        decidesAsInMemory(seed);
    }

    private void decidesAsInMemory(long seed) {
        Limit limit = Limit.of("same", Algorithm.SLIDING_LOG).rate("1500/500ms").build();
        RateLimiter redis = limiter(limit);
        RateLimiter memory = new InMemoryRateLimiter(limit, ticker, 10);
        Random random = new Random(seed);
        List<Reservation[]> calls = new ArrayList<>();
        for (int step = 0; step < 3_000; step++) {
            ticker.advance(Duration.ofNanos(1_000L * random.nextInt(seed % 2 == 0 ? 300 : 600)));
            if (random.nextInt(16) > 6 || calls.isEmpty()) {
                long permits = 1L + random.nextInt(seed > 2 ? 3 : 1);
                Reservation[] both = {redis.reserve("k", permits, 0), memory.reserve("k", permits, 0)};
                assertThat(both[0].isRefused()).as("step %d", step).isEqualTo(both[1].isRefused());
                if (!both[0].isRefused()) {
                    calls.add(both);
                }
            } else {
                Reservation[] both = calls.remove(random.nextInt(calls.size()));
                long cost = random.nextInt(8) == 0 ? 1 + random.nextInt(4) : 0;
                both[0].settle(cost);
                both[1].settle(cost);
            }
            if (step % 25 == 0) {
                Decision expected = memory.peek("k", 500, 0);
                Decision found = redis.peek("k", 500, 0);
                assertThat(found.remaining()).as("step %d", step).isEqualTo(expected.remaining());
                assertThat(found.admitted()).as("step %d", step).isEqualTo(expected.admitted());
                assertThat(found.retryAfter()).as("step %d", step).isEqualTo(expected.retryAfter());
            }
        }
    }
}
