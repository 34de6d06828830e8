package io.ratelimited.redis;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.Threads;
import io.ratelimited.core.several.AllOf;
import io.ratelimited.core.several.Claim;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Calls of several nodes wait for the places of several limits. */
@Timeout(120)
class SeveralWaitsTest {

    @RegisterExtension
    static final RedisServers REDIS = RedisServers.standalone();

    private static List<RateLimiter> places() {
        RedisBackend backend = REDIS.backend(RedisBackendOptions.DEFAULTS.timeout(Duration.ofSeconds(20)));
        return Stream.of("cars", "rooms")
                .map(name -> backend.limiter(
                        Limit.of(name, Algorithm.CONCURRENCY).maxConcurrent(1).build(), RedisLimitOptions.DEFAULTS))
                .toList();
    }

    private static Claim claim(RateLimiter limiter) {
        return Claim.of(limiter, "key", 1, TimeUnit.SECONDS.toNanos(20));
    }

    @Test
    void aCallUnderAnotherLimitWaitsForItsPlaceToo() throws Exception {
        RateLimiter place = places().get(0);
        RateLimiter rate = REDIS.backend(RedisBackendOptions.DEFAULTS.timeout(Duration.ofSeconds(20)))
                .limiter(Limit.of("rate", Algorithm.TOKEN_BUCKET).rate("9/s").build(), RedisLimitOptions.DEFAULTS);
        Reservation other = place.reserve("key", 1, 0);
        Reservation call = AllOf.reserve(List.of(claim(rate), claim(place)));
        assertThat(call.isRefused()).isFalse();
        CompletableFuture<Boolean> turn = call.awaitAsync();
        assertThat(turn).isNotDone();
        other.release();
        assertThat(turn.get(20, TimeUnit.SECONDS)).isTrue();
        call.release();
    }

    /** Each node claims the places in its own order; both take them in one order, so none holds what the other one waits for. */
    @Test
    void placesThatAreClaimedCrosswiseAreNotWaitedForInACircle() throws Exception {
        List<List<RateLimiter>> nodes = List.of(places(), places());
        long gone = Threads.sum(4, thread -> {
            List<RateLimiter> own = nodes.get(thread % 2);
            List<Claim> claims = List.of(claim(own.get(thread % 2)), claim(own.get(1 - thread % 2)));
            long went = 0;
            for (int i = 0; i < 25; i++) {
                Reservation call = AllOf.reserve(claims);
                went += call.await() ? 1 : 0;
                call.release();
            }
            return went;
        });
        assertThat(gone).isEqualTo(100);
        nodes.forEach(node -> node.forEach(place -> assertThat(place.waiting()).isZero()));
    }

    @Test
    void placesOfOneLimitAreTakenTogether() throws Exception {
        RedisBackend backend = REDIS.backend(RedisBackendOptions.DEFAULTS.timeout(Duration.ofSeconds(20)));
        RateLimiter seats = backend.limiter(
                Limit.of("seats", Algorithm.CONCURRENCY).maxConcurrent(2).build(), RedisLimitOptions.DEFAULTS);
        long gone = Threads.sum(4, thread -> {
            long went = 0;
            for (int i = 0; i < 25; i++) {
                Reservation call = AllOf.reserve(List.of(claim(seats), claim(seats)));
                went += call.await() ? 1 : 0;
                call.release();
            }
            return went;
        });
        assertThat(gone).isEqualTo(100);
        assertThat(seats.waiting()).isZero();
    }
}
