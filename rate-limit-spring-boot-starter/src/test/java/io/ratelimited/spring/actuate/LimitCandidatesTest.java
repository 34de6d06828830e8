package io.ratelimited.spring.actuate;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Decision;
import io.ratelimited.core.internals.candidates.CandidateReport;
import io.ratelimited.core.internals.candidates.CandidateReport.Candidate;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.Contexts;
import io.ratelimited.spring.LimitChange;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.TestLimits;
import io.ratelimited.spring.redis.RedisRateLimitAutoConfiguration;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.data.redis.autoconfigure.DataRedisAutoConfiguration;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;

/** Candidates in an application: who is asked, who is told, and that nobody notices. */
@ExtendWith(OutputCaptureExtension.class)
@Tag("slow")
class LimitCandidatesTest {

    private final ManualTicker ticker = new ManualTicker().autoAdvance();
    private final ApplicationContextRunner runner = Contexts.runner(ticker)
            .withConfiguration(AutoConfigurations.of(RateLimitsEndpointAutoConfiguration.class))
            .withPropertyValues(
                    "management.endpoints.web.exposure.include=ratelimits",
                    "rate-limit.actuator.mask-keys=false",
                    "rate-limit.limits.search.rate=10/m",
                    "rate-limit.limits.search.candidates=5/m, 20/m");

    private static CandidateReport said(TestLimits limits, String name) {
        return limits.configured(name).candidates().state().report();
    }

    private static List<Double> shares(TestLimits limits, String name) {
        return said(limits, name).candidates().stream().map(Candidate::rejected).toList();
    }

    private void run(ApplicationContextRunner with, Consumer<TestLimits> action) {
        with.run(context -> {
            assertThat(context).hasNotFailed();
            action.accept(TestLimits.of(context));
        });
    }

    /** Each algorithm that counts over time rejects, charges, blocks and delays the same calls without candidates and with them. */
    @Test
    void nobodyIsRejectedChargedBlockedOrDelayedByACandidate() {
        List<String> properties = new ArrayList<>();
        List<String> names = new ArrayList<>();
        for (Algorithm algorithm : Algorithm.all()) {
            if (!algorithm.countsCallsInFlight()) {
                String name = algorithm.name().toLowerCase(Locale.ROOT).replace('_', '-');
                names.add(name);
                for (String suffix : List.of("", "-tried")) {
                    String limit = "rate-limit.limits." + name + suffix + ".";
                    properties.add(limit + "algorithm=" + name);
                    properties.add(limit + "rate=4/s");
                    properties.add(limit + (algorithm.family() == Algorithm.Family.PACED ? "policy=wait" : "block=3s"));
                    if (algorithm == Algorithm.WARM_UP) {
                        properties.add(limit + "warmup=1s");
                    }
                }
                properties.add("rate-limit.limits." + name + "-tried.candidates=1/s, 2/s, 1000/s");
                properties.add("rate-limit.limits." + name + "-tried.candidates-for=31d");
            }
        }
        run(runner.withPropertyValues(properties.toArray(String[]::new)), limits -> {
            for (String name : names) {
                List<String> plain = decisions(limits, name);
                assertThat(decisions(limits, name + "-tried")).as(name).isEqualTo(plain);
                assertThat(said(limits, name + "-tried").calls()).isEqualTo(60);
                assertThat(shares(limits, name + "-tried").get(0)).isGreaterThan(0.1);
            }
        });
    }

    private List<String> decisions(TestLimits limits, String name) {
        ticker.advance(Duration.ofDays(1)
                .minusNanos(ticker.epochNanos() % Duration.ofDays(1).toNanos()));
        List<String> all = new ArrayList<>();
        for (int i = 0; i < 60; i++) {
            long before = ticker.nanos();
            ticker.advance(Duration.ofMillis(20 + i % 4 * 60L));
            boolean admitted = true;
            try {
                limits.execute(name, i % 3 == 0 ? null : "caller", () -> "");
            } catch (RuntimeException ex) {
                admitted = false;
            }
            Decision left = limits.peek(name, "caller");
            all.add(admitted + " after " + (ticker.nanos() - before) + ", " + left.remaining() + " left, "
                    + left.reset() + ", " + left.retryAfter() + ", " + left.blocked());
        }
        return all;
    }

