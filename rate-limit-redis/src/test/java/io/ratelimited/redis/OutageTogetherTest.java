package io.ratelimited.redis;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Decision;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.several.AllOf;
import io.ratelimited.core.several.Claim;
import java.time.Duration;
import java.util.List;
import java.util.function.Function;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Several limits on one call while Redis is away: this node asks its shares before it charges one of them. */
class OutageTogetherTest {

    private static final long WEEK = Duration.ofDays(7).toNanos();

    @RegisterExtension
    static final RedisServers REDIS = RedisServers.standalone();

    private static final List<Function<List<Claim>, Reservation>> BOTH = List.of(
            AllOf::reserve,
            claims -> AllOf.reserveAsync(claims).toCompletableFuture().join());

    @ParameterizedTest
    @EnumSource(names = {"FIXED_WINDOW", "SLIDING_WINDOW", "SLIDING_LOG", "TOKEN_BUCKET"})
    void aRefusalByOneLimitLeavesTheOtherAsItWas(Algorithm algorithm) {
        FarNode far = FarNode.of(REDIS, RedisBackendOptions.DEFAULTS.expectedNodes(1));
        RateLimiter waiting =
                far.limiter(Limit.of("waiting", algorithm).rate("100/d").build());
        RateLimiter spent = far.limiter(
                Limit.of("spent", Algorithm.CONCURRENCY).maxConcurrent(1).build());
        far.cut();
        assertThat(spent.reserve("k", 1, 0).isRefused()).isFalse();
        waiting.tryAcquire("k", 1);
        long left = waiting.peek("k", 1, 0).remaining();
        if (left > 3) {
            assertThat(waiting.tryAcquire("k", left - 3)).isTrue();
        }
        left = waiting.peek("k", 1, 0).remaining();
        for (Function<List<Claim>, Reservation> reserve : BOTH) {
            Reservation refused =
                    reserve.apply(List.of(Claim.of(waiting, "k", left + 2, WEEK), Claim.of(spent, "k", 1, 0)));
            assertThat(refused.isRefused()).isTrue();
            assertThat(AllOf.decisive(AllOf.refusals(refused))).isOne();
        }
        assertThat(waiting.peek("k", 1, 0).remaining()).isEqualTo(left);
    }

    /** Also where calls are charged. */
    @ParameterizedTest
    @EnumSource(names = {"SMOOTH_BURSTY", "LEAKY_BUCKET"})
    void claimsOnOneBudgetDoNotWaitForEachOther(Algorithm algorithm) throws Exception {
        FarNode far = FarNode.of(REDIS, RedisBackendOptions.DEFAULTS.expectedNodes(1));
        RateLimiter charged = far.limiter(Limit.of("charged", algorithm)
                .rate("10/s")
                .burst(5)
                .charged(true)
                .build());
        far.cut();
        for (Function<List<Claim>, Reservation> reserve : BOTH) {
            List<Claim> claims = List.of(Claim.of(charged, "k", 1, 0), Claim.of(charged, "k", 2, 0));
            Reservation call = reserve.apply(claims);
            for (int i = 0; i < 100 && call.isRefused(); i++) {
                Thread.sleep(20);
                call = reserve.apply(claims);
            }
            assertThat(call.isRefused()).isFalse();
            assertThat(call.mayWait()).isFalse();
            assertThat(AllOf.member(call, 1).decision().source()).isEqualTo(Decision.Source.FALLBACK);
        }
    }

    @Test
    void claimsOnOneBudgetThatAreAdmittedAreNoViolation() {
        FarNode far = FarNode.of(REDIS, RedisBackendOptions.DEFAULTS.expectedNodes(1));
        RateLimiter limiter = far.limiter(Limit.of("blocks", Algorithm.LEAKY_BUCKET)
                .rate("10/h")
                .burst(5)
                .block(Duration.ofHours(1))
                .build());
        far.cut();
        for (Function<List<Claim>, Reservation> reserve : BOTH) {
            int blocked = BOTH.indexOf(reserve);
            String key = "k" + blocked;
            Reservation call = reserve.apply(List.of(Claim.of(limiter, key, 1, 0), Claim.of(limiter, key, 2, 0)));
            assertThat(call.isRefused()).isFalse();
            assertThat(limiter.blockedKeys()).hasSize(blocked);
            assertThat(limiter.reserve(key, 1, 0).isRefused()).isTrue();
            assertThat(limiter.blockedKeys()).hasSize(blocked + 1);
        }
    }

    /** It asks for nothing that Redis would have to give. */
    @ParameterizedTest
    @EnumSource
    void aCallOfNoPermitsGoesWhateverIsSaidOfAnOutage(OnFailure onFailure) {
        FarNode far = FarNode.of(REDIS, RedisBackendOptions.DEFAULTS.expectedNodes(1));
        List<RateLimiter> limiters = List.of(
                far.backend()
                        .limiter(
                                Limit.of("rate", Algorithm.TOKEN_BUCKET)
                                        .rate("1/h")
                                        .build(),
                                RedisLimitOptions.DEFAULTS.onFailure(onFailure)),
                far.backend()
                        .limiter(
                                Limit.of("flights", Algorithm.CONCURRENCY)
                                        .maxConcurrent(0)
                                        .build(),
                                RedisLimitOptions.DEFAULTS.onFailure(onFailure)));
        far.cut();
        for (RateLimiter limiter : limiters) {
            assertThat(limiter.reserve("k", 0, 0).isRefused()).isFalse();
            assertThat(limiter.peek("k", 0, 0).admitted()).isTrue();
            Reservation later =
                    limiter.reserveAsync("k", 0, 0).toCompletableFuture().join();
            assertThat(later.isRefused()).isFalse();
            later.cancel();
        }
        assertThat(limiters.get(0).tryAcquire("k", 0)).isTrue();
    }
}
