package io.ratelimited.redis.internals.limiter;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Decision.Source;
import io.ratelimited.core.DelegatingTicker;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.Ticker;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.redis.RedisBackend;
import io.ratelimited.redis.RedisBackendOptions;
import io.ratelimited.redis.RedisLimitOptions;
import io.ratelimited.redis.RedisServers;
import java.time.Duration;
import java.util.concurrent.TimeoutException;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Which keys are leased, and what must not be lost or remembered when something comes between two steps of a decision. */
@Tag("slow")
class LeasesTest {

    private static final double OVERSHOOT = 0.05;

    @RegisterExtension
    static final RedisServers REDIS = RedisServers.standalone();

    private final ManualTicker ticker = RedisServers.ticker();

    private static Limit limit(String rate) {
        return Limit.of("leased", Algorithm.TOKEN_BUCKET).rate(rate).build();
    }

    /** What would be asked for after a number of calls at one pace. */
    private Lease.Wish after(int calls, Duration pause, long permits, String rate) {
        ScriptParameters parameters = new ScriptParameters(limit(rate), ticker, new Nodes("node", 1));
        KeyState key = new KeyState.Keys(ticker, (millis, task) -> {}, 10).of("k");
        for (int i = 0; i < calls; i++) {
            ticker.advance(pause);
            key.takeLeased(parameters, permits, ticker.nanos());
        }
        return key.wish(parameters, Lease.length(parameters.limit(), OVERSHOOT), 1, ticker.nanos());
    }

    @Test
    void aKeyIsHotByItsCallsNotByTheirPermits() {
        assertThat(after(10, Duration.ofSeconds(1), 1_000, "100000/s")).isNull();
        assertThat(after(1_000, Duration.ofMillis(1), 1, "100000/s").size()).isEqualTo(50);
        assertThat(after(1_000, Duration.ofMillis(1), 20, "100000/s").size()).isEqualTo(1_000);
    }

    @Test
    void aLeaseThatIsTooSmallForACallIsNotTaken() {
        assertThat(after(1_000, Duration.ofMillis(1), 1_000, "10000/s").size()).isZero();
    }

    /** The next one asks Redis for as many as this node may have. */
    @Test
    void aPermitThatComesBackOnceItsLeaseHasEndedStaysSpent() {
        ScriptParameters parameters = new ScriptParameters(limit("10000/s"), ticker, new Nodes("node", 1));
        Lease lease = new Lease(ticker.nanos());
        for (int i = 0; i < 1_000; i++) {
            ticker.advance(Duration.ofMillis(1));
            lease.count(1, ticker.nanos());
        }
        long length = Lease.length(parameters.limit(), OVERSHOOT);
        ScriptReply granted = new ScriptReply(0, 9_000, 0, "mark", parameters, Source.REDIS);
        lease.answered(lease.wish(parameters, length, 1, ticker.nanos()), granted);
        ScriptReply taken = lease.handOut(parameters, 1, ticker.nanos());
        Lease.Wish next = lease.wish(parameters, length, 1, ticker.nanos());
        lease.answered(next, granted);
        lease.takeBack(1, taken);
        assertThat(lease.handOut(parameters, next.size() + 1, ticker.nanos())).isNull();
        assertThat(lease.handOut(parameters, next.size(), ticker.nanos())).isNotNull();
    }

    /** A clock at which something happens once when this thread reads it. */
    private final class Interfering extends DelegatingTicker {

        private Runnable interference = () -> {};
        private Thread thread;

        private Interfering() {
            super(ticker);
        }

        private void arm(Runnable task) {
            interference = task;
            thread = Thread.currentThread();
        }

        @Override
        public long nanos() {
            if (Thread.currentThread() == thread) {
                thread = null;
                interference.run();
            }
            return super.nanos();
        }
    }

    private RedisRateLimiter limiter(Ticker time, Limit limit, double overshoot) {
        RedisBackend backend = REDIS.backend(
                REDIS.connector(),
                RedisBackendOptions.DEFAULTS.ticker(time).timeout(Duration.ofSeconds(20)),
                UnaryOperator.identity());
        return (RedisRateLimiter) backend.limiter(limit, RedisLimitOptions.DEFAULTS.maxOvershoot(overshoot));
    }

    /** The thread that answers has finished with them when it answers another. */
    private static void finishEarlierCalls(RedisRateLimiter limiter) {
        limiter.peek("k", 1, 0);
    }

    @Test
    void aLeasedPermitComesBackIfItsCallerGivesUpBetweenTwoSteps() {
        Interfering time = new Interfering();
        RedisRateLimiter limiter = limiter(time, limit("100000/s"), 1);
        String name = limiter.name("k");
        Reservation leased = limiter.reserve("k", 1, 0);
        for (int call = 0; call < 1000 && leased.decision().source() != Source.LEASE; call++) {
            ticker.advance(Duration.ofMillis(1));
            leased = limiter.reserve("k", 1, 0);
        }
        assertThat(leased.decision().source()).isEqualTo(Source.LEASE);
        long left = leased.decision().remaining();
        finishEarlierCalls(limiter);
        PermitRequest late = new PermitRequest(5, 0);
        time.arm(() -> late.completeExceptionally(new TimeoutException("given up")));
        limiter.join(late, name);
        assertThat(late).isCompletedExceptionally();
        assertThat(limiter.reserve("k", 1, 0).decision().remaining()).isEqualTo(left - 1);
    }

    @Test
    void aRefusalThatWasOnItsWayWhenPermitsCameBackIsNotRemembered() {
        RedisRateLimiter limiter = limiter(ticker, limit("1/h"), 0);
        String name = limiter.name("k");
        Reservation first = limiter.reserve("k", 1, 0);
        long sentAt = ticker.nanos();
        PermitRequest second = new PermitRequest(1, 0);
        ScriptReply refused = ScriptReply.local(~1_000_000_000L, 0, limiter.parameters());
        ticker.advance(Duration.ofMillis(1));
        first.cancel();
        finishEarlierCalls(limiter);
        KeyState key = limiter.states().of(name);
        key.refused(second, refused, sentAt, 0);
        assertThat(limiter.knownUnleased(name, limiter.parameters(), new Wanted(1, 0)))
                .isNull();
        key.refused(second, refused, ticker.nanos(), 0);
        assertThat(limiter.knownUnleased(name, limiter.parameters(), new Wanted(1, 0)))
                .isNotNull();
    }
}