    static class Shop {

        @RateLimited(name = "search", key = "#caller", permits = "#permits", when = "#permits != 3")
        @RateLimited(name = "closed", rate = "0/s")
        String buy(String caller, int permits) {
            return caller;
        }

        @RateLimited(name = "logins", rate = "3/h", key = "#caller", charge = "#error != null ? 1 : 0")
        void login(String caller, boolean right) {
            if (!right) {
                throw new IllegalStateException("wrong");
            }
        }
    }

    @Test
    void aCallIsTriedByEachLimitThatItReachesWhateverIsDecided() {
        ApplicationContextRunner masked = runner.withPropertyValues("rate-limit.actuator.mask-keys=true");
        masked.withBean(Shop.class).run(context -> {
            Shop shop = context.getBean(Shop.class);
            TestLimits limits = TestLimits.of(context);
            for (int permits : new int[] {0, 1, 3, 6}) {
                assertThatThrownBy(() -> shop.buy("ann", permits)).hasMessageContaining("closed");
            }
            // That of 3 does not reach the limit. 5/m never admits 6 at once.
            assertThat(said(limits, "search").calls()).isEqualTo(3);
            assertThat(said(limits, "search").candidates().get(0).mostRejected())
                    .containsExactly(new CandidateReport.Caller("ann", 1));
            assertThat(shares(limits, "search").get(1)).isZero();
            assertThat(context.getBean(RateLimitsEndpoint.class)
                            .limit("search", null)
                            .get("candidates"))
                    .asString()
                    .contains("mostRejected=[{", "rejected=1")
                    .doesNotContain("key=ann");
        });
    }

    @Test
    void callersWithOtherNumbersAreLeftOutBecauseTheRateOfTheLimitIsNotTheirs() {
        ApplicationContextRunner with = runner.withBean(Shop.class)
                .withPropertyValues(
                        "rate-limit.limits.search.tier=#caller == 'gil' ? 'gold' : null",
                        "rate-limit.limits.search.tiers.gold.rate=1/m");
        with.run(context -> {
            TestLimits limits = TestLimits.of(context);
            limits.operations().override("search", "bob", LimitChange.tier("gold"), null);
            limits.operations().override("search", "eve", LimitChange.rate("1/m"), null);
            for (String caller : List.of("gil", "bob", "eve", "ann")) {
                for (int i = 0; i < 9; i++) {
                    assertThatThrownBy(() -> context.getBean(Shop.class).buy(caller, 1));
                }
            }
            assertThat(said(limits, "search").calls()).isEqualTo(9);
            assertThat(said(limits, "search").candidates().get(0).mostRejected())
                    .containsExactly(new CandidateReport.Caller("ann", 4));
            limits.operations().change("search", LimitChange.rate("5/m"));
            for (String caller : List.of("bob", "eve")) {
                assertThat(limits.configured("search").limiterOf(caller).limit().rate())
                        .hasToString("1/m");
            }
        });
    }

    @Test
    void aCallCostsACandidateWhatItCostTheLimit() {
        runner.withBean(Shop.class)
                .withPropertyValues("rate-limit.limits.logins.candidates=1/h, 2/h, 9/h")
                .run(context -> {
                    Shop shop = context.getBean(Shop.class);
                    for (int i = 0; i < 10; i++) {
                        shop.login("ann", true);
                        try {
                            shop.login("eve", false);
                        } catch (RuntimeException expected) {
                            // Wrong three times, and rejected from then on.
                        }
                    }
                    // 1/h would have rejected eve from her second try on. Nobody knows whether those after the third
                    // were wrong.
                    assertThat(shares(TestLimits.of(context), "logins")).containsExactly(0.45, 0.4, 0.0);
                });
    }

