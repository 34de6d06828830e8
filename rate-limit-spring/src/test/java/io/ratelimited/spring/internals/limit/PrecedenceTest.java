package io.ratelimited.spring.internals.limit;

import static io.ratelimited.core.Algorithm.CONCURRENCY;
import static io.ratelimited.core.Algorithm.FIXED_WINDOW;
import static io.ratelimited.core.Algorithm.GCRA;
import static io.ratelimited.core.Algorithm.LEAKY_BUCKET;
import static io.ratelimited.core.Algorithm.SLIDING_WINDOW;
import static io.ratelimited.core.Algorithm.TOKEN_BUCKET;
import static io.ratelimited.core.Algorithm.WARM_UP;
import static io.ratelimited.core.Policy.REJECT;
import static io.ratelimited.core.Policy.SHADOW;
import static io.ratelimited.core.Policy.WAIT;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Policy;
import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.CapturedLog;
import io.ratelimited.spring.ContextRunner;
import io.ratelimited.spring.LimitChange;
import io.ratelimited.spring.MissingKey;
import io.ratelimited.spring.NamedLimit;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.TestLimits;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;

/** Properties win over the annotation, which wins over the defaults, one property at a time. */
@Tag("spring-boot")
@Tag("slow")
class PrecedenceTest {

    private final ContextRunner runner = ContextRunner.limited(new ManualTicker());

    /** Where a limit's property is said, and what it comes to. */
    record Case(String bean, String property, String said, Object annotation, Object properties) {

        /** What a limit has to say at least to have the property by default. */
        String[] leastOf(String limit) {
            String prefix = "rate-limit.limits." + limit + ".";
            return switch (property) {
                case "rate" -> new String[] {prefix + "policy=reject"};
                case "warmup" -> new String[] {prefix + "algorithm=warm-up", prefix + "rate=5/s"};
                case "starts-on" -> new String[] {prefix + "algorithm=fixed-window", prefix + "rate=5/month"};
                case "max-concurrent" -> new String[] {prefix + "algorithm=concurrency"};
                case "max-wait" -> new String[] {prefix + "rate=5/s", prefix + "policy=wait"};
                default -> new String[] {prefix + "rate=5/s"};
            };
        }

        @Override
        public String toString() {
            return property;
        }
    }

    static Stream<Case> everyAttributeIsTakenFromTheNearestPlace() {
        return Stream.of(
                new Case("bucket", "algorithm", "gcra", TOKEN_BUCKET, GCRA),
                new Case("bucket", "rate", "7/m", "5/s", "7/m"),
                new Case("bucket", "burst", "9", 20L, 9L),
                new Case("bucket", "policy", "shadow", WAIT, SHADOW),
                new Case("bucket", "max-wait", "9s", 2_000_000_000L, 9_000_000_000L),
                new Case("bucket", "key", "#a0 + 'x'", "#a0", "#a0 + 'x'"),
                new Case("bucket", "permits", "3", "2", "3"),
                new Case("bucket", "when", "false", "true", "false"),
                new Case("bucket", "fallback", "other", "instead", "other"),
                new Case("warm", "warmup", "9s", "PT10S", "PT9S"),
                new Case("quota", "starts-on", "31", "15", "31"),
                new Case("flights", "max-concurrent", "9", 3, 9));
    }

    @ParameterizedTest
    @MethodSource
    void everyAttributeIsTakenFromTheNearestPlace(Case c) {
        ContextRunner beans = ContextRunner.with(runner, Said.class);
        String limit = "rate-limit.limits." + c.bean + "." + c.property + "=" + c.said;
        String defaults = "rate-limit.defaults." + c.property + "=" + c.said;
        beans.run(
                context -> assertThat(value(TestLimits.of(context), c, c.bean)).isEqualTo(c.annotation));
        beans.withPropertyValues(limit)
                .run(context ->
                        assertThat(value(TestLimits.of(context), c, c.bean)).isEqualTo(c.properties));
        beans.withPropertyValues(defaults).run(context -> {
            assertThat(value(TestLimits.of(context), c, c.bean)).isEqualTo(c.annotation);
        });
        runner.withPropertyValues(defaults)
                .withPropertyValues(c.leastOf("unsaid"))
                .run(context ->
                        assertThat(value(TestLimits.of(context), c, "unsaid")).isEqualTo(c.properties));
    }

