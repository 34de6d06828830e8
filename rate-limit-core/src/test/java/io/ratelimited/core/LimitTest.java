package io.ratelimited.core;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.params.provider.Arguments.arguments;

import io.ratelimited.core.Limit.Attribute;
import java.time.Duration;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.util.List;
import java.util.Map;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;

class LimitTest {

    static Limit.Builder valid(Algorithm algorithm) {
        Limit.Builder limit = Limit.of("valid", algorithm);
        return switch (algorithm) {
            case CONCURRENCY -> limit.maxConcurrent(5);
            case ADAPTIVE -> limit;
            case WARM_UP -> limit.rate("10/s").warmup(Duration.ofSeconds(5));
            default -> limit.rate("10/s");
        };
    }

    private static Limit.Builder set(Limit.Builder limit, Attribute attribute) {
        return switch (attribute) {
            case RATE -> limit.rate("20/s");
            case BURST -> limit.burst(7);
            case WARMUP -> limit.warmup(Duration.ofSeconds(1));
            case COLD_FACTOR -> limit.coldFactor(2);
            case MAX_CONCURRENT -> limit.maxConcurrent(3);
            case LEASE -> limit.lease(Duration.ofSeconds(30));
            case ZONE -> limit.zone(ZoneId.of("Europe/Berlin"));
            case STARTS_ON -> limit.startsOn("15");
            case SLOTS -> limit.slots(4);
            case BLOCK -> limit.block(Duration.ofMinutes(1));
            case BLOCK_FACTOR -> limit.blockFactor(3);
            case BLOCK_MAX -> limit.blockMax(Duration.ofHours(1));
            case MIN_CONCURRENT -> limit.minConcurrent(2);
            case LATE_AFTER -> limit.lateAfter(Duration.ofMillis(500));
            case PRIORITIES -> limit.priorities(List.of("good", "bad"));
            case SHARES -> limit.priorities(List.of("good", "bad")).shares(Map.of("bad", 0.05));
        };
    }

    @ParameterizedTest
    @EnumSource(mode = EnumSource.Mode.EXCLUDE, names = "DEFAULT")
    void anAttributeWithoutMeaningForTheAlgorithmIsRefused(Algorithm algorithm) {
        for (Attribute attribute : Attribute.values()) {
            Limit.Builder limit = set(valid(algorithm), attribute);
            if (attribute == Attribute.STARTS_ON && algorithm == Algorithm.FIXED_WINDOW) {
                limit.rate("10/month");
            }
            if (algorithm.uses(Attribute.BLOCK)) {
                limit.block(Duration.ofMinutes(1));
            }
            if (algorithm.uses(attribute)) {
                assertThat(limit.build().algorithm()).isEqualTo(algorithm);
            } else {
                assertThatThrownBy(limit::build)
                        .isInstanceOfSatisfying(
                                InvalidLimitException.class,
                                invalid -> assertThat(invalid.attribute()).isEqualTo(attribute.label()))
                        .hasMessageStartingWith(attribute.label() + " is ")
                        .hasMessageContaining(", but " + algorithm + " does not support it")
                        .hasMessageEndingWith(
                                switch (attribute) {
                                    case RATE -> "; use maxConcurrent instead";
                                    case MAX_CONCURRENT -> "; remove it, or use CONCURRENCY";
                                    default -> "; remove it";
                                });
            }
        }
    }