    @Test
    void theTimeEndsWithOneLineAndTheResultStays(CapturedOutput output) {
        run(runner.withPropertyValues("rate-limit.limits.search.candidates-for=2h"), limits -> {
            IntStream.range(0, 10).forEach(i -> limits.tryAcquire("search", "ann"));
            assertThat(output)
                    .contains("Rate limit search: token-bucket, rate 10/m", "candidates 5/m,20/m, candidates-for 2h");
            ticker.advance(Duration.ofHours(2));
            assertThat(output)
                    .containsOnlyOnce("Rate limit 'search': of 10 calls: 5/m rejects 50 % (1 caller), 20/m rejects 0 %;"
                            + " the smallest below 1 % is 20/m");
            limits.tryAcquire("search", "ann");
            assertThat(said(limits, "search").calls()).isEqualTo(10);
            assertThat(limits.configured("search").candidates().tracker()).isNull();
        });
        assertThat(output).containsOnlyOnce("Rate limit 'search': of");
    }

    @Test
    void whatIsKnownIsLoggedWhenTheApplicationEnds(CapturedOutput output) {
        run(runner, limits -> limits.tryAcquire("search", null));
        assertThat(output).contains("Rate limit 'search': of 1 call: 5/m rejects 0 %");
    }

    @Test
    void autoGoesOnAroundWhatItHasSeen() {
        run(runner.withPropertyValues("rate-limit.limits.search.candidates=auto"), limits -> {
            assertThat(said(limits, "search").candidates()).hasSizeBetween(5, 9);
            ticker.advance(Duration.ofHours(1));
            IntStream.range(0, 100).forEach(i -> limits.tryAcquire("search", null));
            ticker.advance(Duration.ofHours(1));
            assertThat(said(limits, "search").candidates())
                    .extracting(Candidate::name)
                    .startsWith("40/m")
                    .endsWith("160/m");
            ticker.advance(Duration.ofHours(22));
            assertThat(limits.configured("search").candidates().tracker()).isNull();
        });
    }

    @Test
    void anOperatorStartsAndStopsThemWithoutAChangeOfTheLimit() {
        String[] inFlight = {"rate-limit.limits.files.algorithm=concurrency", "rate-limit.limits.files.max-concurrent=5"
        };
        runner.withPropertyValues(inFlight).run(context -> {
            TestLimits limits = TestLimits.of(context);
            RateLimitsEndpoint endpoint = context.getBean(RateLimitsEndpoint.class);
            assertThat(endpoint.update("files", "candidates=off")).doesNotContainKey("candidates");
            assertThatThrownBy(() -> endpoint.update("files", "candidates=auto"))
                    .hasMessageEndingWith("[RL-290]");
            assertThat(endpoint.update("search", "candidates=1/m; 2/m, for=1h"))
                    .containsEntry("scope", "instance")
                    .containsEntry("rate", "10/m")
                    .containsEntry("burst", 10L);
            IntStream.range(0, 4).forEach(i -> limits.tryAcquire("search", "ann"));
            assertThat(endpoint.limit("search", null).get("candidates"))
                    .isEqualTo(Map.of(
                            "since",
                            "1970-01-01T00:00:00Z",
                            "until",
                            "1970-01-01T01:00:00Z",
                            "ended",
                            false,
                            "calls",
                            4L,
                            "rates",
                            List.of(
                                    Map.of(
                                            "rate",
                                            "1/m",
                                            "rejected",
                                            75.0,
                                            "error",
                                            0.0,
                                            "callers",
                                            1L,
                                            "mostRejected",
                                            List.of(Map.of("key", "ann", "rejected", 3L))),
                                    Map.of(
                                            "rate",
                                            "2/m",
                                            "rejected",
                                            50.0,
                                            "error",
                                            0.0,
                                            "callers",
                                            1L,
                                            "mostRejected",
                                            List.of(Map.of("key", "ann", "rejected", 2L)))),
                            "smallestBelow",
                            Map.of()));
            assertThatThrownBy(() -> endpoint.update("search", "candidates=5"))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageStartingWith("Rate limit 'search' is invalid: candidates contain \"5\"")
                    .hasMessageEndingWith("Correct it, or remove it. [RL-290]");
            assertThatThrownBy(() -> endpoint.update("search", "candidates=5/m, for=40d"))
                    .hasMessageEndingWith("[RL-291]");
            assertThatThrownBy(() -> endpoint.update("search", "candidates=5/m, rate=1/m"))
                    .hasMessageContaining("can only be combined with");
            assertThat(said(limits, "search").calls()).isEqualTo(4);
            assertThat(endpoint.update("search", "candidates=off")).doesNotContainKey("candidates");
            // Nothing is left to be done in 24 hours. The alarm of a rush ends by itself.
            await().until(() -> ticker.sleeping() == 0);
            assertThat(limits.configured("search").candidates().tracker()).isNull();
        });
    }

