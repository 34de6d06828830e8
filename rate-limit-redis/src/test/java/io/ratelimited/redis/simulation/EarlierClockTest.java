package io.ratelimited.redis.simulation;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import io.ratelimited.redis.RedisBackend;
import io.ratelimited.redis.RedisLimitOptions;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Calls in flight after a failover to a server whose clock is an hour behind. In virtual time. */
@Tag("once")
class EarlierClockTest {

    private static final Limit FOUR =
            Limit.of("exports", Algorithm.CONCURRENCY).maxConcurrent(4).build();

    private final DirectServer server = new DirectServer();
    private final List<RedisBackend> nodes = new ArrayList<>();

    private RateLimiter node(Limit limit) {
        RedisBackend node = server.node("node" + nodes.size());
        nodes.add(node);
        return node.limiter(limit, RedisLimitOptions.DEFAULTS);
    }

    @AfterEach
    void close() {
        nodes.forEach(RedisBackend::close);
    }

    private void stepBack() {
        server.ticker.setWallClock(
                Instant.EPOCH.plusNanos(server.ticker.epochNanos()).minus(Duration.ofHours(1)));
    }

    /** The seconds after which a call gets a place, at most an hour and a half. */
    private int secondsUntilAdmitted(RateLimiter limiter, long permits) {
        for (int second = 0; second < 5400; second++) {
            Reservation call = limiter.reserve(null, permits, 0);
            if (!call.isRefused()) {
                call.release();
                return second;
            }
            server.ticker.advance(Duration.ofSeconds(1));
        }
        return 5400;
    }

    @Test
    void placesOfAnInstanceThatHasDiedAreFreeAfterHalfAMinute() {
        RateLimiter dead = node(FOUR);
        RateLimiter live = node(FOUR);
        dead.reserve(null, 1, 0);
        dead.reserve(null, 3, 0);
        nodes.remove(0).close();
        stepBack();
        assertThat(secondsUntilAdmitted(live, 4)).isBetween(20, 31);
        assertThat(live.reserve(null, 4, 0).isRefused()).isFalse();
    }

    @Test
    void oneCallAfterTheFailoverIsEnough() {
        RateLimiter dead = node(FOUR);
        RateLimiter live = node(FOUR);
        dead.reserve(null, 4, 0);
        nodes.remove(0).close();
        stepBack();
        live.reserve(null, 1, 0);
        server.ticker.advance(Duration.ofSeconds(31));
        assertThat(live.peek(null, 4, 0).admitted()).isTrue();
    }

    @Test
    void placesOfLiveInstancesStayTaken() {
        RateLimiter dead = node(FOUR);
        RateLimiter live = node(FOUR);
        RateLimiter other = node(FOUR);
        dead.reserve(null, 1, 0);
        Reservation running = other.reserve(null, 3, 0);
        nodes.remove(0).close();
        stepBack();
        assertThat(secondsUntilAdmitted(live, 1)).isBetween(20, 31);
        for (int second = 0; second < 120; second++) {
            assertThat(live.reserve(null, 2, 0).isRefused()).isTrue();
            server.ticker.advance(Duration.ofSeconds(1));
        }
        running.release();
        assertThat(live.reserve(null, 4, 0).isRefused()).isFalse();
    }

    @Test
    void aLeaseEndsAfterItsLengthFromThenOn() {
        Limit leased = FOUR.toBuilder().lease(Duration.ofMinutes(10)).build();
        RateLimiter dead = node(leased);
        RateLimiter live = node(leased);
        dead.reserve(null, 4, 0);
        server.ticker.advance(Duration.ofMinutes(1));
        nodes.remove(0).close();
        stepBack();
        assertThat(secondsUntilAdmitted(live, 1)).isBetween(540, 601);
    }

    /** As during a rollout. */
    @Test
    void aCallKeepsItsPlaceThoughAnotherInstanceHasAShorterLease() {
        RateLimiter leased = node(FOUR.toBuilder().lease(Duration.ofMinutes(10)).build());
        RateLimiter live = node(FOUR);
        leased.reserve(null, 4, 0);
        assertThat(secondsUntilAdmitted(live, 1)).isBetween(598, 601);
    }
}