    static Stream<Arguments> refusals() {
        return Stream.of(
                refusal(
                        Algorithm.ADAPTIVE,
                        l -> l.maxConcurrent(9).minConcurrent(10),
                        "minConcurrent is 10, but must be from 1 to maxConcurrent, which is 9"),
                refusal(
                        Algorithm.ADAPTIVE,
                        l -> l.minConcurrent(0),
                        "minConcurrent is 0, but must be from 1 to maxConcurrent, which is 1000"),
                refusal(
                        Algorithm.ADAPTIVE,
                        l -> l.lateAfter(Duration.ZERO),
                        "lateAfter is 0s, but must be longer than 0s and at most 1d"),
                refusal(
                        Algorithm.CONCURRENCY,
                        l -> l.priorities(List.of("a", "b", "a")),
                        "priorities is [a, b, a], but must be different names, none of them blank"),
                refusal(
                        Algorithm.ADAPTIVE,
                        l -> l.priorities(List.of("a", " ")),
                        "priorities is [a,  ], but must be different names, none of them blank"),
                refusal(
                        Algorithm.ADAPTIVE,
                        l -> l.priorities(List.of("a")).shares(Map.of("b", 0.1)),
                        "shares is b, but must be one of the priorities [a]"),
                refusal(
                        Algorithm.ADAPTIVE,
                        l -> l.priorities(List.of("a")).shares(Map.of("a", 1.0)),
                        "shares is a 1.0, but must be above 0% and below 100%"),
                refusal(
                        Algorithm.ADAPTIVE,
                        l -> l.priorities(List.of("a", "b")).shares(Map.of("a", 0.5, "b", 0.5)),
                        "shares is {a=0.5, b=0.5}, but must be less than 100% in total"),
                refusal(Algorithm.TOKEN_BUCKET, l -> l.burst(0), "burst is 0, but must be at least 1"),
                refusal(Algorithm.TOKEN_BUCKET, l -> l.burst(-5), "burst is -5, but must be at least 1"),
                refusal(Algorithm.LEAKY_BUCKET, l -> l.burst(0), "burst is 0, but must be at least 1"),
                refusal(Algorithm.SMOOTH_BURSTY, l -> l.burst(-1), "burst is -1, but must be at least 0"),
                refusal(
                        Algorithm.GCRA,
                        l -> l.burst(1_000_000_000_000_001L),
                        "burst is 1000000000000001, but must be at most 10^15"),
                refusal(
                        Algorithm.TOKEN_BUCKET,
                        l -> l.rate("1/3650d").burst(4),
                        "burst is 4, but must be refilled within 36 years at rate 1/3650d"),
                refusal(
                        Algorithm.TOKEN_BUCKET,
                        l -> l.rate("1/d").burst(13_400),
                        "burst is 13400, but must be refilled within 36 years at rate 1/d"),
                refusal(
                        Algorithm.WARM_UP,
                        l -> l.warmup(Duration.ofSeconds(-1)),
                        "warmup is -1s, but must be from 0s to 365d"),
                refusal(
                        Algorithm.WARM_UP,
                        l -> l.warmup(Duration.ofDays(366)),
                        "warmup is 366d, but must be from 0s to 365d"),
                refusal(Algorithm.WARM_UP, l -> l.coldFactor(0.5), "coldFactor is 0.5, but must be from 1 to 1000"),
                refusal(
                        Algorithm.WARM_UP,
                        l -> l.coldFactor(Double.NaN),
                        "coldFactor is NaN, but must be from 1 to 1000"),
                refusal(Algorithm.CONCURRENCY, l -> l.maxConcurrent(-1), "maxConcurrent is -1, but must be 0 or more"),
                refusal(
                        Algorithm.CONCURRENCY,
                        l -> l.lease(Duration.ZERO),
                        "lease is 0s, but must be longer than 0s and at most 3650d"),
                refusal(
                        Algorithm.CONCURRENCY,
                        l -> l.lease(Duration.ofDays(365_000)),
                        "lease is PT8760000H, but must be longer than 0s and at most 3650d"),
                refusal(
                        Algorithm.SLIDING_WINDOW,
                        l -> l.slots(0),
                        "slots is 0, but must be from 1 to 1000 (use SLIDING_LOG for more)"),
                refusal(
                        Algorithm.SLIDING_WINDOW,
                        l -> l.slots(1_001),
                        "slots is 1001, but must be from 1 to 1000 (use SLIDING_LOG for more)"),
                refusal(Algorithm.TOKEN_BUCKET, l -> l.maxWaiting(-1), "maxWaiting is -1, but must be 0 or more"),
                refusal(
                        Algorithm.FIXED_WINDOW,
                        l -> l.rate("1000000000/s"),
                        "rate is 1000000000/s, but must be at most one permit per 2ns for FIXED_WINDOW"),
                refusal(
                        Algorithm.FIXED_WINDOW,
                        l -> l.rate("100/999us"),
                        "rate is 100/999us, but must have a period of at least 1ms for FIXED_WINDOW, because the wall clock shows"
                                + " no shorter one (use SLIDING_LOG or TOKEN_BUCKET)"),
                refusal(
                        Algorithm.TOKEN_BUCKET,
                        l -> l.rate("5/month"),
                        "rate is 5/month, but must not be per month for TOKEN_BUCKET (use FIXED_WINDOW, or a fixed duration such as"
                                + " 30d)"),
                refusal(
                        Algorithm.SLIDING_LOG,
                        l -> l.rate("5/week"),
                        "rate is 5/week, but must not be per week for SLIDING_LOG (use FIXED_WINDOW, or a fixed duration such as 7d)"),
                refusal(
                        Algorithm.WARM_UP,
                        l -> l.rate("0/year"),
                        "rate is 0/year, but must not be per year for WARM_UP (use FIXED_WINDOW, or a fixed duration such as 365d)"),
                refusal(
                        Algorithm.FIXED_WINDOW,
                        l -> l.rate("5/year").startsOn("15"),
                        "startsOn is 15, but must be a month and day such as 04-01 for a rate per year"),
                refusal(
                        Algorithm.FIXED_WINDOW,
                        l -> l.startsOn("15"),
                        "startsOn is 15, but a rate of 10/s does not support it; remove it, or use a rate per week, month or"
                                + " year"));
    }