    private static Object value(TestLimits limits, Case c, String name) {
        NamedLimit limit = limits.limit(name);
        Map<String, String> use = limit.properties();
        return switch (c.property) {
            case "algorithm" -> limit.limit().algorithm();
            case "rate" -> limit.limit().rate().toString();
            case "burst" -> limit.limit().burst();
            case "warmup" -> limit.limit().warmup().toString();
            case "max-concurrent" -> limit.limit().maxConcurrent();
            case "starts-on" -> String.valueOf(limit.limit().startsOn());
            case "policy" -> limit.policy();
            case "max-wait" -> limit.maxWaitNanos();
            case "key" -> String.valueOf(use.get("key"));
            case "permits" -> String.valueOf(use.get("permits"));
            case "when" -> String.valueOf(use.get("when"));
            case "fallback" -> String.valueOf(use.get("fallback"));
            default -> throw new IllegalArgumentException(c.property);
        };
    }

    @Test
    void propertiesThatNoAnnotationHasAreOfThePropertiesThenOfTheDefaults() {
        Function<NamedLimit, List<Object>> said = limit -> List.of(
                limit.limit().zone().getId(),
                limit.limit().slots(),
                limit.limit().maxWaiting(),
                ((io.ratelimited.spring.internals.limit.ConfiguredLimit) limit)
                        .enforcement()
                        .missingKey());
        runner.withPropertyValues(
                        "rate-limit.defaults.max-waiting=7",
                        "rate-limit.defaults.missing-key=skip",
                        "rate-limit.defaults.zone=Europe/Rome",
                        "rate-limit.limits.own.algorithm=fixed-window",
                        "rate-limit.limits.own.rate=5/d",
                        "rate-limit.limits.own.zone=Asia/Tokyo",
                        "rate-limit.limits.own.max-waiting=3",
                        "rate-limit.limits.own.missing-key=deny",
                        "rate-limit.limits.slotted.algorithm=sliding-window",
                        "rate-limit.limits.slotted.rate=5/s",
                        "rate-limit.limits.slotted.slots=4")
                .run(context -> {
                    TestLimits limits = TestLimits.of(context);
                    assertThat(said.apply(limits.limit("own"))).containsExactly("Asia/Tokyo", 10, 3, MissingKey.DENY);
                    assertThat(said.apply(limits.limit("slotted"))).containsExactly("Z", 4, 7, MissingKey.SKIP);
                });
    }

    @Test
    void whatTheAnnotationSaysForAnotherAlgorithmIsDropped() {
        ContextRunner.with(runner, Said.class)
                .withPropertyValues(
                        "rate-limit.limits.bucket.algorithm=fixed-window",
                        "rate-limit.limits.warm.algorithm=leaky-bucket")
                .run(context -> {
                    TestLimits limits = TestLimits.of(context);
                    assertThat(limits.limit("bucket").limit().algorithm()).isEqualTo(FIXED_WINDOW);
                    assertThat(limits.limit("bucket").policy()).isEqualTo(WAIT);
                    assertThat(limits.limit("warm").limit().burst()).isEqualTo(50);
                });
    }

