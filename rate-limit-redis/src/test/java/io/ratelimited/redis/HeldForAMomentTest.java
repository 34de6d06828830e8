package io.ratelimited.redis;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Threads;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.several.AllOf;
import io.ratelimited.core.several.Claim;
import io.ratelimited.core.testing.ManualTicker;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Calls of one key race for a permit on Redis and one in memory, and others for that in memory alone. */
class HeldForAMomentTest {

    private static final int RACES = 400;

    @RegisterExtension
    static final RedisServers REDIS = RedisServers.standalone();

    private final ManualTicker time = RedisServers.ticker();
    private final RateLimiter memory = new InMemoryRateLimiter(limit("memory").build(), time, RACES);
    private final RateLimiter redis = REDIS.backend(time)
            .limiter(limit("redis").block(Duration.ofMinutes(10)).build(), RedisLimitOptions.DEFAULTS);

    private static Limit.Builder limit(String name) {
        return Limit.of(name, Algorithm.TOKEN_BUCKET).rate("1/h");
    }

    private static boolean isAdmitted(boolean blocking, Claim... claims) {
        return !(blocking
                        ? AllOf.reserve(List.of(claims))
                        : AllOf.reserveAsync(List.of(claims))
                                .toCompletableFuture()
                                .join())
                .isRefused();
    }

    @Test
    void noKeyIsBlockedThatHasUsedNothing() throws Exception {
        AtomicInteger arrived = new AtomicInteger();
        AtomicInteger[] used = new AtomicInteger[RACES];
        for (int race = 0; race < RACES; race++) {
            used[race] = new AtomicInteger();
        }
        Threads.run(5, thread -> {
            for (int race = 0; race < RACES; race++) {
                String key = "k" + race;
                int all = 5 * (race + 1);
                arrived.incrementAndGet();
                Threads.until(() -> arrived.get() >= all);
                Claim redis = Claim.of(this.redis, key, 1, 0);
                if (thread == 0) {
                    memory.tryAcquire(key, 1);
                } else if (isAdmitted(thread % 2 == 0, redis, Claim.of(memory, key, 1, 0))) {
                    used[race].incrementAndGet();
                }
            }
            return null;
        });
        int unused = 0;
        int wrong = 0;
        for (int race = 0; race < RACES; race++) {
            boolean blocked = redis.peek("k" + race, 1, 0).blocked();
            wrong += blocked && used[race].get() == 0 ? 1 : 0;
            unused += used[race].get() == 0 ? 1 : 0;
        }
        assertThat(wrong)
                .as("blocked, of %s keys that have used nothing", unused)
                .isZero();
    }
}
