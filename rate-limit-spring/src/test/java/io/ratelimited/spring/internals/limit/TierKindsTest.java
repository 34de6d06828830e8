package io.ratelimited.spring.internals.limit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.ContextRunner;
import io.ratelimited.spring.Explanation;
import io.ratelimited.spring.InvalidRateLimitException;
import io.ratelimited.spring.LimitChange;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.TestLimits;
import io.ratelimited.spring.internals.limit.LimitProperty.OnFailure;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** A tier counts as its limit does: both over time, or both calls in flight, by a given number or one that they find. */
final class TierKindsTest {

    private static final String LIMIT = "rate-limit.limits.api.";
    private static final String GOLD = LIMIT + "tiers.gold.";

    static class Calls {

        @RateLimited(name = "api", tier = "#plan")
        public CompletableFuture<String> call(String plan, CompletableFuture<String> work) {
            return work;
        }
    }

    private static ContextRunner runner(String... properties) {
        return ContextRunner.limited(new ManualTicker()).with(Calls.class).withPropertyValues(properties);
    }

    private static String size(Algorithm algorithm) {
        return algorithm.findsItsLimit()
                ? "min-concurrent=1"
                : algorithm == Algorithm.CONCURRENCY ? "max-concurrent=2" : "rate=2/h";
    }

    @ParameterizedTest
    @CsvSource({
        "TOKEN_BUCKET, CONCURRENCY",
        "FIXED_WINDOW, ADAPTIVE",
        "CONCURRENCY, GCRA",
        "CONCURRENCY, ADAPTIVE",
        "ADAPTIVE, SLIDING_LOG",
        "ADAPTIVE, CONCURRENCY"
    })
    void aTierOfAnotherKindIsRejectedAtStartup(Algorithm ofLimit, Algorithm ofTier) {
        runner(LIMIT + "algorithm=" + ofLimit, LIMIT + size(ofLimit), GOLD + "algorithm=" + ofTier, GOLD + size(ofTier))
                .run(context -> {
                    assertThat(context).hasFailed();
                    Explanation explanation = Explanation.of(context.getStartupFailure());
                    assertThat(explanation.getDescription())
                            .contains(
                                    "'api' is invalid: algorithm is " + ofTier + ", but must be ",
                                    ofLimit.name(),
                                    "because the limit uses " + ofLimit,
                                    "Origin: rate-limit.limits.api.tiers.gold.algorithm.");
                    assertThat(explanation.getAction()).contains("a second limit with " + ofTier, "[RL-110]");
                });
    }

    @Test
    void aTierMayCountOverTimeInAnotherWayOrBeUnlimited() {
        runner(
                        LIMIT + "rate=2/h",
                        GOLD + "algorithm=SLIDING_LOG",
                        LIMIT + "tiers.internal.rate=unlimited",
                        LIMIT + "tiers.named.algorithm=GCRA",
                        LIMIT + "tiers.named.rate=unlimited")
                .run(context -> {
                    Calls calls = context.getBean(Calls.class);
                    assertThat(admitted(calls, "gold")).isEqualTo(2);
                    assertThat(admitted(calls, "internal")).isEqualTo(5);
                    assertThat(admitted(calls, "named")).isEqualTo(5);
                });
    }

    @ParameterizedTest
    @CsvSource({"CONCURRENCY, max-concurrent=0", "ADAPTIVE, max-concurrent=1"})
    void underCallsInFlightATierMayBeUnlimited(String algorithm, String size) {
        runner(LIMIT + "algorithm=" + algorithm, LIMIT + size, LIMIT + "tiers.internal.rate=unlimited")
                .run(context -> assertThat(admitted(context.getBean(Calls.class), "internal"))
                        .isEqualTo(5));
    }

    @Test
    void aTierThatIsUnlimitedCountsNoCallsInFlight() {
        runner(LIMIT + "rate=2/h", GOLD + "algorithm=CONCURRENCY", GOLD + "rate=unlimited")
                .run(context -> {
                    assertThat(context).hasFailed();
                    assertThat(Explanation.of(context.getStartupFailure()).getDescription())
                            .contains("CONCURRENCY", "rate");
                });
    }

    @Test
    void tiersOfTheDefaultsMustSuitEveryLimit() {
        runner(LIMIT + "algorithm=CONCURRENCY", LIMIT + "max-concurrent=1", "rate-limit.defaults.tiers.gold.rate=2/h")
                .run(context -> {
                    assertThat(context).hasFailed();
                    assertThat(Explanation.of(context.getStartupFailure()).getDescription())
                            .contains("'api'", "CONCURRENCY", "Origin: rate-limit.defaults.tiers.gold.rate.");
                });
    }

    private static long admitted(Calls calls, String plan) {
        List<CompletableFuture<String>> futures = IntStream.range(0, 5)
                .mapToObj(i -> calls.call(plan, new CompletableFuture<>()))
                .toList();
        return futures.stream().filter(future -> !future.isDone()).count();
    }

    @Test
    void aChangeDoesNotGiveATierAnotherKind() {
        runner(LIMIT + "algorithm=CONCURRENCY", LIMIT + "max-concurrent=2", LIMIT + "tiers.internal.rate=unlimited")
                .run(context -> {
                    TestLimits limits = TestLimits.of(context);
                    LimitChange change = LimitChange.tier("internal")
                            .with("algorithm", "TOKEN_BUCKET")
                            .with("rate", "2/h");
                    assertThatExceptionOfType(InvalidRateLimitException.class)
                            .isThrownBy(() -> limits.change("api", change))
                            .withMessageContaining("algorithm is TOKEN_BUCKET, but must be CONCURRENCY");
                    assertThat(admitted(context.getBean(Calls.class), "internal"))
                            .isEqualTo(5);

                    assertThatExceptionOfType(InvalidRateLimitException.class)
                            .isThrownBy(() -> limits.override("api", "zoe", LimitChange.rate("2/h"), null))
                            .withMessageContaining("rate");
                    limits.override("api", "zoe", LimitChange.rate("unlimited"), null);
                });
    }

    @Test
    void aRefreshDoesNotGiveATierAnotherKind() {
        runner(LIMIT + "algorithm=CONCURRENCY", LIMIT + "max-concurrent=2", LIMIT + "tiers.internal.rate=unlimited")
                .run(context -> {
                    LimitRegistry registry = context.getBean(LimitRegistry.class);
                    Map<LimitProperty, Object> tier =
                            Map.of(LimitProperty.ALGORITHM, Algorithm.GCRA, LimitProperty.RATE, "2/h");
                    for (String name : List.of("internal", "new")) {
                        Map<LimitProperty, Object> refreshed = Map.of(
                                LimitProperty.ALGORITHM,
                                Algorithm.CONCURRENCY,
                                LimitProperty.MAX_CONCURRENT,
                                2,
                                LimitProperty.TIERS,
                                Map.of(name, tier));
                        assertThatExceptionOfType(InvalidRateLimitException.class)
                                .isThrownBy(() -> registry.refresh(new LimitSettings(
                                        "memory", OnFailure.LOCAL, Map.of(), Map.of("api", refreshed))))
                                .withMessageContaining("algorithm is GCRA, but must be CONCURRENCY");
                    }
                    assertThat(admitted(context.getBean(Calls.class), "internal"))
                            .isEqualTo(5);
                });
    }
}
