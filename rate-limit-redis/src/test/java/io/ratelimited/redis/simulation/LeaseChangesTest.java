package io.ratelimited.redis.simulation;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Decision;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import io.ratelimited.redis.RedisBackend;
import io.ratelimited.redis.RedisLimitOptions;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The lease of a limit changes while calls run for minutes, as {@code RateLimiterContract} says for seconds. In virtual time. */
@Tag("once")
@Tag("slow")
class LeaseChangesTest {

    private static final Limit ONE_CALL =
            Limit.of("exports", Algorithm.CONCURRENCY).maxConcurrent(1).build();
    /** Less than the time between two registrations. */
    private static final Limit SHORT = leased(Duration.ofSeconds(4));

    private static final Limit LONG = leased(Duration.ofMinutes(10));

    private final DirectServer server = new DirectServer();
    private final RedisBackend node = server.node("node");
    private final RateLimiter elsewhere = server.node("other").limiter(ONE_CALL, RedisLimitOptions.DEFAULTS);

    private static Limit leased(Duration lease) {
        return ONE_CALL.toBuilder().lease(lease).build();
    }

    private RateLimiter limiter(Limit limit) {
        return node.limiter(limit, RedisLimitOptions.DEFAULTS);
    }

    @AfterEach
    void close() {
        server.release();
        node.close();
    }

    /** Nobody else is admitted while it runs. */
    private void keepsItsPlace(Reservation call, Duration running) {
        for (long second = 0; second < running.toSeconds(); second++) {
            server.ticker.advance(Duration.ofSeconds(1));
            assertThat(elsewhere.reserve(null, 1, 0).isRefused())
                    .as("second %d", second)
                    .isTrue();
        }
        call.release();
        assertThat(elsewhere.reserve(null, 1, 0).isRefused()).isFalse();
    }

    @Test
    void aCallThatWasAdmittedWithoutALeaseKeepsItsPlaceWhenTheLimitGetsOne() {
        RateLimiter limiter = limiter(ONE_CALL);
        Reservation call = limiter.reserve(null, 1, 0);
        limiter.update(SHORT);
        server.ticker.advance(Duration.ofSeconds(10));
        limiter.update(LONG);
        keepsItsPlace(call, Duration.ofMinutes(20));
    }

    @Test
    void aCallWhoseLeaseIsRemovedKeepsItsPlace() {
        RateLimiter limiter = limiter(SHORT);
        Reservation call = limiter.reserve(null, 1, 0);
        limiter.update(ONE_CALL);
        keepsItsPlace(call, Duration.ofMinutes(2));
    }

    @Test
    void aLeaseThatIsSetAgainCountsFromTheAdmissionOfTheCall() {
        RateLimiter limiter = limiter(SHORT);
        limiter.reserve(null, 1, 0);
        limiter.update(ONE_CALL);
        server.ticker.advance(Duration.ofMinutes(9));
        limiter.update(LONG);
        server.ticker.advance(Duration.ofSeconds(59));
        assertThat(elsewhere.reserve(null, 1, 0).isRefused()).isTrue();
        server.ticker.advance(Duration.ofSeconds(1));
        assertThat(elsewhere.reserve(null, 1, 0).isRefused()).isFalse();
    }

    /** @param millis since the beginning of the outage: before and after the node knows of it */
    @ParameterizedTest
    @ValueSource(longs = {0, 2_000})
    void aLeaseThatChangesInAnOutageHoldsAfterIt(long millis) {
        RateLimiter limiter = limiter(SHORT);
        Reservation call = limiter.reserve(null, 1, 0);
        server.hold();
        server.ticker.advance(Duration.ofMillis(millis));
        limiter.update(LONG);
        server.ticker.advance(Duration.ofMillis(2_500));
        server.release();
        server.ticker.advance(Duration.ofSeconds(1));
        keepsItsPlace(call, Duration.ofMinutes(9));
    }

    /** The node has looked for leases that end under the lease before. */
    @Test
    void aLeaseThatIsShortenedEndsInAnOutageToo() {
        RateLimiter limiter = limiter(LONG);
        limiter.reserve(null, 1, 0);
        server.ticker.advance(Duration.ofSeconds(11));
        limiter.update(SHORT);
        server.hold();
        server.ticker.advance(Duration.ofSeconds(5));
        Reservation call = limiter.reserve(null, 1, 0);
        assertThat(call.isRefused()).isFalse();
        assertThat(call.decision().source()).isEqualTo(Decision.Source.FALLBACK);
    }

    private Reservation changedWhileRedisAdmits(Limit before, Limit after) {
        RateLimiter limiter = limiter(before);
        server.hold();
        CompletableFuture<Reservation> call = limiter.reserveAsync(null, 1, 0).toCompletableFuture();
        limiter.update(after);
        server.release();
        return call.join();
    }

    @Test
    void aLeaseThatChangesWhileRedisAdmitsACallHoldsForIt() {
        keepsItsPlace(changedWhileRedisAdmits(SHORT, LONG), Duration.ofMinutes(9));
    }

    @Test
    void aCallThatRedisHasAdmittedWithoutALeaseHasNoneThoughTheLimitHasOneWhenItBegins() {
        keepsItsPlace(changedWhileRedisAdmits(ONE_CALL, SHORT), Duration.ofMinutes(1));
    }
}
