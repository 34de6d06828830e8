package io.ratelimited.redis;

import static io.ratelimited.redis.RedisProcess.until;
import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.CanonicalKey;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Redis runs a script, and its reply is lost with the connection: what it has counted is counted once. */
class AtMostOnceTest {

    private static final int BUDGET = 1000;

    @RegisterExtension
    static final RedisServers REDIS = RedisServers.standalone();

    /** A connection that breaks is no matter of the timeout. */
    private final FarNode far = FarNode.of(REDIS, FarNode.PATIENT.timeout(Duration.ofSeconds(10)));

    private final RedisBackend near = REDIS.backend(FarNode.PATIENT.timeout(Duration.ofSeconds(20)));

    private static Limit limit(Algorithm algorithm) {
        return Limit.of("once", algorithm).rate(BUDGET + "/3650d").build();
    }

    private long free(Limit limit) {
        return near.limiter(limit, RedisLimitOptions.DEFAULTS)
                .peek("lost", 1, 0)
                .remaining();
    }

    /** Refused while Redis is away, so that the node has nothing of its own to charge. */
    private RateLimiter limiter(Limit limit) {
        far.awaitRedis();
        return far.backend().limiter(limit, RedisLimitOptions.DEFAULTS.onFailure(OnFailure.DENY));
    }

    @ParameterizedTest
    @EnumSource(names = {"TOKEN_BUCKET", "FIXED_WINDOW"})
    void aQuestionWhoseReplyIsLostIsNotAskedAgain(Algorithm algorithm) {
        loseReplies(4, algorithm);
    }

    private void loseReplies(int replies, Algorithm algorithm) {
        Limit limit = limit(algorithm);
        RateLimiter limiter = limiter(limit);
        limiter.reserve("lost", 1, 0);
        for (int i = 1; i <= replies; i++) {
            int lost = i;
            far.network().loseReplyTo(CanonicalKey.digest("lost"));
            limiter.reserve("lost", 1, 0);
            until(() -> far.network().lost() == lost, "a reply is lost", FarNode.PATIENCE);
            far.awaitRedis();
        }
        long spent = BUDGET - free(limit);
        System.out.printf(
                "ONCE %s: %d permits spent on %d questions, %d replies lost%n",
                algorithm, spent, 1 + replies, far.network().lost());
        assertThat(far.network().lost()).isEqualTo(replies);
        assertThat(spent).isLessThanOrEqualTo(1L + replies);
    }

    @ParameterizedTest
    @EnumSource(names = {"TOKEN_BUCKET", "FIXED_WINDOW"})
    void aGiveBackWhoseReplyIsLostGivesBackOnce(Algorithm algorithm) {
        loseRepliesToGiveBacks(4, algorithm);
    }

    @ParameterizedTest
    @EnumSource(names = {"TOKEN_BUCKET", "FIXED_WINDOW", "SLIDING_LOG"})
    void aChargeWhoseReplyIsLostIsChargedOnce(Algorithm algorithm) {
        Limit limit = limit(algorithm);
        RateLimiter limiter = limiter(limit);
        List<Reservation> taken = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            taken.add(limiter.reserve("lost", 1, 0));
        }
        for (int i = 1; i <= 3; i++) {
            int lost = i;
            far.network().loseReplyTo(CanonicalKey.digest("lost"));
            taken.get(i - 1).settle(101);
            until(() -> far.network().lost() == lost, "a reply is lost", FarNode.PATIENCE);
            far.awaitRedis();
        }
        assertThat(free(limit)).isEqualTo(BUDGET - 3 * 101);
    }

    /** Takes all in twice as many parts as it gives back, and gives back half of all. */
    private void loseRepliesToGiveBacks(int replies, Algorithm algorithm) {
        Limit limit = limit(algorithm);
        RateLimiter limiter = limiter(limit);
        List<Reservation> taken = new ArrayList<>();
        for (int i = 0; i < 2 * replies; i++) {
            taken.add(limiter.reserve("lost", BUDGET / (2 * replies), 0));
        }
        assertThat(taken).noneMatch(Reservation::isRefused);
        for (int i = 1; i <= replies; i++) {
            int lost = i;
            far.network().loseReplyTo(CanonicalKey.digest("lost"));
            taken.get(2 * replies - i).cancel();
            until(() -> far.network().lost() == lost, "a reply is lost", FarNode.PATIENCE);
            far.awaitRedis();
        }
        until(() -> free(limit) >= BUDGET / 2, "given back", Duration.ofSeconds(10));
        System.out.printf("ONCE %s: %d free instead of %d%n", algorithm, free(limit), BUDGET / 2);
        assertThat(free(limit)).isEqualTo(BUDGET / 2);
    }
}
