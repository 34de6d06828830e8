package io.ratelimited.redis.simulation;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Decision;
import io.ratelimited.core.Decision.Source;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import io.ratelimited.redis.RedisBackend;
import io.ratelimited.redis.RedisHealth;
import io.ratelimited.redis.RedisLimitOptions;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Calls in flight with more permits than this node may have while Redis is away: no call that ends here admits them, and nobody
 * waits behind them. After a single late reply, which is no outage, they wait if they can. In virtual time.
 */
@Tag("once")
class HeavyCallsTest {

    private static final Limit LIMIT =
            Limit.of("exports", Algorithm.CONCURRENCY).maxConcurrent(4).build();
    private static final long MINUTE = Duration.ofMinutes(1).toNanos();

    private final DirectServer server = new DirectServer();
    /** Its share of the limit is 2. */
    private final RedisBackend node = server.node("node", 2);

    private final RateLimiter limiter = node.limiter(LIMIT, RedisLimitOptions.DEFAULTS);

    @AfterEach
    void close() {
        server.release();
        node.close();
    }

    private void startOutage() {
        server.hold();
        limiter.reserveAsync("other", 1, 0);
        server.ticker.advance(Node.TIMEOUT.multipliedBy(3));
    }

    private static void isRefusedByTheNode(Reservation call, boolean never) {
        assertThat(call.isRefused()).isTrue();
        Decision decision = call.decision();
        assertThat(decision.source()).isEqualTo(Source.FALLBACK);
        assertThat(decision.retryAfter()).isNull();
        assertThat(decision.never()).isEqualTo(never);
    }

    @Test
    void aCallThatComesInAnOutageIsRefusedAtOnceAndBlocksNobody() {
        startOutage();
        assertThat(limiter.peek("k", 3, MINUTE).admitted()).isFalse();
        isRefusedByTheNode(limiter.reserve("k", 3, MINUTE), false);
        isRefusedByTheNode(limiter.reserve("k", 5, MINUTE), true);
        Reservation light = limiter.reserve("k", 2, 0);
        assertThat(light.isRefused()).isFalse();
        CompletableFuture<Boolean> next = limiter.reserve("k", 2, MINUTE).awaitAsync();
        isRefusedByTheNode(limiter.reserve("k", 3, MINUTE), false);
        light.release();
        assertThat(next).isCompletedWithValue(true);
    }

    @Test
    void aCallThatWaitsWhenTheOutageBeginsIsRefusedAndBlocksNobody() {
        Reservation running = limiter.reserve("k", 2, 0);
        Reservation heavy = limiter.reserve("k", 3, MINUTE);
        CompletableFuture<Boolean> heavyTurn = heavy.awaitAsync();
        CompletableFuture<Boolean> lightTurn = limiter.reserve("k", 1, MINUTE).awaitAsync();
        startOutage();
        server.ticker.advance(Duration.ofMillis(100));
        assertThat(heavyTurn).isCompletedWithValue(false);
        isRefusedByTheNode(heavy, false);
        assertThat(lightTurn).as("the share is taken").isNotDone();
        running.release();
        assertThat(lightTurn).isCompletedWithValue(true);
    }

    /** The server goes on before its probe is late, too. */
    private void endPause() {
        server.ticker.advance(Node.TIMEOUT.dividedBy(2));
        server.release();
        assertThat(node.health().state()).isEqualTo(RedisHealth.State.UP);
        server.ticker.advance(Duration.ofMillis(100));
    }

    @Test
    void aCallThatWaitsGoesOnWaitingAfterASingleLateReply() {
        Reservation running = limiter.reserve("k", 2, 0);
        Reservation heavy = limiter.reserve("k", 3, MINUTE);
        CompletableFuture<Boolean> turn = heavy.awaitAsync();
        server.hold();
        limiter.reserveAsync("other", 1, 0);
        server.ticker.advance(Node.TIMEOUT.plusMillis(20));
        assertThat(node.health().state()).isEqualTo(RedisHealth.State.UP);
        assertThat(turn).isNotDone();
        running.release();
        endPause();
        assertThat(turn).isCompletedWithValue(true);
        assertThat(heavy.decision().source()).isEqualTo(Source.REDIS);
    }

