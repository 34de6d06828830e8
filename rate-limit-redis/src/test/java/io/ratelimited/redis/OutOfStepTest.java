package io.ratelimited.redis;

import static io.ratelimited.redis.RedisProcess.until;
import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Decision.Source;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import java.time.Duration;
import java.util.Arrays;
import java.util.concurrent.CompletableFuture;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Something between a node and Redis repeats or loses a reply, and each later one is that of another command: the connection is replaced. */
@Tag("slow")
class OutOfStepTest {

    @RegisterExtension
    static final RedisServers REDIS = RedisServers.standalone();

    private final FarNode far = FarNode.of(REDIS, FarNode.PATIENT);
    private final RedisBackend near = REDIS.backend(FarNode.NEAR);

    /** Half a reply is none of them: together with the next one it may make replies that are in step again. */
    @SuppressWarnings("ImmutableEnumChecker") // the functions have no state
    enum Garbled {
        TWICE(reply -> {
            byte[] twice = Arrays.copyOf(reply, 2 * reply.length);
            System.arraycopy(reply, 0, twice, reply.length, reply.length);
            return twice;
        }),
        LOST(reply -> new byte[0]),
        /** The beginning of a list that the next reply seems to be in. */
        WITHOUT_END(reply -> new byte[] {'*', '1', '\r', '\n'});

        private final UnaryOperator<byte[]> change;

        Garbled(UnaryOperator<byte[]> change) {
            this.change = change;
        }
    }

    /** Calls of several threads, so that there is always a reply to go by. */
    @ParameterizedTest
    @EnumSource
    void callsThatComeTogetherFindIt(Garbled garbled) {
        Limit limit = Limit.of("step", Algorithm.FIXED_WINDOW).rate("1/d").build();
        RateLimiter nearby = near.limiter(limit, RedisLimitOptions.DEFAULTS);
        RateLimiter limiter = far.backend().limiter(limit, RedisLimitOptions.DEFAULTS.onFailure(OnFailure.DENY));
        RateLimiter busy = far.limiter(
                Limit.of("busy", Algorithm.TOKEN_BUCKET).rate("1000000/s").build());
        far.awaitRedis();
        int connections = far.network().accepted();
        try (Load load = new Load(busy, 4, caller -> "k" + caller)) {
            until(() -> load.decisions(Source.REDIS) > 100, "calls", FarNode.PATIENCE);
            far.network().garbleReply(garbled.change);
            until(() -> far.network().accepted() > connections, "another connection", FarNode.PATIENCE);
            far.awaitRedis();
            for (int i = 0; i < 20; i++) {
                assertThat(nearby.tryAcquire("spent-" + i, 1)).isTrue();
                assertThat(limiter.tryAcquire("spent-" + i, 1)).isFalse();
            }
        }
        assertThat(limiter.tryAcquire("fresh", 1)).isTrue();
    }

    /** Servers may be paid by the command. Each call comes later than one may be checked that follows another. */
    @Test
    void whereCallsAreFewAlmostAllCommandsAreTheirs() {
        FarNode slow = FarNode.of(REDIS, FarNode.PATIENT.timeout(Duration.ofMinutes(1)));
        RateLimiter limiter = slow.limiter(
                Limit.of("few", Algorithm.FIXED_WINDOW).rate("1000/d").build());
        slow.awaitRedis();
        slow.network().delay(25);
        long before = slow.network().commands();
        for (int i = 0; i < 40; i++) {
            assertThat(limiter.reserve("few-" + i, 1, 0).decision().source()).isEqualTo(Source.REDIS);
        }
        assertThat(slow.network().commands() - before).isBetween(40L, 60L);
    }

    /** Calls that come one by one: one of those that are sent behind a reply that is left over finds it. */
    @ParameterizedTest
    @EnumSource
    void callsThatComeOneByOneFindIt(Garbled garbled) {
        Limit limit = Limit.of("step", Algorithm.FIXED_WINDOW).rate("1/d").build();
        RateLimiter limiter = far.backend().limiter(limit, RedisLimitOptions.DEFAULTS.onFailure(OnFailure.DENY));
        far.awaitRedis();
        int connections = far.network().accepted();
        far.network().garbleReply(garbled.change);
        until(
                () -> {
                    Reservation fresh = limiter.reserve("fresh-" + System.nanoTime(), 1, 0);
                    fresh.cancel();
                    return far.network().accepted() > connections;
                },
                "another connection",
                FarNode.PATIENCE);
        far.awaitRedis();
    }

    /** In the reply of another algorithm, there is a time where there should be a wait. */
    @ParameterizedTest
    @EnumSource(names = {"FIXED_WINDOW", "SLIDING_WINDOW", "SLIDING_LOG"})
    void noCallWaitsForLongerThanItMayByTheReplyToAnother(Algorithm algorithm) {
        RateLimiter limiter =
                far.limiter(Limit.of("step", algorithm).rate("100/d").build());
        RateLimiter others = far.limiter(
                Limit.of("others", Algorithm.TOKEN_BUCKET).rate("1000000/s").build());
        far.awaitRedis();
        limiter.reserve("warm", 1, 0);
        others.reserve("warm", 1, 0);
        far.network().garbleReply(Garbled.LOST.change);
        CompletableFuture<Reservation> call =
                limiter.reserveAsync("a", 1, 100_000_000).toCompletableFuture();
        until(
                () -> {
                    others.reserveAsync("b", 1, 0);
                    return call.isDone();
                },
                "decided",
                FarNode.PATIENCE);
        assertThat(call.join().waitNanos()).isLessThanOrEqualTo(100_000_000);
    }
}