    private static Arguments refusal(Algorithm algorithm, UnaryOperator<Limit.Builder> change, String message) {
        return arguments(algorithm, change, message);
    }

    @ParameterizedTest(name = "{2}")
    @MethodSource("refusals")
    void aValueOutOfRangeIsRefusedWithItsNameAndTheRange(
            Algorithm algorithm, UnaryOperator<Limit.Builder> change, String message) {
        assertThatThrownBy(() -> change.apply(valid(algorithm)).build())
                .isInstanceOfSatisfying(
                        InvalidLimitException.class,
                        invalid -> assertThat(message).startsWith(invalid.attribute() + " "))
                .hasMessage(message);
    }

    @Test
    void theShortestFixedWindowIsAMillisecond() {
        assertThat(valid(Algorithm.FIXED_WINDOW).rate("100/ms").build().rate()).hasToString("100/ms");
        assertThat(valid(Algorithm.SLIDING_LOG).rate("100/100us").build().rate())
                .hasToString("100/100us");
    }

    @Test
    void whatIsMissingIsNamedWithAnExample() {
        assertThatThrownBy(() -> Limit.of("bare", Algorithm.TOKEN_BUCKET).build())
                .hasMessage("rate is missing, but TOKEN_BUCKET needs it. Example: 100/s");
        assertThatThrownBy(() -> Limit.of("bare", Algorithm.CONCURRENCY).build())
                .hasMessage("maxConcurrent is missing, but CONCURRENCY needs it. Example: 20");
        assertThatThrownBy(() -> Limit.of("bare", Algorithm.WARM_UP).rate("1/s").build())
                .hasMessage("warmup is missing, but WARM_UP needs it. Example: 10s");
        assertThatThrownBy(() -> Limit.of("bare", Algorithm.TOKEN_BUCKET)
                        .maxConcurrent(5)
                        .build())
                .hasMessage("maxConcurrent is 5, but TOKEN_BUCKET does not support it; remove it, or use CONCURRENCY");
        assertThatThrownBy(() -> Limit.of(" ", Algorithm.GCRA).rate("1/s").build())
                .hasMessage("name is \" \", but must not be blank");
    }

    @ParameterizedTest
    @EnumSource(mode = EnumSource.Mode.EXCLUDE, names = "DEFAULT")
    void aLimitBuiltFromItsBuilderIsEqual(Algorithm algorithm) {
        Limit.Builder builder = valid(algorithm).maxWaiting(3);
        for (Attribute attribute : Attribute.values()) {
            if (algorithm.uses(attribute)) {
                set(builder, attribute);
            }
        }
        Limit limit = (algorithm == Algorithm.FIXED_WINDOW ? builder.rate("20/month") : builder).build();
        assertThat(limit.toBuilder().build()).isEqualTo(limit).hasSameHashCodeAs(limit);
        assertThat(limit.toBuilder().maxWaiting(4).build()).isNotEqualTo(limit);
        assertThat(valid(algorithm).build()).isNotEqualTo(limit);
    }

