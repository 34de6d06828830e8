package io.ratelimited.redis;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.CallerLimit;
import io.ratelimited.core.CallersNumbersContract;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

@Tag("once")
@Tag("slow")
class CallersNumbersTest extends CallersNumbersContract {

    @RegisterExtension
    static final RedisServers REDIS = RedisServers.standalone();

    private final List<RedisBackend> backends = new ArrayList<>();

    @Override
    protected List<RateLimiter> limiters(Limit limit) {
        while (backends.size() < 2) {
            backends.add(REDIS.backend(ticker));
        }
        return backends.stream()
                .map(backend -> backend.limiter(limit, RedisLimitOptions.DEFAULTS))
                .toList();
    }

    @Override
    protected int calls() {
        return 500;
    }

    @Override
    protected int tenants() {
        return 500;
    }

    @Test
    @Tag("proof")
    void eachOfAHundredThousandTenantsHasExactlyItsNumbers() {
        everyTenantHasExactlyItsNumbers(Algorithm.FIXED_WINDOW, 100_000);
    }

    /** They wait for one another's command, and each is decided by its own numbers. */
    @Test
    void callsOfOneKeyThatComeTogetherAreDecidedByTheirNumbers() {
        RateLimiter limiter = limiters(
                        Limit.of("together", Algorithm.FIXED_WINDOW).rate("7/m").build())
                .get(0);
        RateLimiter large = limiter.ofCallers(CallerLimit.of("100/m"));
        List<CompletableFuture<Reservation>> calls = new ArrayList<>();
        for (int i = 0; i < 60; i++) {
            calls.add((i % 2 == 0 ? large : limiter).reserveAsync("k", 1, 0).toCompletableFuture());
        }
        long admitted = calls.stream().filter(call -> !call.join().isRefused()).count();
        // Of both while there are less than 7, then of the large ones.
        assertThat(admitted).isBetween(33L, 34L);
    }
}
