package io.ratelimited.redis.simulation;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Decision;
import io.ratelimited.core.Decision.Source;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.several.AllOf;
import io.ratelimited.core.several.Claim;
import io.ratelimited.redis.OnFailure;
import io.ratelimited.redis.RedisBackend;
import io.ratelimited.redis.RedisHealth;
import io.ratelimited.redis.RedisLimitOptions;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Several limits on one call of a server whose replies are slow, and each of them in time. In virtual time. */
@Tag("once")
@Tag("slow")
class SeveralStepsTest {

    private static final long SECOND = Duration.ofSeconds(1).toNanos();

    private final DirectServer server = new DirectServer();
    private final RedisBackend node = server.node("node", 2);
    private final RateLimiter rate = limiter("rate", "2/h");
    private final RateLimiter places = node.limiter(
            Limit.of("places", Algorithm.CONCURRENCY).maxConcurrent(2).build(), RedisLimitOptions.DEFAULTS);

    private RateLimiter limiter(String name, String perPeriod) {
        return node.limiter(
                Limit.of(name, Algorithm.TOKEN_BUCKET).rate(perPeriod).build(), RedisLimitOptions.DEFAULTS);
    }

    private static Claim claim(RateLimiter limiter, long permits) {
        return Claim.of(limiter, "k", permits, 0);
    }

    @AfterEach
    void close() {
        server.release();
        node.close();
    }

    /** Each reply comes after so long. */
    private Reservation reserve(Duration reply, Claim... claims) {
        server.hold();
        CompletableFuture<Reservation> call =
                AllOf.reserveAsync(List.of(claims)).toCompletableFuture();
        for (int trip = 0; trip < 10 && !call.isDone(); trip++) {
            server.ticker.advance(reply);
            server.deliver();
        }
        server.release();
        return call.join();
    }

    private long left(RateLimiter limiter) {
        Decision decision = limiter.peek("k", 1, 0);
        assertThat(decision.source()).isEqualTo(Source.REDIS);
        return decision.remaining();
    }

    /** @param placeFirst the order of the claims */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aRateAndAPlaceAreDecidedByRedisWhileEachReplyIsInTime(boolean placeFirst) {
        Claim one = placeFirst ? claim(places, 1) : claim(rate, 1);
        Claim other = placeFirst ? claim(rate, 1) : claim(places, 1);
        Duration reply = Node.TIMEOUT.minusMillis(1);
        Reservation first = reserve(reply, one, other);
        assertThat(first.isRefused()).isFalse();
        assertThat(first.decision().source()).isEqualTo(Source.REDIS);
        assertThat(left(rate)).isOne();
        assertThat(left(places)).isOne();
        first.release();
        assertThat(left(rate)).isOne();
        assertThat(left(places)).isEqualTo(2);
        Reservation second = reserve(reply, one, other);
        second.cancel();
        assertThat(left(rate)).isOne();
        assertThat(left(places)).isEqualTo(2);
    }

    @Test
    void aRejectionByOneLimitLeavesTheOtherAsItWas() {
        Reservation running = reserve(Duration.ZERO, claim(places, 2));
        Reservation busy = reserve(Duration.ofMillis(20), claim(rate, 1), claim(places, 1));
        assertThat(AllOf.refusals(busy)).extracting(SeveralStepsTest::name).containsExactly("", "places");
        assertThat(busy.decision().source()).isEqualTo(Source.REDIS);
        assertThat(left(rate)).isEqualTo(2);
        running.release();
        rate.tryAcquire("k", 2);
        Reservation spent = reserve(Duration.ofMillis(20), claim(places, 1), claim(rate, 1));
        assertThat(AllOf.refusals(spent)).extracting(SeveralStepsTest::name).containsExactly("", "rate");
        assertThat(left(places)).isEqualTo(2);
        reserve(Duration.ZERO, claim(places, 2));
        // What is known of the places is over.
        server.ticker.advanceNanos(SECOND);
        Reservation both = reserve(Duration.ofMillis(20), claim(places, 1), claim(rate, 1));
        assertThat(AllOf.refusals(both)).extracting(SeveralStepsTest::name).containsExactly("places", "rate");
        assertThat(both.decision().limit()).isEqualTo("rate");
    }

    private static String name(Decision refusal) {
        return refusal == null ? "" : refusal.limit();
    }

