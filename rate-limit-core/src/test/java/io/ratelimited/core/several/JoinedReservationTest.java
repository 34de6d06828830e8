package io.ratelimited.core.several;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.CallerLimit;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.testing.ManualTicker;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Several claims of one limit and key, each with its own cost. */
class JoinedReservationTest {

    private final ManualTicker ticker = new ManualTicker();

    private InMemoryRateLimiter limiter(Limit.Builder limit) {
        return new InMemoryRateLimiter(limit.build(), ticker, 100);
    }

    private InMemoryRateLimiter charged() {
        return limiter(
                Limit.of("a", Algorithm.TOKEN_BUCKET).rate("10/h").charged(true).block(Duration.ofMinutes(1)));
    }

    @Test
    void whatBothUsesAreChargedBeginsABlock() {
        RateLimiter limiter = charged();
        Reservation call = AllOf.reserve(List.of(Claim.of(limiter, "k", 1, 0), Claim.of(limiter, "k", 1, 0)));
        AllOf.member(call, 1).settle(4, true);
        AllOf.member(call, 0).settle(6, true);
        assertThat(limiter.peek("k", 1, 0).blocked()).isTrue();
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1})
    void aUseThatIsNotJudgedExcusesNoOther(int judged) {
        RateLimiter limiter = charged();
        Reservation call = AllOf.reserve(List.of(Claim.of(limiter, "k", 1, 0), Claim.of(limiter, "k", 1, 0)));
        AllOf.member(call, 0).settle(5, judged == 0);
        AllOf.member(call, 1).settle(5, judged == 1);
        assertThat(limiter.peek("k", 1, 0).blocked()).isTrue();
    }

    @Test
    void whatBothUsesHaveCostMayBecomeKnownAfterTheCallWasReleased() {
        RateLimiter limiter = charged();
        Reservation call = AllOf.reserve(List.of(Claim.of(limiter, "k", 1, 0), Claim.of(limiter, "k", 1, 0)));
        call.release();
        AllOf.member(call, 0).settle(3);
        AllOf.member(call, 1).settle(2);
        assertThat(limiter.peek("k", 1, 0).remaining()).isEqualTo(5);
    }

    @Test
    void aUseThatCostsNothingIsNoViolation() {
        RateLimiter limiter = charged();
        Reservation call = AllOf.reserve(List.of(Claim.of(limiter, "k", 1, 0), Claim.of(limiter, "k", 9, 0)));
        AllOf.member(call, 0).settle(0, true);
        AllOf.member(call, 1).settle(10, false);
        assertThat(limiter.peek("k", 1, 0).blocked()).isFalse();
    }

    @Test
    void aCancelledFutureOfTwoUsesGivesBack() {
        Queue<Runnable> network = new ArrayDeque<>();
        RateLimiter own = limiter(Limit.of("a", Algorithm.TOKEN_BUCKET).rate("10/h"));
        FarLimiter far = new FarLimiter(own, network::add);
        CompletableFuture<Reservation> asked = AllOf.reserveAsync(
                        List.of(Claim.of(far, "k", 1, 0), Claim.of(far, "k", 1, 0)))
                .toCompletableFuture();
        asked.cancel(false);
        while (!network.isEmpty()) {
            network.remove().run();
        }
        assertThat(own.peek("k", 1, 0).remaining()).isEqualTo(10);
    }

    @Test
    void aCallIsExemptOnlyIfBothUsesAre() {
        RateLimiter limiter =
                limiter(Limit.of("a", Algorithm.TOKEN_BUCKET).rate("5/h").block(Duration.ofMinutes(1)));
        Claim exempt = Claim.of(limiter, "k", 3, 0, RateLimiter.NO_RANK, 0, true);
        assertThat(AllOf.reserve(List.of(exempt, Claim.of(limiter, "k", 3, 0))).isRefused())
                .isTrue();
        limiter.tryAcquire("k", 5);
        assertThat(AllOf.reserve(List.of(exempt, Claim.of(limiter, "k", 1, 0)))
                        .decision()
                        .blocked())
                .isTrue();
    }

    /** In either order. */
    @Test
    void theSmallerNumbersOfTheCallerCount() {
        RateLimiter limiter = limiter(Limit.of("a", Algorithm.TOKEN_BUCKET).rate("10/h"));
        RateLimiter large = limiter.ofCallers(CallerLimit.of("100/h"));
        RateLimiter slow = limiter.ofCallers(CallerLimit.of("5/h burst 10"));
        for (RateLimiter[] uses : new RateLimiter[][] {
            {large, limiter}, {limiter, large}, {large, slow}, {slow, large}, {slow, limiter}, {limiter, slow}
        }) {
            String key = uses[0].limit() + " " + uses[1].limit();
            List<Claim> call = List.of(Claim.of(uses[0], key, 1, 0), Claim.of(uses[1], key, 1, 0));
            for (int i = 0; i < 5; i++) {
                assertThat(AllOf.reserve(call).isRefused()).as(key).isFalse();
            }
            Reservation refused = AllOf.reserve(call);
            assertThat(refused.isRefused()).as(key).isTrue();
            assertThat(refused.decision().retryAfter())
                    .as(key)
                    .isEqualTo(Duration.ofMinutes(key.contains("5/h") ? 24 : 12));
        }
    }
}