    @Test
    void theFirstDayOfAMonthIsThatOfOtherMonthsOnly() {
        ContextRunner.with(runner, Said.class, OpenQuota.class)
                .withPropertyValues(
                        "rate-limit.defaults.starts-on=04-01",
                        "rate-limit.limits.quota.rate=7/month",
                        "rate-limit.limits.quota.tiers.more.rate=70/month",
                        "rate-limit.limits.quota.tiers.yearly.rate=70/year",
                        "rate-limit.limits.quota.tiers.daily.rate=1/d",
                        "rate-limit.limits.quota.tiers.internal.rate=unlimited",
                        "rate-limit.limits.open.rate=7/month",
                        "rate-limit.limits.other.algorithm=fixed-window",
                        "rate-limit.limits.other.rate=5/d")
                .run(context -> {
                    TestLimits limits = TestLimits.of(context);
                    assertThat(limits.limit("open").limit().startsOn()).isEqualTo("20");
                    NamedLimit quota = limits.limit("quota");
                    assertThat(quota.limit().startsOn()).isEqualTo("15");
                    assertThat(quota.tiers().get("more").startsOn()).isEqualTo("15");
                    assertThat(quota.tiers().get("yearly").startsOn()).isEqualTo("01-01");
                    assertThat(quota.tiers().get("daily").startsOn()).isNull();
                    assertThat(quota.tiers().get("internal").isUnlimited()).isTrue();
                    assertThat(limits.limit("other").limit().startsOn()).isNull();
                    limits.change("quota", LimitChange.rate("7/d"));
                    assertThat(quota.limit().rate()).hasToString("7/d");
                    limits.change("quota", LimitChange.rate("7/month").with("starts-on", "3"));
                    assertThat(quota.limit().startsOn()).isEqualTo("3");
                });
        ContextRunner.with(runner, Said.class)
                .withPropertyValues("rate-limit.limits.quota.rate=7/week")
                .run(context -> assertThat(
                                TestLimits.of(context).limit("quota").limit().startsOn())
                        .isEqualTo("MONDAY"));
    }

    @Test
    void aChangeOfALimitLeavesTheFirstDayOfItsTiersAndCallers() {
        ContextRunner.with(runner, Said.class)
                .withPropertyValues(
                        "rate-limit.limits.quota.rate=7/month",
                        "rate-limit.limits.quota.tiers.more.rate=70/month",
                        "rate-limit.limits.quota.tiers.same.max-waiting=5")
                .run(context -> {
                    TestLimits limits = TestLimits.of(context);
                    NamedLimit quota = limits.limit("quota");
                    limits.override("quota", "own", LimitChange.rate("9/month"), null);
                    limits.change("quota", LimitChange.rate("7/week"));
                    assertThat(quota.limit().startsOn()).isEqualTo("MONDAY");
                    assertThat(quota.tiers().get("same").startsOn()).isEqualTo("MONDAY");
                    assertThat(quota.tiers().get("more").startsOn()).isEqualTo("15");
                    assertThat(limits.configured("quota")
                                    .limiterOf("own", limits.configured("quota").limiter())
                                    .limit()
                                    .startsOn())
                            .isEqualTo("15");
                    limits.change("quota", LimitChange.rate("7/year"));
                    assertThat(quota.limit().startsOn()).isEqualTo("01-01");
                    assertThat(quota.tiers().get("more").startsOn()).isEqualTo("15");
                    limits.change("quota", LimitChange.rate("8/month").with("starts-on", "20"));
                    assertThat(quota.tiers().get("more").startsOn()).isEqualTo("20");
                    limits.revert("quota");
                    assertThat(quota.tiers().get("more").startsOn()).isEqualTo("15");
                });
    }

    @Test
    @ExtendWith(CapturedLog.Capture.class)
    void whatIsDroppedIsTold(CapturedLog output) {
        ContextRunner.with(runner, Said.class)
                .withPropertyValues("rate-limit.limits.bucket.algorithm=fixed-window")
                .run(context -> assertThat(output)
                        .containsOnlyOnce(
                                "that only TOKEN_BUCKET supports are ignored, because the properties set algorithm"
                                        + " FIXED_WINDOW"));
    }