    /** The call holds it while it waits, as in memory. */
    @Test
    void aPlaceThatIsNotWaitedForIsTakenAtOnceBesideARateThatIs() {
        rate.tryAcquire("k", 2);
        Reservation call = reserve(
                Duration.ofMillis(20),
                Claim.of(rate, "k", 1, Duration.ofHours(1).toNanos()),
                claim(places, 1));
        assertThat(call.isRefused()).isFalse();
        assertThat(call.waitNanos()).isPositive();
        assertThat(call.decision().source()).isEqualTo(Source.REDIS);
        assertThat(left(places)).isOne();
        call.cancel();
        assertThat(left(places)).isEqualTo(2);
    }

    /** A call that may not wait does not overtake one of its node that waits. */
    @Test
    void aPlaceForWhichOthersWaitIsRejected() {
        Reservation running = places.reserve("k", 2, 0);
        CompletableFuture<Boolean> turn =
                places.reserve("k", 2, Duration.ofHours(1).toNanos()).awaitAsync();
        assertThat(reserve(Duration.ZERO, claim(rate, 1), claim(places, 1)).isRefused())
                .isTrue();
        assertThat(left(rate)).isEqualTo(2);
        running.release();
        assertThat(turn).isCompletedWithValue(true);
    }

    /** @param lost the reply never comes */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aReplyThatIsLateKeepsNoPlace(boolean lost) {
        server.hold();
        CompletableFuture<Reservation> call =
                AllOf.reserveAsync(List.of(claim(rate, 1), claim(places, 1))).toCompletableFuture();
        server.ticker.advance(Node.TIMEOUT);
        assertThat(call.join().decision().source()).isEqualTo(Source.FALLBACK);
        call.join().cancel();
        if (lost) {
            server.lose();
        }
        server.release();
        server.ticker.advanceNanos(2 * SECOND);
        assertThat(left(places)).isEqualTo(2);
        assertThat(left(rate)).isEqualTo(lost ? 1 : 2);
        assertThat(places.keys()).isZero();
    }

    @Test
    void whoGivesUpBeforeTheReplyKeepsNoPlace() {
        server.hold();
        CompletableFuture<Reservation> call =
                AllOf.reserveAsync(List.of(claim(rate, 1), claim(places, 1))).toCompletableFuture();
        call.cancel(false);
        server.release();
        server.ticker.advanceNanos(2 * SECOND);
        assertThat(left(places)).isEqualTo(2);
        assertThat(left(rate)).isEqualTo(2);
        assertThat(places.keys()).isZero();
    }

    /** Each is in time: the server is up, and its health shows that the timeout is too short for the call. */
    @Test
    void repliesThatAreLateTogetherAreCounted() {
        long before = node.health().timeouts();
        Claim patient = Claim.of(places, "k", 1, SECOND);
        Reservation call = reserve(Node.TIMEOUT.dividedBy(2), claim(rate, 1), patient);
        assertThat(call.decision().source()).isEqualTo(Source.FALLBACK);
        assertThat(node.health().timeouts()).isEqualTo(before + 1);
        assertThat(node.health().state()).isEqualTo(RedisHealth.State.UP);
        call.cancel();
        server.ticker.advanceNanos(2 * SECOND);
        call = reserve(Node.TIMEOUT.dividedBy(4), claim(rate, 1), patient);
        assertThat(call.decision().source()).isEqualTo(Source.REDIS);
        assertThat(node.health().timeouts()).isEqualTo(before + 1);
    }

    /** It needs nothing that Redis would have to give, also of a call whose other limits do not reply in time. */
    @ParameterizedTest
    @EnumSource
    void aLimitThatCountsNothingDecidesAsItDoesAlone(OnFailure onFailure) {
        RedisLimitOptions options = RedisLimitOptions.DEFAULTS.onFailure(onFailure);
        for (String constant : List.of("unlimited", "0/s")) {
            RateLimiter alone = node.limiter(
                    Limit.of("constant", Algorithm.TOKEN_BUCKET).rate(constant).build(), options);
            server.ticker.advanceNanos(SECOND);
            Reservation call = reserve(
                    Node.TIMEOUT.minusMillis(1), claim(alone, 1), Claim.of(limiter("waits", "100/s"), "k", 1, SECOND));
            assertThat(AllOf.member(call, 0).decision())
                    .isEqualTo(alone.reserve("k", 1, 0).decision());
            assertThat(call.isRefused()).isEqualTo(constant.equals("0/s"));
        }
    }
}