    @Test
    void aCallWhoseOwnReplyIsLateWaitsIfItCan() {
        server.hold();
        CompletableFuture<Reservation> patient =
                limiter.reserveAsync("k", 3, MINUTE).toCompletableFuture();
        CompletableFuture<Reservation> hasty = limiter.reserveAsync("k", 3, 0).toCompletableFuture();
        server.ticker.advance(Node.TIMEOUT);
        isRefusedByTheNode(hasty.join(), false);
        assertThat(limiter.peek("k", 3, MINUTE).admitted()).isTrue();
        isRefusedByTheNode(limiter.reserve("k", 5, MINUTE), true);
        CompletableFuture<Boolean> turn = patient.join().awaitAsync();
        assertThat(turn).isNotDone();
        endPause();
        assertThat(turn).isCompletedWithValue(true);
    }

    @Test
    void aWaiterWhoAsksForMoreThanAChangeInAnOutageLeavesIsRefusedForGood() {
        startOutage();
        Reservation running = limiter.reserve("k", 2, 0);
        Reservation heavy = limiter.reserve("k", 2, MINUTE);
        CompletableFuture<Boolean> turn = heavy.awaitAsync();
        assertThat(turn).isNotDone();
        limiter.update(LIMIT.toBuilder().maxConcurrent(1).build());
        assertThat(turn).isCompletedWithValue(false);
        isRefusedByTheNode(heavy, true);
        running.release();
        assertThat(limiter.reserve("k", 1, 0).isRefused()).isFalse();
    }

    private static final Duration LEASE = Duration.ofSeconds(4);

    private RateLimiter leased() {
        return node.limiter(LIMIT.toBuilder().lease(LEASE).build(), RedisLimitOptions.DEFAULTS);
    }

    @Test
    void aCallWhoseLeaseHasEndedIsNotCountedInTheNextOutage() {
        RateLimiter leased = leased();
        leased.reserve("k", 2, 0);
        server.ticker.advance(Duration.ofMinutes(1));
        assertThat(leased.keys()).isZero();
        startOutage();
        assertThat(leased.reserve("k", 2, 0).isRefused()).isFalse();
        assertThat(leased.reserve("k", 1, 0).isRefused()).isTrue();
    }

    @Test
    void aLeaseEndsInAnOutageToo() {
        RateLimiter leased = leased();
        startOutage();
        Reservation call = leased.reserve("k", 2, 0);
        CompletableFuture<Boolean> turn = leased.reserve("k", 1, MINUTE).awaitAsync();
        server.ticker.advance(LEASE.minusNanos(1));
        assertThat(turn).isNotDone();
        server.ticker.advance(Duration.ofMillis(100));
        assertThat(turn).as("a waiter looks ten times a second").isCompletedWithValue(true);
        call.release();
        assertThat(leased.peek("k", 2, 0).admitted()).as("it ends once").isFalse();
        assertThat(leased.reserve("k", 1, 0).isRefused()).isFalse();
    }

    /** @param none the limit has no lease any more */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aLeaseThatChangesInAnOutageHoldsForTheCallsOfTheNode(boolean none) {
        RateLimiter leased = leased();
        startOutage();
        leased.reserve("k", 2, 0);
        leased.update(
                none ? LIMIT : LIMIT.toBuilder().lease(Duration.ofSeconds(1)).build());
        server.ticker.advance(Duration.ofMinutes(1));
        assertThat(leased.reserve("k", 2, 0).isRefused()).isEqualTo(none);
    }

    @Test
    void aShorterLeaseEndsCallsAtOnce() {
        RateLimiter leased = leased();
        startOutage();
        leased.reserve("k", 2, 0);
        server.ticker.advance(Duration.ofSeconds(2));
        assertThat(leased.peek("k", 2, 0).admitted()).isFalse();
        leased.update(LIMIT.toBuilder().lease(Duration.ofSeconds(1)).build());
        assertThat(leased.reserve("k", 2, 0).isRefused()).isFalse();
    }
}