    @Test
    void aDefaultAlgorithmReachesAnnotationsThatSayNone() {
        runner.withBean(Bursty.class)
                .withPropertyValues("rate-limit.defaults.algorithm=sliding-window")
                .run(context -> assertThat(TestLimits.of(context)
                                .limit("Bursty.call")
                                .limit()
                                .algorithm())
                        .isEqualTo(SLIDING_WINDOW));
    }

    @Test
    void whatTheAnnotationStatesWinsOverTheDefaultsEvenIfItIsTheUsualValue() {
        ContextRunner.with(runner, Usual.class)
                .withPropertyValues("rate-limit.defaults.algorithm=gcra", "rate-limit.defaults.policy=shadow")
                .run(context -> {
                    TestLimits limits = TestLimits.of(context);
                    assertThat(limits.limit("stated").limit().algorithm()).isEqualTo(TOKEN_BUCKET);
                    assertThat(limits.limit("stated").policy()).isEqualTo(REJECT);
                    assertThat(limits.limit("open").limit().algorithm()).isEqualTo(GCRA);
                    assertThat(limits.limit("open").policy()).isEqualTo(SHADOW);
                });
        ContextRunner.with(runner, Usual.class).run(context -> {
            NamedLimit open = TestLimits.of(context).limit("open");
            assertThat(open.limit().algorithm()).isEqualTo(TOKEN_BUCKET);
            assertThat(open.policy()).isEqualTo(REJECT);
        });
    }

    @Test
    void aQueueWaitsUnlessItSaysOtherwiseItself() {
        runner.withPropertyValues(
                        "rate-limit.defaults.policy=reject",
                        "rate-limit.limits.queue.algorithm=leaky-bucket",
                        "rate-limit.limits.queue.rate=5/s",
                        "rate-limit.limits.meter.algorithm=leaky-bucket",
                        "rate-limit.limits.meter.rate=5/s",
                        "rate-limit.limits.meter.policy=reject")
                .run(context -> {
                    TestLimits limits = TestLimits.of(context);
                    assertThat(limits.limit("queue").limit().algorithm()).isEqualTo(LEAKY_BUCKET);
                    assertThat(limits.limit("queue").policy()).isEqualTo(WAIT);
                    assertThat(limits.limit("meter").policy()).isEqualTo(REJECT);
                });
    }

    /** A limit that is closed in an emergency starts, whatever is tried beside it. */
    @ParameterizedTest
    @CsvSource({"defaults, 0/s", "defaults, unlimited", "limits.search, 0/s", "limits.search, unlimited"})
    void candidatesAroundARateAreLeftOutWhereThereIsNone(String place, String rate) {
        runner.withPropertyValues("rate-limit." + place + ".candidates=auto", "rate-limit.limits.search.rate=" + rate)
                .run(context -> assertThat(TestLimits.of(context)
                                .configured("search")
                                .candidates()
                                .tracker())
                        .isNull());
        runner.withPropertyValues("rate-limit." + place + ".candidates=auto", "rate-limit.limits.search.rate=1/s")
                .run(context -> assertThat(TestLimits.of(context)
                                .configured("search")
                                .candidates()
                                .tracker())
                        .isNotNull());
    }

    @Test
    void aDefaultChargeIsLeftOutWhereCallsInFlightCount() {
        ContextRunner.with(runner, Said.class)
                .withPropertyValues(
                        "rate-limit.defaults.charge=2",
                        "rate-limit.limits.self.algorithm=adaptive",
                        "rate-limit.limits.search.rate=1/s")
                .run(context -> {
                    TestLimits limits = TestLimits.of(context);
                    assertThat(limits.limit("flights").limit().isCharged()).isFalse();
                    assertThat(limits.limit("self").limit().isCharged()).isFalse();
                    assertThat(limits.limit("search").limit().isCharged()).isTrue();
                    context.getBean(Said.class).flights("ann");
                });
    }

