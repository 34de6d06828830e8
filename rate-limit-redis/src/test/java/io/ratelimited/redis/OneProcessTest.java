package io.ratelimited.redis;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.InvalidLimitException;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.testing.ManualTicker;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** What is known in one process alone is refused by Redis, with the remedy. */
class OneProcessTest {

    @RegisterExtension
    static final RedisServers REDIS = RedisServers.standalone();

    private final ManualTicker ticker = RedisServers.ticker();

    private RateLimiter limiter(Limit limit) {
        return REDIS.backend(ticker).limiter(limit, RedisLimitOptions.DEFAULTS);
    }

    @Test
    void aLimitThatFindsItselfIsRefused() {
        Limit limit = Limit.of("reports", Algorithm.ADAPTIVE).build();
        assertThatThrownBy(() -> limiter(limit))
                .isInstanceOf(InvalidLimitException.class)
                .hasMessageStartingWith("algorithm ADAPTIVE adapts the limit of one process")
                .hasMessageContaining("set the backend to memory for limit 'reports'");
    }

    @Test
    void classesAreRefusedAlsoByAChange() {
        Limit plain = Limit.of("export", Algorithm.CONCURRENCY).maxConcurrent(2).build();
        Limit ordered = plain.toBuilder().priorities(List.of("good", "bad")).build();
        RateLimiter limiter = limiter(plain);
        assertThatThrownBy(() -> limiter(ordered))
                .isInstanceOf(InvalidLimitException.class)
                .hasMessageContaining("[good, bad]; remove them, or set the backend to memory");
        assertThatThrownBy(() -> limiter.update(ordered)).isInstanceOf(InvalidLimitException.class);
    }
}
