package io.ratelimited.core;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.testing.ManualTicker;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** P11: several limits take all or nothing. */
class AllOfTest {

    private static List<RateLimiter> members(ManualTicker ticker) {
        List<RateLimiter> members = new ArrayList<>();
        for (Algorithm algorithm : Algorithm.values()) {
            Limit.Builder limit = Limit.of(algorithm.name(), algorithm);
            if (algorithm == Algorithm.CONCURRENCY) {
                limit.maxConcurrent(9);
            } else {
                limit.rate(3 + algorithm.name().length() % 5 + "/s");
            }
            if (algorithm == Algorithm.WARM_UP) {
                limit.warmup(Duration.ofSeconds(1));
            }
            members.add(new InMemoryRateLimiter(limit.build(), ticker, 10));
        }
        return members;
    }

    private static List<Decision> tell(List<RateLimiter> members) {
        return members.stream()
                .flatMap(
                        member -> List.of(
                                member.peek("key", 1, 0),
                                member.peek("key", 2, 0),
                                member.peek("key", 1, 5_000_000_000L))
                                .stream())
                .toList();
    }

    @Test
    void aRefusalByOneLeavesEveryOtherAsItWas() {
        int refused = 0;
        for (int seed = 0; seed < 100; seed++) {
            Random random = new Random(seed);
            ManualTicker ticker = new ManualTicker();
            List<RateLimiter> members = members(ticker);
            for (int call = 0; call < 60; call++) {
                ticker.advance(Duration.ofMillis(random.nextInt(200)));
                long permits = 1L + random.nextInt(3);
                long maxWait = random.nextInt(3) == 0 ? random.nextInt(1_000_000_000) : 0;
                List<Decision> before = tell(members);
                Reservation all = AllOf.reserve(members.stream()
                        .map(member -> new Claim(member, "key", permits, maxWait))
                        .toList());
                String where = "seed " + seed + ", call " + call;
                if (all.isRefused()) {
                    refused++;
                    assertThat(tell(members)).as(where).isEqualTo(before);
                    assertThat(all.decision().admitted()).as(where).isFalse();
                } else {
                    assertThat(all.waitNanos()).as(where).isLessThanOrEqualTo(maxWait);
                    all.release();
                }
            }
        }
        assertThat(refused).isGreaterThan(1_000);
    }

    @Test
    void aCancelledCallThatWentAtOnceWasNeverMade() {
        ManualTicker ticker = new ManualTicker();
        List<RateLimiter> members = members(ticker);
        List<Decision> before = tell(members);
        Reservation all = AllOf.reserve(
                members.stream().map(member -> new Claim(member, "key", 1, 0)).toList());
        assertThat(all.isRefused()).isFalse();
        assertThat(tell(members)).isNotEqualTo(before);
        all.cancel();
        all.cancel();
        assertThat(tell(members)).isEqualTo(before);
    }

    @Test
    void theDecisionIsThatOfTheRefusingMember() {
        ManualTicker ticker = new ManualTicker();
        RateLimiter wide = new InMemoryRateLimiter(
                Limit.of("wide", Algorithm.TOKEN_BUCKET).rate("100/s").build(), ticker, 1);
        RateLimiter narrow = new InMemoryRateLimiter(
                Limit.of("narrow", Algorithm.TOKEN_BUCKET).rate("1/s").build(), ticker, 1);
        assertThat(narrow.tryAcquire(null, 1)).isTrue();
        Reservation all = AllOf.reserve(List.of(new Claim(wide, null, 1, 0), new Claim(narrow, null, 1, 0)));
        assertThat(all.isRefused()).isTrue();
        assertThat(all.decision().limit()).isEqualTo("narrow");
        assertThat(all.decision().retryAfter()).isEqualTo(Duration.ofSeconds(1));
        assertThat(wide.peek(null, 1, 0).remaining()).isEqualTo(100);
    }

    @Test
    void aCallWaitsForTheLastOfItsLimits() throws InterruptedException {
        ManualTicker ticker = new ManualTicker().autoAdvance();
        RateLimiter fast = new InMemoryRateLimiter(
                Limit.of("fast", Algorithm.LEAKY_BUCKET).rate("10/s").build(), ticker, 1);
        RateLimiter slow = new InMemoryRateLimiter(
                Limit.of("slow", Algorithm.LEAKY_BUCKET).rate("2/s").burst(4).build(), ticker, 1);
        List<Claim> claims =
                List.of(new Claim(fast, null, 1, Long.MAX_VALUE), new Claim(slow, null, 1, Long.MAX_VALUE));
        assertThat(AllOf.reserve(claims).await()).isTrue();
        Reservation second = AllOf.reserve(claims);
        assertThat(second.waitNanos()).isEqualTo(500_000_000);
        assertThat(second.await()).isTrue();
        assertThat(ticker.nanos()).isEqualTo(500_000_000);
    }

    @Test
    void whatWasChargedBeforeALaterClaimFailsIsGivenBack() {
        ManualTicker ticker = new ManualTicker();
        RateLimiter limiter = new InMemoryRateLimiter(
                Limit.of("twice", Algorithm.TOKEN_BUCKET).rate("3/s").build(), ticker, 1);
        RateLimiter other = new InMemoryRateLimiter(
                Limit.of("other", Algorithm.SLIDING_LOG).rate("3/s").build(), ticker, 1);
        // Each claim alone would be admitted; together they ask for more than there is.
        Reservation all = AllOf.reserve(
                List.of(new Claim(other, null, 1, 0), new Claim(limiter, null, 2, 0), new Claim(limiter, null, 2, 0)));
        assertThat(all.isRefused()).isTrue();
        assertThat(limiter.peek(null, 1, 0).remaining()).isEqualTo(3);
        assertThat(other.peek(null, 1, 0).remaining()).isEqualTo(3);
    }
}