    /** A default block that is left out would silently block nobody. */
    @Test
    void aDefaultBlockThatAChargeRulesOutFailsStartupUnlessTheLimitHasNone() {
        ContextRunner queue = runner.withPropertyValues(
                "rate-limit.defaults.block=1m",
                "rate-limit.limits.queue.algorithm=leaky-bucket",
                "rate-limit.limits.queue.rate=5/s",
                "rate-limit.limits.queue.charge=2");
        queue.run(context -> assertThat(context.getStartupFailure())
                .hasMessageContaining("LEAKY_BUCKET does not support block with a charge"));
        queue.withPropertyValues("rate-limit.limits.queue.block=0s")
                .run(context -> assertThat(
                                TestLimits.of(context).limit("queue").limit().block())
                        .isNull());
    }

    @Test
    void aDryRunOfAllLimitsIsOneOfQueuesToo() {
        ContextRunner.with(runner, Queue.class)
                .withPropertyValues(
                        "rate-limit.defaults.policy=shadow",
                        "rate-limit.defaults.max-wait=9s",
                        "rate-limit.limits.stated.algorithm=leaky-bucket",
                        "rate-limit.limits.stated.rate=5/s",
                        "rate-limit.limits.stated.policy=wait")
                .run(context -> {
                    TestLimits limits = TestLimits.of(context);
                    assertThat(limits.limit("queue").limit().algorithm()).isEqualTo(LEAKY_BUCKET);
                    assertThat(limits.limit("queue").policy()).isEqualTo(SHADOW);
                    assertThat(limits.limit("queue").maxWaitNanos()).isZero();
                    assertThat(limits.limit("stated").policy()).isEqualTo(WAIT);
                });
    }

    @Test
    void anOperatorMayTurnWaitingOffWithoutTouchingMaxWait() {
        ContextRunner.with(runner, Said.class)
                .withPropertyValues("rate-limit.limits.bucket.policy=reject")
                .run(context -> assertThat(
                                TestLimits.of(context).limit("bucket").policy())
                        .isEqualTo(REJECT));
    }

    @Test
    void placeholdersWorkInEveryStringAttribute() {
        runner.withBean(Placeholders.class)
                .withPropertyValues(
                        "my.name=dear",
                        "my.rate=2/h",
                        "my.key=#user",
                        "my.permits=2",
                        "my.when=#user != 'boss'",
                        "my.wait=0s",
                        "my.fallback=instead")
                .run(context -> {
                    assertThat(context).hasNotFailed();
                    Placeholders bean = context.getBean(Placeholders.class);
                    assertThat(bean.call("ann")).isEqualTo("called");
                    assertThat(bean.call("ann")).isEqualTo("instead");
                    assertThat(bean.call("bob")).isEqualTo("called");
                    assertThat(bean.call("boss")).isEqualTo("called");
                    assertThat(bean.call("boss")).isEqualTo("called");
                    assertThat(TestLimits.of(context).limit("dear").maxWaitNanos())
                            .isZero();
                });
    }

    @Test
    @ExtendWith(CapturedLog.Capture.class)
    void tiersReplaceWhatTheySayAndInheritTheRest(CapturedLog output) {
        runner.withBean(Tiered.class)
                .withPropertyValues(
                        "rate-limit.limits.tiered.rate=1/h",
                        "rate-limit.limits.tiered.burst=1",
                        "rate-limit.limits.tiered.key=#user",
                        "rate-limit.limits.tiered.tiers.gold.rate=2/h",
                        "rate-limit.limits.tiered.tiers.platinum.burst=3",
                        "rate-limit.limits.tiered.tiers.internal.rate=unlimited")
                .run(context -> {
                    Tiered bean = context.getBean(Tiered.class);
                    assertThat(admitted(bean, "gold")).isEqualTo(2);
                    assertThat(admitted(bean, "platinum")).isEqualTo(3);
                    assertThat(admitted(bean, "internal")).isEqualTo(10);
                    assertThat(admitted(bean, "bronze")).isEqualTo(1);
                    assertThat(admitted(bean, "tin")).isEqualTo(1);
                    assertThat(admitted(bean, null)).isEqualTo(1);
                    assertThat(admitted(bean, " ")).isEqualTo(1);
                    assertThat(output).containsOnlyOnce("Rate limit 'tiered' has no tier 'bronze'");
                    var gold = TestLimits.of(context).limit("tiered").tiers().get("gold");
                    assertThat(gold).isNotNull();
                });
    }

