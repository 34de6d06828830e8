package io.ratelimited.spring.internals.limit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.CallerLimit;
import io.ratelimited.core.Decision;
import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.CapturedLog;
import io.ratelimited.spring.ContextRunner;
import io.ratelimited.spring.LimitChange;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.TestLimits;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Numbers that a tier expression yields. */
@ExtendWith(CapturedLog.Capture.class)
class CallerNumbersTest {

    private final ManualTicker ticker = new ManualTicker();
    private final Plans plans = new Plans();

    static class Plans {

        private final Map<String, @Nullable Object> numbers = new HashMap<>();

        public @Nullable Object limitOf(String tenant) {
            return numbers.get(tenant);
        }
    }

    static class Api {

        @RateLimited(name = "api", rate = "5/s", key = "#tenant", tier = "@plans.limitOf(#tenant)")
        public void call(String tenant) {}

        @RateLimited(
                name = "quota",
                algorithm = Algorithm.FIXED_WINDOW,
                rate = "10/m",
                key = "#tenant",
                tier = "@plans.limitOf(#tenant)")
        public void count(String tenant) {}
    }

    /** Tiers that are not looked up in a bean. */
    static class Stated {

        @RateLimited(name = "argument", rate = "5/s", key = "#tenant", tier = "#plan")
        public void argument(String tenant, Object plan) {}

        @RateLimited(name = "path", rate = "5/s", key = "#tenant", tier = "#plan.strip()")
        public void path(String tenant, String plan) {}

        @RateLimited(name = "chosen", rate = "5/s", key = "#tenant", tier = "@plans.limitOf(#tenant) ?: #plan")
        public void orElse(String tenant, String plan) {}

        @RateLimited(
                name = "computed",
                rate = "5/s",
                key = "#tenant",
                tier = "T(io.ratelimited.core.CallerLimit).of(#plan)")
        public void computed(String tenant, String plan) {}

        @RateLimited(
                name = "constant",
                rate = "5/s",
                key = "#tenant",
                tier = "#plan == 'big' ? '9/s' : (@plans.limitOf(#tenant) ?: null)")
        public void constant(String tenant, String plan) {}
    }

    static class Flights {

        @RateLimited(
                name = "flights",
                algorithm = Algorithm.CONCURRENCY,
                maxConcurrent = 1,
                tier = "@plans.limitOf('x')")
        public void fly() {}
    }

    private void run(BiConsumer<Api, TestLimits> test, String... properties) {
        ContextRunner.limited(ticker)
                .withBean(Api.class)
                .withBean("plans", Plans.class, () -> plans)
                .withPropertyValues(properties)
                .run(context -> {
                    assertThat(context).hasNotFailed();
                    test.accept(context.getBean(Api.class), TestLimits.of(context));
                });
    }

    private static int admitted(Runnable call) {
        for (int calls = 0; calls < 1000; calls++) {
            try {
                call.run();
            } catch (RateLimitExceededException ex) {
                return calls;
            }
        }
        return Integer.MAX_VALUE;
    }

    @Test
    void textsAndValuesAreTheNumbersOfTheirCaller(CapturedLog output) {
        plans.numbers.put("text", "7/s");
        plans.numbers.put("burst", "500/m burst 9");
        plans.numbers.put("value", CallerLimit.of("500/m").burst(8));
        plans.numbers.put("optional", Optional.of("6/s"));
        plans.numbers.put("closed", "0/s");
        plans.numbers.put("tier", "GOLD");
        run(
                (api, limits) -> {
                    assertThat(admitted(() -> api.call("text"))).isEqualTo(7);
                    assertThat(admitted(() -> api.call("burst"))).isEqualTo(9);
                    assertThat(admitted(() -> api.call("value"))).isEqualTo(8);
                    assertThat(admitted(() -> api.call("optional"))).isEqualTo(6);
                    assertThat(admitted(() -> api.call("closed"))).isZero();
                    assertThat(admitted(() -> api.call("tier"))).isEqualTo(3);
                    assertThat(admitted(() -> api.call("nobody"))).isEqualTo(5);
                    plans.numbers.put("free", "unlimited");
                    for (int i = 0; i < 100; i++) {
                        api.call("free");
                    }
                    assertThat(output).doesNotContain("[RL-2");
                },
                "rate-limit.limits.api.tiers.gold.rate=3/s");
    }

