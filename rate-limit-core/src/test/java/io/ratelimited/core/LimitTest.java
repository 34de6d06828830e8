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
                        .hasMessageStartingWith(attribute.label() + " has no meaning for " + algorithm + ": ")
                        .hasMessageEndingWith(
                                attribute == Attribute.RATE ? "; use maxConcurrent instead" : "; remove it");
            }
        }
    }

    static Stream<Arguments> refusals() {
        return Stream.of(
                refusal(
                        Algorithm.ADAPTIVE,
                        l -> l.maxConcurrent(9).minConcurrent(10),
                        "minConcurrent must be from 1 to maxConcurrent, which is 9: 10"),
                refusal(
                        Algorithm.ADAPTIVE,
                        l -> l.minConcurrent(0),
                        "minConcurrent must be from 1 to maxConcurrent, which is 1000: 0"),
                refusal(
                        Algorithm.ADAPTIVE,
                        l -> l.lateAfter(Duration.ZERO),
                        "lateAfter must be longer than 0s and at most 1d: PT0S"),
                refusal(
                        Algorithm.CONCURRENCY,
                        l -> l.priorities(List.of("a", "b", "a")),
                        "priorities must be different names, none of them blank: [a, b, a]"),
                refusal(
                        Algorithm.ADAPTIVE,
                        l -> l.priorities(List.of("a", " ")),
                        "priorities must be different names, none of them blank: [a,  ]"),
                refusal(
                        Algorithm.ADAPTIVE,
                        l -> l.priorities(List.of("a")).shares(Map.of("b", 0.1)),
                        "shares must be of classes in priorities [a]: b"),
                refusal(
                        Algorithm.ADAPTIVE,
                        l -> l.priorities(List.of("a")).shares(Map.of("a", 1.0)),
                        "shares must be above 0% and below 100%: a 1.0"),
                refusal(
                        Algorithm.ADAPTIVE,
                        l -> l.priorities(List.of("a", "b")).shares(Map.of("a", 0.5, "b", 0.5)),
                        "shares must be less than 100% together: {a=0.5, b=0.5}"),
                refusal(Algorithm.TOKEN_BUCKET, l -> l.burst(0), "burst must be at least 1: 0"),
                refusal(Algorithm.TOKEN_BUCKET, l -> l.burst(-5), "burst must be at least 1: -5"),
                refusal(Algorithm.LEAKY_BUCKET, l -> l.burst(0), "burst must be at least 1: 0"),
                refusal(Algorithm.SMOOTH_BURSTY, l -> l.burst(-1), "burst must be at least 0: -1"),
                refusal(
                        Algorithm.GCRA,
                        l -> l.burst(1_000_000_000_000_001L),
                        "burst must be at most 10^15: 1000000000000001"),
                refusal(
                        Algorithm.TOKEN_BUCKET,
                        l -> l.rate("1/3650d").burst(4),
                        "burst must be refilled within 36 years at rate 1/3650d: 4"),
                refusal(
                        Algorithm.TOKEN_BUCKET,
                        l -> l.rate("1/d").burst(13_400),
                        "burst must be refilled within 36 years at rate 1/d: 13400"),
                refusal(
                        Algorithm.WARM_UP,
                        l -> l.warmup(Duration.ofSeconds(-1)),
                        "warmup must be from 0s to 365d: PT-1S"),
                refusal(
                        Algorithm.WARM_UP,
                        l -> l.warmup(Duration.ofDays(366)),
                        "warmup must be from 0s to 365d: PT8784H"),
                refusal(Algorithm.WARM_UP, l -> l.coldFactor(0.5), "coldFactor must be from 1 to 1000: 0.5"),
                refusal(Algorithm.WARM_UP, l -> l.coldFactor(Double.NaN), "coldFactor must be from 1 to 1000: NaN"),
                refusal(Algorithm.CONCURRENCY, l -> l.maxConcurrent(-1), "maxConcurrent must be 0 or more: -1"),
                refusal(
                        Algorithm.CONCURRENCY,
                        l -> l.lease(Duration.ZERO),
                        "lease must be longer than 0s and at most 3650d: PT0S"),
                refusal(
                        Algorithm.CONCURRENCY,
                        l -> l.lease(Duration.ofDays(365_000)),
                        "lease must be longer than 0s and at most 3650d: PT8760000H"),
                refusal(
                        Algorithm.SLIDING_WINDOW,
                        l -> l.slots(0),
                        "slots must be from 1 to 1000 (use SLIDING_LOG for more): 0"),
                refusal(
                        Algorithm.SLIDING_WINDOW,
                        l -> l.slots(1_001),
                        "slots must be from 1 to 1000 (use SLIDING_LOG for more): 1001"),
                refusal(Algorithm.TOKEN_BUCKET, l -> l.maxWaiting(-1), "maxWaiting must be 0 or more: -1"),
                refusal(
                        Algorithm.FIXED_WINDOW,
                        l -> l.rate("1000000000/s"),
                        "rate must be at most one permit every 2ns for FIXED_WINDOW: 1000000000/s"),
                refusal(
                        Algorithm.TOKEN_BUCKET,
                        l -> l.rate("5/month"),
                        "rate cannot be per month for TOKEN_BUCKET (use FIXED_WINDOW, or a fixed duration such as"
                                + " 30d): 5/month"),
                refusal(
                        Algorithm.SLIDING_LOG,
                        l -> l.rate("5/week"),
                        "rate cannot be per week for SLIDING_LOG (use FIXED_WINDOW, or a fixed duration such as 7d):"
                                + " 5/week"),
                refusal(
                        Algorithm.WARM_UP,
                        l -> l.rate("0/year"),
                        "rate cannot be per year for WARM_UP (use FIXED_WINDOW, or a fixed duration such as 365d):"
                                + " 0/year"),
                refusal(
                        Algorithm.FIXED_WINDOW,
                        l -> l.rate("5/year").startsOn("15"),
                        "startsOn must be a month and day such as 04-01 for a rate per year: 15"),
                refusal(
                        Algorithm.FIXED_WINDOW,
                        l -> l.startsOn("15"),
                        "startsOn has no meaning for a rate of 10/s: 15; remove it, or use a rate per week, month or"
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
    void whatIsMissingIsNamedWithAnExample() {
        assertThatThrownBy(() -> Limit.of("bare", Algorithm.TOKEN_BUCKET).build())
                .hasMessage("rate is missing: TOKEN_BUCKET needs one, such as 100/s");
        assertThatThrownBy(() -> Limit.of("bare", Algorithm.CONCURRENCY).build())
                .hasMessage("maxConcurrent is missing: CONCURRENCY needs one, such as 20");
        assertThatThrownBy(() -> Limit.of("bare", Algorithm.WARM_UP).rate("1/s").build())
                .hasMessage("warmup is missing: WARM_UP needs one, such as 10s");
        assertThatThrownBy(() -> Limit.of(" ", Algorithm.GCRA).rate("1/s").build())
                .hasMessage("name must not be blank: \" \"");
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
                .hasMessageStartingWith("algorithm must be one of " + Algorithm.all())
                .hasMessageEndingWith(": DEFAULT");
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
        assertRefused(blocked(Duration.ZERO), "block must be longer than 0s: PT0S");
        assertRefused(blocked(minute.negated()), "block must be longer than 0s: PT-1M");
        assertRefused(blocked(Duration.ofDays(366)), "block must be at most 365d: PT8784H");
        assertRefused(
                blocked(minute).blockMax(minute.minusNanos(1)),
                "blockMax must be from block, 1m, to 365d: PT59.999999999S");
        assertRefused(
                blocked(minute).blockMax(Duration.ofDays(366)), "blockMax must be from block, 1m, to 365d: PT8784H");
        for (double factor : new double[] {0.99, -1, 1001, Double.NaN, Double.POSITIVE_INFINITY}) {
            assertRefused(blocked(minute).blockFactor(factor), "blockFactor must be from 1 to 1000: " + factor);
        }
        assertRefused(
                valid(Algorithm.GCRA).blockFactor(3),
                "blockFactor has no meaning without block; set block, or remove it: 3.0");
        assertRefused(
                valid(Algorithm.GCRA).blockMax(minute),
                "blockMax has no meaning without block; set block, or remove it: PT1M");
    }

    private static void assertRefused(Limit.Builder limit, String message) {
        assertThatThrownBy(limit::build)
                .isInstanceOf(InvalidLimitException.class)
                .hasMessage(message);
    }
}