    /** The rate, the algorithm and the policy of the limit change while they are tried, and others start before their time is over. */
    @Test
    void candidatesGoOnThroughChangesOfTheLimitUntilOthersStart(CapturedOutput output) {
        runner.withPropertyValues("rate-limit.limits.search.policy=shadow").run(context -> {
            TestLimits limits = TestLimits.of(context);
            RateLimitsEndpoint endpoint = context.getBean(RateLimitsEndpoint.class);
            for (int i = 0; i < 40; i++) {
                // In a dry run, all calls go.
                limits.execute("search", "ann", () -> "");
            }
            assertThat(shares(limits, "search")).containsExactly(0.875, 0.5);
            limits.change("search", LimitChange.rate("1/m"));
            limits.operations()
                    .change("search", LimitChange.of(Map.of("algorithm", "sliding-log", "policy", "reject")));
            IntStream.range(0, 40).forEach(i -> limits.tryAcquire("search", "eve"));
            ticker.advance(Duration.ofSeconds(2));
            assertThat(shares(limits, "search")).containsExactly(0.875, 0.5);
            assertThat(said(limits, "search").calls()).isEqualTo(80);
            ticker.advance(Duration.ofHours(23));
            endpoint.update("search", "candidates=2/m, for=24h");
            limits.tryAcquire("search", "eve");
            // The end of those before ends nothing.
            ticker.advance(Duration.ofHours(23));
            assertThat(limits.configured("search").candidates().tracker()).isNotNull();
            assertThat(output).doesNotContain("Rate limit 'search': of");
            ticker.advance(Duration.ofHours(1));
            assertThat(limits.configured("search").candidates().tracker()).isNull();
            assertThat(output).containsOnlyOnce("Rate limit 'search': of 1 call: 2/m rejects 0 %");
        });
    }

    /** The second steps have windows, as the first ones; the limit has become a bucket, or has no number any more. */
    @ParameterizedTest
    @ValueSource(strings = {"algorithm=token-bucket", "rate=unlimited", "rate=0/m", "algorithm=leaky-bucket"})
    void autoGoesOnWithTheLimitBesideWhichItStarted(String change) {
        String[] set = {
            "rate-limit.limits.search.algorithm=fixed-window", "rate-limit.limits.search.candidates=auto",
        };
        run(runner.withPropertyValues(set), limits -> {
            String[] property = change.split("=");
            limits.operations().change("search", LimitChange.of(Map.of(property[0], property[1])));
            List<Candidate> first = said(limits, "search").candidates();
            ticker.advance(Duration.ofHours(1));
            assertThat(said(limits, "search").candidates()).isEqualTo(first);
            // Half before and half after a minute of the clock begins; a bucket would not be full again.
            ticker.advance(Duration.ofMinutes(1)
                    .minusNanos(ticker.epochNanos() % Duration.ofMinutes(1).toNanos() + 1_000_000));
            IntStream.range(0, 40).forEach(i -> limits.tryAcquire("search", "ann"));
            ticker.advance(Duration.ofSeconds(1));
            IntStream.range(0, 40).forEach(i -> limits.tryAcquire("search", "ann"));
            ticker.advance(Duration.ofMinutes(59));
            assertThat(limits.configured("search").candidates().tracker()).isNotNull();
            IntStream.range(0, 80).forEach(i -> limits.tryAcquire("search", "ann"));
            assertThat(said(limits, "search").candidates())
                    .isNotEmpty()
                    .allSatisfy(one -> assertThat(one.limit().algorithm()).isEqualTo(Algorithm.FIXED_WINDOW));
            assertThat(said(limits, "search").candidates())
                    .filteredOn(one -> one.limit().rate().permits() == 40)
                    .extracting(Candidate::rejected)
                    .containsExactly(0.5);
        });
    }