    /** A method knows not whether its caller hands on the text of a client. */
    @ParameterizedTest
    @ValueSource(strings = {"unlimited", "900/s", "900/s burst 1000"})
    void textsAreNumbersOnlyIfABeanReturnsThem(String text, CapturedLog output) {
        ContextRunner.limited(ticker)
                .withBean(Stated.class)
                .withBean("plans", Plans.class, () -> plans)
                .withPropertyValues(
                        "rate-limit.limits.argument.tiers.gold.rate=3/s", "rate-limit.limits.path.tiers.gold.rate=3/s")
                .run(context -> {
                    Stated stated = context.getBean(Stated.class);
                    assertThat(admitted(() -> stated.argument("a", text))).isEqualTo(5);
                    assertThat(admitted(() -> stated.path("a", text))).isEqualTo(5);
                    assertThat(admitted(() -> stated.orElse("a", text))).isEqualTo(5);
                    assertThat(output.toString().split("\\[RL-281]", -1)).hasSize(4);
                    assertThat(output).contains("#plan.strip()").doesNotContain("[RL-280]");
                    assertThat(admitted(() -> stated.argument("b", "gold"))).isEqualTo(3);
                    assertThat(admitted(() -> stated.path("b", " GOLD "))).isEqualTo(3);
                    assertThat(admitted(() -> stated.argument("c", CallerLimit.of("7/s"))))
                            .isEqualTo(7);
                    assertThat(admitted(() -> stated.computed("c", "7/s"))).isEqualTo(7);
                    assertThat(admitted(() -> stated.constant("c", "big"))).isEqualTo(9);
                    plans.numbers.put("d", "8/s");
                    assertThat(admitted(() -> stated.constant("d", "small"))).isEqualTo(8);
                });
    }

    @Test
    void aChangeKeepsWhatWasUsed() {
        run((api, limits) -> {
            plans.numbers.put("a", "20/m");
            assertThat(admitted(() -> api.count("a"))).isEqualTo(20);
            plans.numbers.put("a", "30/m");
            assertThat(admitted(() -> api.count("a"))).isEqualTo(10);
            plans.numbers.put("a", null);
            assertThat(admitted(() -> api.count("a"))).isZero();
            ticker.advance(Duration.ofMinutes(1));
            assertThat(admitted(() -> api.count("a"))).isEqualTo(10);
        });
    }

