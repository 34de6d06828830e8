package io.ratelimited.redis;

import static io.ratelimited.redis.RedisProcess.until;
import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Decision.Source;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import java.time.Duration;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** A connection that is accepted and never answered, as by a proxy whose server is away: it holds up nothing else. */
@Tag("once")
@Tag("slow")
class DeafServerTest {

    @RegisterExtension
    static final RedisServers REDIS = RedisServers.standalone();

    /** For a second each attempt to connect is never answered, and those stay so; any later one would be. */
    private static void leaveUnanswered(FarNode far) throws InterruptedException {
        far.cut();
        far.network().deafen(true);
        int accepted = far.network().accepted();
        far.network().cut(false);
        until(() -> far.network().accepted() > accepted, "an attempt to connect", FarNode.PATIENCE);
        Thread.sleep(1000);
        far.network().deafen(false);
    }

    @Test
    void anAttemptThatIsNeverAnsweredDelaysNoOther() throws InterruptedException {
        FarNode far = FarNode.of(REDIS, FarNode.PATIENT);
        far.awaitRedis();
        leaveUnanswered(far);
        until(() -> far.backend().health().state() == RedisHealth.State.UP, "back", Duration.ofSeconds(10));
        far.awaitRedis();
    }

    /** What runs keeps its place, though an attempt to connect hung for longer than a place is kept without news (30 s). */
    @Test
    @Tag("proof")
    void callsInFlightKeepTheirPlacesWhileAnAttemptIsNeverAnswered() throws InterruptedException {
        FarNode far = FarNode.of(REDIS, FarNode.PATIENT);
        RedisBackend near = REDIS.backend(FarNode.PATIENT.timeout(Duration.ofSeconds(20)));
        Limit limit = Limit.of("places", Algorithm.CONCURRENCY).maxConcurrent(2).build();
        RateLimiter limiter = far.limiter(limit);
        for (int i = 0; i < 2; i++) {
            FarNode.admitted(() -> limiter.reserve("k", 1, 0));
        }
        leaveUnanswered(far);
        RateLimiter other = near.limiter(limit, RedisLimitOptions.DEFAULTS);
        long end = System.nanoTime() + Duration.ofSeconds(35).toNanos();
        int givenAway = 0;
        while (System.nanoTime() - end < 0) {
            givenAway += other.reserve("k", 1, 0).isRefused() ? 0 : 1;
            Thread.sleep(100);
        }
        assertThat(givenAway).isZero();
    }

    @Test
    void anApplicationThatMeetsADeafServerFirstFindsItWhenItAnswers() {
        Proxy network = REDIS.closeLater(new Proxy(REDIS.server().port()));
        network.deafen(true);
        RedisBackend backend =
                REDIS.closeLater(RedisBackend.of(RedisServers.settings(network.port()), FarNode.PATIENT));
        RateLimiter limiter = backend.limiter(
                Limit.of("deaf", Algorithm.TOKEN_BUCKET).rate("1000/s").build(), RedisLimitOptions.DEFAULTS);
        assertThat(limiter.reserve("k", 1, 0).decision().source()).isEqualTo(Source.FALLBACK);
        network.deafen(false);
        until(() -> limiter.reserve("k", 1, 0).decision().source() == Source.REDIS, "found", Duration.ofSeconds(10));
    }
}