    @Test
    void aTierOfCallsInFlightMayBeExempt() {
        runner.withBean(Tiered.class)
                .withPropertyValues(
                        "rate-limit.limits.tiered.algorithm=concurrency",
                        "rate-limit.limits.tiered.max-concurrent=0",
                        "rate-limit.limits.tiered.tiers.internal.rate=unlimited")
                .run(context -> {
                    Tiered bean = context.getBean(Tiered.class);
                    assertThat(admitted(bean, "internal")).isEqualTo(10);
                    assertThat(admitted(bean, "other")).isZero();
                });
    }

    private static int admitted(Tiered bean, @Nullable String plan) {
        int admitted = 0;
        for (int i = 0; i < 10; i++) {
            try {
                bean.call(plan + "'s user", plan);
                admitted++;
            } catch (RateLimitExceededException ex) {
                assertThat(ex.limit()).isEqualTo("tiered");
            }
        }
        return admitted;
    }

    @Test
    void aNameThatNothingHasIsRefusedWithAGuess() {
        ContextRunner.with(runner, Said.class).run(context -> {
            TestLimits limits = TestLimits.of(context);
            assertThatExceptionOfType(IllegalArgumentException.class)
                    .isThrownBy(() -> limits.tryAcquire("buckte", null))
                    .withMessageContaining("'buckte'")
                    .withMessageContaining("did you mean 'bucket'?");
        });
    }

    static class Said {
        @RateLimited(
                name = "bucket",
                algorithm = TOKEN_BUCKET,
                rate = "5/s",
                burst = 20,
                policy = WAIT,
                maxWait = "2s",
                key = "#a0",
                permits = "2",
                when = "true",
                fallback = "instead")
        public void bucket(String user) {}

        void instead(String user) {}

        void other(String user) {}

        @RateLimited(name = "warm", algorithm = WARM_UP, rate = "50/s", warmup = "10s")
        public void warm(String user) {}

        @RateLimited(name = "quota", algorithm = FIXED_WINDOW, rate = "5/month", startsOn = "15")
        public void quota(String user) {}

        @RateLimited(name = "flights", algorithm = CONCURRENCY, maxConcurrent = 3)
        public void flights(String user) {}
    }

    static class OpenQuota {
        @RateLimited(name = "open", algorithm = FIXED_WINDOW, startsOn = "20")
        public void call() {}
    }

    static class Queue {

        @RateLimited(name = "queue", algorithm = LEAKY_BUCKET, rate = "1/m", burst = 1, maxWait = "5s")
        public void call() {}
    }

    static class Usual {
        @RateLimited(name = "stated", algorithm = TOKEN_BUCKET, rate = "5/s", policy = REJECT)
        public void stated() {}

        @RateLimited(name = "open", algorithm = Algorithm.DEFAULT, rate = "5/s", policy = Policy.DEFAULT)
        public void open() {}
    }

    static class Bursty {
        @RateLimited(rate = "5/s", burst = 20)
        public void call() {}
    }

    static class Placeholders {
        @RateLimited(
                name = "${my.name}",
                rate = "${my.rate}",
                key = "${my.key}",
                permits = "${my.permits}",
                when = "${my.when}",
                policy = WAIT,
                maxWait = "${my.wait}",
                fallback = "${my.fallback}")
        public String call(String user) {
            return "called";
        }

        @SuppressWarnings("unused")
        private String instead(String user) {
            return "instead";
        }
    }

    static class Tiered {
        @RateLimited(value = "tiered", tier = "#plan")
        public void call(String user, @Nullable String plan) {}
    }
}