    @Test
    void aCallThatDoesNotWaitIsNotTriedAsOneThatWaits() {
        run(
                runner.withPropertyValues(
                        "rate-limit.limits.search.policy=wait", "rate-limit.limits.search.max-wait=1m"),
                limits -> {
                    IntStream.range(0, 10).forEach(i -> limits.tryAcquire("search", "ann"));
                    assertThat(shares(limits, "search")).containsExactly(0.5, 0.0);
                });
    }

    /** Nobody listens at the port. Calls are tried whether they are rejected, admitted or decided here meanwhile. */
    @ParameterizedTest
    @ValueSource(strings = {"deny", "allow", "local"})
    void candidatesNeedNoRedis(String onFailure) {
        runner.withConfiguration(
                        AutoConfigurations.of(DataRedisAutoConfiguration.class, RedisRateLimitAutoConfiguration.class))
                .withPropertyValues(
                        "spring.data.redis.port=1",
                        "rate-limit.redis.timeout=5s",
                        "rate-limit.limits.search.backend=redis",
                        "rate-limit.limits.search.on-failure=" + onFailure)
                .run(context -> {
                    assertThat(context).hasNotFailed();
                    TestLimits limits = TestLimits.of(context);
                    boolean[] admitted = new boolean[7];
                    IntStream.range(0, 7).forEach(i -> admitted[i] = limits.tryAcquire("search", "ann"));
                    assertThat(admitted[0]).isEqualTo(!onFailure.equals("deny"));
                    assertThat(said(limits, "search").calls()).isEqualTo(7);
                    assertThat(said(limits, "search").candidates().get(0).mostRejected())
                            .containsExactly(new CandidateReport.Caller("ann", 2));
                    assertThat(context.getBean(RateLimitsEndpoint.class).update("search", "candidates=1/m"))
                            .containsEntry("scope", "instance");
                });
    }

    @Test
    void eachCandidateHasAGaugeUntilOthersAreTried() {
        runner.withConfiguration(AutoConfigurations.of(RateLimitMetricsAutoConfiguration.class))
                .withBean(SimpleMeterRegistry.class)
                .run(context -> {
                    TestLimits limits = TestLimits.of(context);
                    IntStream.range(0, 10).forEach(i -> limits.tryAcquire("search", "ann"));
                    MeterRegistry meters = context.getBean(MeterRegistry.class);
                    assertThat(meters.get("rate.limit.candidate.rejected")
                                    .tags("limit", "search", "candidate", "5/m")
                                    .gauge()
                                    .value())
                            .isEqualTo(0.5);
                    limits.configured("search").candidates().start("7/m", null, "");
                    assertThat(meters.get("rate.limit.candidate.rejected").gauges())
                            .extracting(Gauge::getId)
                            .extracting(id -> id.getTag("candidate"))
                            .containsExactly("7/m");
                });
    }

    @Test
    void mistakesFailStartupWithTheirPlace() {
        Map.of(
                        "candidates=5", "candidates contain \"5\", which is not a rate",
                        "candidates-for=10ms", "candidatesFor is 10ms, but must be from 1s to 31d")
                .forEach((property, problem) -> runner.withPropertyValues("rate-limit.limits.search." + property)
                        .run(context -> assertThat(Contexts.analyse(context.getStartupFailure())
                                        .getDescription())
                                .contains(problem, "rate-limit.limits.search")));
        runner.withPropertyValues(
                        "rate-limit.limits.a.max-concurrent=5",
                        "rate-limit.limits.a.algorithm=concurrency",
                        "rate-limit.limits.a.candidates=5/m")
                .run(context -> assertThat(
                                Contexts.analyse(context.getStartupFailure()).getDescription())
                        .contains("candidates contain \"5/m\"", "CONCURRENCY does not support it"));
    }
}
