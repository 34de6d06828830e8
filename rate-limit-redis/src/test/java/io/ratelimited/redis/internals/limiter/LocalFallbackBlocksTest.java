package io.ratelimited.redis.internals.limiter;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.several.AllOf;
import io.ratelimited.core.several.Claim;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.redis.internals.connection.GuardedConnection;
import io.ratelimited.redis.internals.connection.KeyNames;
import io.ratelimited.redis.internals.connection.RedisConnector;
import io.ratelimited.redis.internals.connection.RedisLink;
import io.ratelimited.redis.internals.connection.Threads;
import java.io.IOException;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Who is blocked by an instance whose Redis is away. In one thread, on a time that the test moves. */
class LocalFallbackBlocksTest {

    private static final Duration BLOCK = Duration.ofSeconds(10);

    private final ManualTicker ticker = new ManualTicker(0, Instant.parse("2026-01-01T00:00:00Z"));
    private final KeyNames keys = new KeyNames("rl");
    private final GuardedConnection connection = new GuardedConnection(
            new NoServer(),
            keys,
            Duration.ofMillis(50).toNanos(),
            ticker,
            new Threads(ticker, Runnable::run, Runnable::run),
            false,
            UnaryOperator.identity());

    private static final class NoServer implements RedisConnector {

        @Override
        public CompletionStage<Set<String>> discover() {
            return CompletableFuture.failedFuture(new IOException("away"));
        }

        @Override
        public String address(String key) {
            return "";
        }

        @Override
        public CompletionStage<RedisLink> connect(String address) {
            return CompletableFuture.failedFuture(new IOException("away"));
        }

        @Override
        public boolean isCluster() {
            return false;
        }

        @Override
        public void close() {}
    }

    @AfterEach
    void close() {
        connection.close();
    }

    private RateLimiter limiter(Limit limit, int nodes) {
        LimiterContext context = new LimiterContext(
                connection, keys, ticker, Runnable::run, new Nodes("node", nodes), IllegalStateException::new);
        return new RedisRateLimiter(context, limit, "", failure -> null, 0, 1_000);
    }

    private static Limit.Builder builder(Algorithm algorithm) {
        return Limit.of("logins", algorithm).rate("3/s").block(BLOCK).blockMax(BLOCK);
    }

    private static boolean isBlocked(RateLimiter limiter) {
        return limiter.peek("a", 1, 0).blocked();
    }

    private static Reservation admitted(RateLimiter limiter) {
        Reservation call = limiter.reserve("a", 1, 0);
        assertThat(call.isRefused()).isFalse();
        return call;
    }

    private static Reservation oneLeftAndHeld(RateLimiter limiter) {
        admitted(limiter).settle(1);
        admitted(limiter).settle(1);
        Reservation innocent = admitted(limiter);
        assertThat(limiter.peek("a", 1, 0).admitted()).isFalse();
        return innocent;
    }

    @ParameterizedTest
    @EnumSource(names = {"TOKEN_BUCKET", "GCRA", "FIXED_WINDOW", "SLIDING_WINDOW", "SLIDING_LOG"})
    void aCallCountsWhenItWasGrantedAndNotWhenItEnds(Algorithm algorithm) {
        RateLimiter limiter = limiter(builder(algorithm).charged(true).build(), 1);
        List<Reservation> slow = List.of(admitted(limiter), admitted(limiter), admitted(limiter));
        limiter.peek("a", 1, 0);
        ticker.advance(Duration.ofMillis(1_300));
        limiter.peek("a", 1, 0);
        Reservation innocent = oneLeftAndHeld(limiter);
        slow.get(0).settle(1);
        slow.get(1).release();
        assertThat(isBlocked(limiter)).isFalse();
        slow.get(2).settle(2);
        assertThat(isBlocked(limiter)).isTrue();
        assertThat(innocent.isRefused()).isFalse();
    }

    @ParameterizedTest
    @EnumSource(names = {"TOKEN_BUCKET", "FIXED_WINDOW", "SLIDING_LOG"})
    void nothingThatWasReservedBeforeAResetCountsAgainstTheStateAfterIt(Algorithm algorithm) {
        RateLimiter limiter = limiter(builder(algorithm).charged(true).build(), 1);
        Reservation slow = admitted(limiter);
        ticker.advance(Duration.ofMillis(1));
        assertThatThrownBy(() -> limiter.reset("a")).hasMessageContaining("could not be reset");
        Reservation innocent = oneLeftAndHeld(limiter);
        slow.settle(1);
        assertThat(isBlocked(limiter)).isFalse();
        innocent.settle(1);
        assertThat(isBlocked(limiter)).isTrue();
    }