    @Test
    void defaultsFollowTheRate() {
        assertThat(valid(Algorithm.TOKEN_BUCKET).rate("5/m").build().burst()).isEqualTo(5);
        assertThat(valid(Algorithm.SMOOTH_BURSTY).rate("120/m").build().burst()).isEqualTo(2);
        assertThat(valid(Algorithm.SMOOTH_BURSTY).rate("5/m").build().burst()).isEqualTo(1);
        assertThat(valid(Algorithm.WARM_UP).build().coldFactor()).isEqualTo(3);
        assertThat(valid(Algorithm.SLIDING_WINDOW).build().slots()).isEqualTo(10);
        assertThat(valid(Algorithm.FIXED_WINDOW).build().zone()).isEqualTo(ZoneOffset.UTC);
        assertThat(valid(Algorithm.CONCURRENCY).build().lease()).isNull();
        assertThat(valid(Algorithm.ADAPTIVE).build().maxConcurrent()).isEqualTo(1000);
        assertThat(valid(Algorithm.ADAPTIVE).build().minConcurrent()).isEqualTo(4);
        assertThat(valid(Algorithm.ADAPTIVE).maxConcurrent(3).build().minConcurrent())
                .isEqualTo(3);
        assertThat(valid(Algorithm.ADAPTIVE).build().rankOfOthers()).isZero();
        assertThat(valid(Algorithm.TOKEN_BUCKET).build().maxWaiting()).isEqualTo(1000);
    }

    @Test
    void aQuotaOfTheCalendarStartsOnTheFirstDay() {
        assertThat(valid(Algorithm.FIXED_WINDOW).rate("5/month").build().startsOn())
                .isEqualTo("1");
        assertThat(valid(Algorithm.FIXED_WINDOW).rate("5/week").build().startsOn())
                .isEqualTo("MONDAY");
        assertThat(valid(Algorithm.FIXED_WINDOW).rate("5/year").build().startsOn())
                .isEqualTo("01-01");
        assertThat(valid(Algorithm.FIXED_WINDOW).rate("5/7d").build().startsOn())
                .isNull();
        for (String without : List.of("unlimited", "0/d")) {
            Limit limit =
                    valid(Algorithm.FIXED_WINDOW).rate(without).startsOn("15").build();
            assertThat(limit.startsOn()).as(without).isNull();
        }
        Limit first = valid(Algorithm.FIXED_WINDOW).rate("5/month").build();
        assertThat(first.toBuilder().startsOn("1").build()).isEqualTo(first);
        assertThat(first.toBuilder().startsOn("2").build()).isNotEqualTo(first);
    }

    @Test
    void theCapacityIsTheMostPermitsOfOneCall() {
        assertThat(valid(Algorithm.TOKEN_BUCKET).burst(7).build().capacity()).isEqualTo(7);
        assertThat(valid(Algorithm.LEAKY_BUCKET).burst(7).build().capacity()).isEqualTo(7);
        assertThat(valid(Algorithm.SLIDING_LOG).build().capacity()).isEqualTo(10);
        assertThat(valid(Algorithm.CONCURRENCY).build().capacity()).isEqualTo(5);
        assertThat(valid(Algorithm.SMOOTH_BURSTY).build().capacity()).isEqualTo(Long.MAX_VALUE);
    }

    @Test
    void aLimitReadsAsItsAlgorithmAndParameters() {
        assertThat(Limit.of("search", Algorithm.TOKEN_BUCKET)
                        .rate("100/s")
                        .burst(200)
                        .build())
                .hasToString("search: token-bucket, rate 100/s, burst 200");
        assertThat(valid(Algorithm.CONCURRENCY).build()).hasToString("valid: concurrency, maxConcurrent 5");
        assertThat(valid(Algorithm.WARM_UP).build()).hasToString("valid: warm-up, rate 10/s, warmup 5s");
        assertThat(valid(Algorithm.FIXED_WINDOW).build()).hasToString("valid: fixed-window, rate 10/s, zone UTC");
        assertThat(valid(Algorithm.FIXED_WINDOW).rate("9/month").build())
                .hasToString("valid: fixed-window, rate 9/month, zone UTC, startsOn 1");
        assertThat(valid(Algorithm.SLIDING_WINDOW).build()).hasToString("valid: sliding-window, rate 10/s, slots 10");
    }