    /** Never a wider limit, and one warning. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "-5/m",
                "99999999999999999999/m",
                "1000000000000001/m",
                "NaN/m",
                "12.5/m",
                "500/h",
                "20/month",
                "500/m burst 1000",
                "20/m burst -1",
                "/",
                "5",
                "sk-live/4f9d8a7b6c5e4d3c2b1a"
            })
    void numbersThatTheLimitCannotHaveAreTheLimitItselfWithOneWarning(String wrong, CapturedLog output) {
        plans.numbers.put("a", wrong);
        plans.numbers.put("b", wrong + " ");
        plans.numbers.put("c", CallerLimit.of(wrong));
        plans.numbers.put("d", wrong + "0".repeat(10_000));
        run((api, limits) -> {
            for (String tenant : List.of("a", "b", "c", "d", "a")) {
                ticker.advance(Duration.ofMinutes(1));
                assertThat(admitted(() -> api.count(tenant))).as(tenant).isEqualTo(10);
            }
            assertThat(output)
                    .containsOnlyOnce("[RL-280]")
                    .contains(
                            "Rate limit 'quota' cannot use the numbers of a caller, so the limit itself applies: tier is ")
                    .doesNotContain("sk-live");
            assertThat(output.toString().lines().filter(line -> line.contains("RL-280")))
                    .allSatisfy(line -> assertThat(line).hasSizeLessThan(600));
        });
    }

    @Test
    void otherTypesAreTheLimitItself(CapturedLog output) {
        plans.numbers.put("number", 500);
        plans.numbers.put("nan", Double.NaN);
        run((api, limits) -> {
            assertThat(admitted(() -> api.call("number"))).isEqualTo(5);
            assertThat(admitted(() -> api.call("nan"))).isEqualTo(5);
            assertThat(output).containsOnlyOnce("'api' cannot use the numbers of a caller");
        });
    }

    @Test
    void callsInFlightHaveNoNumbersOfCallers(CapturedLog output) {
        plans.numbers.put("x", "9/s");
        ContextRunner.limited(ticker)
                .withBean(Flights.class)
                .withBean("plans", Plans.class, () -> plans)
                .run(context -> {
                    context.getBean(Flights.class).fly();
                    context.getBean(Flights.class).fly();
                    assertThat(output)
                            .contains("'flights' (@RateLimited on", "but no tiers", "[RL-208]")
                            .containsOnlyOnce("rate is 9/s, but CONCURRENCY does not support it");
                });
    }

    @Test
    void anExpressionThatThrowsFailsTheCall() {
        plans.numbers.put("a", new Object() {
            @Override
            public String toString() {
                throw new IllegalStateException("the database is down");
            }
        });
        run((api, limits) -> assertThatThrownBy(() -> api.call("a")).hasStackTraceContaining("the database is down"));
    }

    @Test
    void callsByHandHaveTheNumbersOfTheLastCall() {
        plans.numbers.put("a", "50/s");
        run((api, limits) -> {
            api.call("a");
            assertThat(limits.peek("api", "a").remaining()).isEqualTo(49);
            assertThat(limits.remaining("a")).extracting(Decision::remaining).contains(49L);
            assertThat(limits.tryAcquire("api", "a", 40)).isTrue();
            limits.reserve("api", "a", 4).close();
            assertThat(limits.peek("api", "a").remaining()).isEqualTo(5);
            assertThat(limits.remaining("b", "80/s"))
                    .extracting(Decision::remaining)
                    .contains(80L);
            assertThat(limits.peek("api", "b").remaining()).isEqualTo(5);
            limits.reset("api", "a");
            assertThat(limits.peek("api", "a").remaining()).isEqualTo(50);
        });
    }

    @Test
    void anOverrideWinsOverTheNumbers() {
        plans.numbers.put("a", "50/s");
        run((api, limits) -> {
            api.call("a");
            limits.override("api", "a", LimitChange.rate("2/s"), null);
            assertThat(admitted(() -> api.call("a"))).isEqualTo(2);
            limits.removeOverride("api", "a");
            assertThat(admitted(() -> api.call("a"))).isEqualTo(49);
        });
    }

    /** Only the limit has changed, and with it what its callers can have. */
    @Test
    void numbersFollowAChangeOfTheLimit(CapturedLog output) {
        plans.numbers.put("a", "20/m");
        plans.numbers.put("b", "30/h");
        run((api, limits) -> {
            assertThat(admitted(() -> api.count("a"))).isEqualTo(20);
            assertThat(admitted(() -> api.count("b"))).isEqualTo(10);
            limits.change("quota", LimitChange.rate("11/m"));
            assertThat(admitted(() -> api.count("a"))).isZero();
            assertThat(admitted(() -> api.count("b"))).isEqualTo(1);
            limits.change("quota", LimitChange.rate("12/h"));
            assertThat(admitted(() -> api.count("b"))).isEqualTo(30);
            assertThat(admitted(() -> api.count("a"))).isEqualTo(12);
            assertThat(output.toString().split("RL-280", -1)).hasSize(4);
        });
    }

    @Test
    void allCallersAreInOneLimiterHoweverManyNumbersThereAre() {
        run((api, limits) -> {
            for (int i = 1; i <= 12_000; i++) {
                plans.numbers.put("t" + i, i + "/s");
                api.call("t" + i);
            }
            ConfiguredLimit limit = limits.configured("api");
            assertThat(limit.limiters()).hasSize(1);
            assertThat(limit.limiters().stream().mapToLong(RateLimiter::keys).sum())
                    .isEqualTo(12_000);
            assertThat(limits.peek("api", "t12").remaining()).isEqualTo(11);
            assertThat(limits.peek("api", "t12000").remaining()).isEqualTo(11_999);
        });
    }

    @Test
    void valuesThatAreNoNumbersAreUnknownTiersAsBefore(CapturedLog output) {
        plans.numbers.put("a", "platinum");
        plans.numbers.put("b", " ");
        run((api, limits) -> {
            assertThat(admitted(() -> api.call("a"))).isEqualTo(5);
            assertThat(admitted(() -> api.call("b"))).isEqualTo(5);
            assertThat(output).containsOnlyOnce("[RL-208]").doesNotContain("[RL-280]");
        });
    }
}
