package io.ratelimited.redis;

import static io.ratelimited.redis.RedisProcess.until;
import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Decision.Source;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** A connection that is accepted and never answered, as by a proxy whose server is away: it holds up nothing else. */
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

    @Test
    void anApplicationThatMeetsADeafServerFirstFindsItWhenItAnswers() {
        Proxy network = REDIS.closeLater(new Proxy(REDIS.server().port()));
        network.deafen(true);
        RedisBackend backend = REDIS.closeLater(RedisBackend.of(REDIS.client(network.port()), FarNode.PATIENT));
        RateLimiter limiter = backend.limiter(
                Limit.of("deaf", Algorithm.TOKEN_BUCKET).rate("1000/s").build(), RedisLimitOptions.DEFAULTS);
        assertThat(limiter.reserve("k", 1, 0).decision().source()).isEqualTo(Source.FALLBACK);
        network.deafen(false);
        until(() -> limiter.reserve("k", 1, 0).decision().source() == Source.REDIS, "found", Duration.ofSeconds(10));
    }
}