    @Test
    void whatAnAnnotationLeavesOpenIsNoAlgorithmOfALimit() {
        assertThatThrownBy(Limit.of("open", Algorithm.DEFAULT).rate("10/s")::build)
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageStartingWith("algorithm is DEFAULT, but must be one of " + Algorithm.all())
                .hasMessageEndingWith("because only @RateLimited can leave it open");
    }

    @Test
    void onlyTheQueueWaitsByDefault() {
        for (Algorithm algorithm : Algorithm.all()) {
            assertThat(algorithm.defaultPolicy())
                    .isEqualTo(algorithm == Algorithm.LEAKY_BUCKET ? Policy.WAIT : Policy.REJECT);
        }
    }

    private static Limit.Builder blocked(Duration block) {
        return valid(Algorithm.TOKEN_BUCKET).block(block);
    }

    @Test
    void blocksHaveDefaultsThatFit() {
        Limit limit = blocked(Duration.ofMinutes(1)).build();
        assertThat(limit.blockFactor()).isEqualTo(2);
        assertThat(limit.blockMax()).isEqualTo(Duration.ofHours(24));
        assertThat(limit.blocksByCharge()).isFalse();
        assertThat(limit).hasToString("valid: token-bucket, rate 10/s, burst 10, block 1m to 1d");
        assertThat(blocked(Duration.ofDays(7)).build().blockMax()).isEqualTo(Duration.ofDays(7));
        Limit charged = blocked(Duration.ofMinutes(1)).charged(true).build();
        assertThat(charged.blockMax()).isEqualTo(Duration.ofMinutes(15));
        assertThat(charged.blocksByCharge()).isTrue();
        assertThat(blocked(Duration.ofHours(1)).charged(true).build().blockMax())
                .isEqualTo(Duration.ofHours(1));
        assertThat(valid(Algorithm.TOKEN_BUCKET).charged(true).build().blocksByCharge())
                .isFalse();
        assertThat(valid(Algorithm.TOKEN_BUCKET).build().block()).isNull();
        assertThat(blocked(Duration.ofDays(365)).blockFactor(1000).build().toBuilder()
                        .withoutBlocks()
                        .build())
                .isEqualTo(valid(Algorithm.TOKEN_BUCKET).build());
    }

    @Test
    void blocksOutsideTheirRangesAreRefusedWithPlaceValueAndRange() {
        Duration minute = Duration.ofMinutes(1);
        assertRefused(blocked(Duration.ZERO), "block is 0s, but must be longer than 0s");
        assertRefused(blocked(minute.negated()), "block is -1m, but must be longer than 0s");
        assertRefused(blocked(Duration.ofDays(366)), "block is 366d, but must be at most 365d");
        assertRefused(
                blocked(minute).blockMax(minute.minusNanos(1)),
                "blockMax is 59999999999ns, but must be from block, 1m, to 365d");
        assertRefused(
                blocked(minute).blockMax(Duration.ofDays(366)),
                "blockMax is 366d, but must be from block, 1m, to 365d");
        for (double factor : new double[] {0.99, -1, 1001, Double.NaN, Double.POSITIVE_INFINITY}) {
            assertRefused(
                    blocked(minute).blockFactor(factor), "blockFactor is " + factor + ", but must be from 1 to 1000");
        }
        assertRefused(
                valid(Algorithm.GCRA).blockFactor(3),
                "blockFactor is 3.0, but has no effect without block; set block, or remove it");
        assertRefused(
                valid(Algorithm.GCRA).blockMax(minute),
                "blockMax is 1m, but has no effect without block; set block, or remove it");
    }

    private static void assertRefused(Limit.Builder limit, String message) {
        assertThatThrownBy(limit::build)
                .isInstanceOf(InvalidLimitException.class)
                .hasMessage(message);
    }
}