    /** Whether the call is rejected when it is asked about, as beside another limit on Redis, or when it takes permits. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aCallUnderSeveralLimitsIsEvidenceOnceThoughItIsRejectedByTheShareOfANode(boolean otherOnRedis) {
        Limit other = Limit.of("other", Algorithm.FIXED_WINDOW).rate("1000/h").build();
        RateLimiter logins = limiter(
                builder(Algorithm.FIXED_WINDOW).rate("4/h").blockMax(BLOCK).build(), 2);
        RateLimiter beside = otherOnRedis ? limiter(other, 2) : new InMemoryRateLimiter(other, ticker, 10);
        for (int call = 1; call <= 5; call++) {
            boolean admitted = !AllOf.reserve(List.of(Claim.of(logins, "a", 1, 0), Claim.of(beside, "a", 1, 0)))
                    .isRefused();
            assertThat(admitted).as("call " + call).isEqualTo(call <= 2);
            assertThat(isBlocked(logins)).as("after call " + call).isEqualTo(call > 4);
        }
    }

    /** Beside a limit that decides later, the call may give its permits back in the next moment. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void permitsOfACallThatIsNotDecidedAreNoEvidence(boolean kept) {
        RateLimiter limiter = limiter(builder(Algorithm.FIXED_WINDOW).build(), 1);
        RedisRateLimiter own = (RedisRateLimiter) limiter;
        Reservation call = own.reserveLocally("a", new Wanted(3, 0, 0, false, true));
        assertThat(limiter.tryAcquire("a", 1)).isFalse();
        assertThat(isBlocked(limiter)).isFalse();
        if (kept) {
            call.keep();
        } else {
            call.cancel();
        }
        assertThat(limiter.tryAcquire("a", 2)).isEqualTo(!kept);
        assertThat(isBlocked(limiter)).isEqualTo(kept);
    }

    @Test
    void aCallThatHasEndedAndGivesBackCountsAsMuchAsItCost() {
        RateLimiter limiter =
                limiter(builder(Algorithm.FIXED_WINDOW).charged(true).build(), 1);
        Reservation less = limiter.reserve("a", 2, 0);
        less.release();
        less.settle(1);
        Reservation given = admitted(limiter);
        given.release();
        given.cancel();
        Reservation innocent = admitted(limiter);
        admitted(limiter).settle(1);
        assertThat(isBlocked(limiter)).isFalse();
        innocent.settle(1);
        assertThat(isBlocked(limiter)).isTrue();
    }

    /** The policy would let them wait for a third of a second. */
    @Test
    void rejectionsForWantOfAThreadAreNoViolations() {
        RateLimiter limiter = limiter(builder(Algorithm.TOKEN_BUCKET).build(), 1);
        assertThat(limiter.tryAcquire("a", 3)).isTrue();
        Claim patient = Claim.of(
                limiter, "a", 1, 0, RateLimiter.NO_RANK, Duration.ofMillis(334).toNanos(), false);
        for (int i = 0; i < 5; i++) {
            assertThat(patient.reserve().isRefused()).isTrue();
        }
        assertThat(isBlocked(limiter)).isFalse();
        assertThat(limiter.reserve("a", 1, 0).decision().blocked()).isTrue();
    }

    /** Its other limit rejects it in the next moment. */
    @Test
    void permitsThatACallTakesAndGivesBackAreNoEvidence() {
        RateLimiter limiter = limiter(builder(Algorithm.FIXED_WINDOW).build(), 1);
        RateLimiter memory = new InMemoryRateLimiter(
                Limit.of("memory", Algorithm.CONCURRENCY).maxConcurrent(1).build(), ticker, 10);
        for (int i = 0; i < 5; i++) {
            Reservation given = admitted(limiter);
            given.cancel();
        }
        memory.reserve("a", 1, 0);
        assertThat(AllOf.reserve(new Claim[] {Claim.of(limiter, "a", 1, 0), Claim.of(memory, "a", 1, 0)})
                        .isRefused())
                .isTrue();
        for (int i = 0; i < 3; i++) {
            assertThat(limiter.reserve("a", 1, 0).isRefused()).isFalse();
        }
        assertThat(isBlocked(limiter)).isFalse();
        assertThat(limiter.reserve("a", 1, 0).decision().blocked()).isTrue();
    }

    @Test
    void aRejectionForWantOfASeatIsNoViolation() {
        RateLimiter limiter =
                limiter(builder(Algorithm.TOKEN_BUCKET).maxWaiting(0).build(), 1);
        assertThat(limiter.tryAcquire("a", 3)).isTrue();
        assertThat(limiter.reserve("a", 1, Duration.ofMillis(334).toNanos()).isRefused())
                .isTrue();
        assertThat(isBlocked(limiter)).isFalse();
        assertThat(limiter.reserve("a", 1, 0).decision().blocked()).isTrue();
    }

    @Test
    void amongSeveralLimitsTheOneThatRejectsBeginsABlock() {
        RateLimiter limiter = limiter(builder(Algorithm.TOKEN_BUCKET).build(), 1);
        RateLimiter other = limiter(
                Limit.of("other", Algorithm.TOKEN_BUCKET)
                        .rate("50/s")
                        .block(BLOCK)
                        .build(),
                1);
        Claim[] both = {Claim.of(limiter, "a", 1, 0), Claim.of(other, "a", 1, 0)};
        for (int i = 0; i < 3; i++) {
            assertThat(AllOf.reserve(both).isRefused()).isFalse();
        }
        assertThat(AllOf.reserve(both).decision().blocked()).isTrue();
        assertThat(isBlocked(limiter)).isTrue();
        assertThat(isBlocked(other)).isFalse();
    }
}
