package io.ratelimited.spring.internals.overload;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Policy;
import io.ratelimited.spring.Contexts;
import io.ratelimited.spring.LimitChange;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.TestLimits;
import io.ratelimited.spring.autoconfigure.RateLimitAutoConfiguration;
import io.ratelimited.spring.redis.RedisRateLimitAutoConfiguration;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.diagnostics.FailureAnalysis;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;

/** ADAPTIVE and classes of calls by annotation and properties, and what the start says of mistakes. */
@ExtendWith(OutputCaptureExtension.class)
@Tag("spring-boot")
@Tag("slow")
class OverloadStartTest {

    private static final String HERE = OverloadStartTest.class.getName();

    static class Reports {

        @RateLimited(
                name = "reports",
                algorithm = Algorithm.ADAPTIVE,
                maxConcurrent = 200,
                priority = "#vip ? 'critical' : 'batch'")
        public String report(boolean vip) {
            return "report";
        }
    }

    static class Plain {

        @RateLimited(name = "plain", algorithm = Algorithm.ADAPTIVE)
        public void call() {}
    }

    static class Keyed {

        @RateLimited(name = "keyed", algorithm = Algorithm.ADAPTIVE, key = "#user")
        public void call(String user) {}
    }

    static class Charged {

        @RateLimited(name = "charged", algorithm = Algorithm.ADAPTIVE, charge = "#count")
        public void call() {}
    }

    static class Bucket {

        @RateLimited(name = "bucket", rate = "5/s", priority = "'critical'")
        public void call() {}
    }

    static class WithHeader {

        @RateLimited(name = "header", algorithm = Algorithm.ADAPTIVE, priority = "header('X-Class')")
        public void call() {}
    }

    private static ApplicationContextRunner runner(Class<?> bean, String... properties) {
        return Contexts.with(Contexts.runner(), bean).withPropertyValues(properties);
    }

    @Test
    void theAnnotationAndThePropertiesDescribeIt() {
        runner(
                        Reports.class,
                        "rate-limit.limits.reports.min-concurrent=2",
                        "rate-limit.limits.reports.late-after=500ms",
                        "rate-limit.limits.reports.priorities=critical, normal, batch",
                        "rate-limit.limits.reports.shares.batch=5%")
                .run(context -> {
                    assertThat(context).hasNotFailed();
                    Limit limit = TestLimits.of(context).limit("reports").limit();
                    assertThat(limit.algorithm()).isEqualTo(Algorithm.ADAPTIVE);
                    assertThat(limit.maxConcurrent()).isEqualTo(200);
                    assertThat(limit.minConcurrent()).isEqualTo(2);
                    assertThat(limit.lateAfter()).isEqualTo(Duration.ofMillis(500));
                    assertThat(limit.priorities()).containsExactly("critical", "normal", "batch");
                    assertThat(limit.shares()).isEqualTo(Map.of("batch", 0.05));
                    assertThat(context.getBean(Reports.class).report(true)).isEqualTo("report");
                });
    }

    @Test
    void itNeedsNoNumber(CapturedOutput output) {
        runner(Plain.class, "rate-limit.limits.named.algorithm=adaptive").run(context -> {
            assertThat(context).hasNotFailed();
            TestLimits limits = TestLimits.of(context);
            for (String name : List.of("plain", "named")) {
                assertThat(limits.limit(name).limit().maxConcurrent()).isEqualTo(1000);
                assertThat(limits.limit(name).limit().minConcurrent()).isEqualTo(4);
                assertThat(limits.limit(name).policy()).isEqualTo(Policy.REJECT);
            }
        });
        assertThat(output).doesNotContain("WARN");
    }

    record Mistake(Class<?> bean, List<String> properties, List<String> told, String remedy) {}

    private static Mistake mistake(Class<?> bean, String remedy, List<String> told, String... properties) {
        return new Mistake(bean, List.of(properties), told, remedy);
    }

    static Stream<Mistake> mistakesStopTheStart() {
        String reports = "rate-limit.limits.reports.";
        String classes = reports + "priorities=critical,batch";
        String other = "rate-limit.limits.other.";
        return Stream.of(
                mistake(
                        Keyed.class,
                        "second limit",
                        List.of(
                                "'keyed' is invalid: key is ",
                                "Origin: @RateLimited on " + HERE + "$Keyed.call(String)",
                                "but ADAPTIVE has one limit for all calls of this instance and does not support it",
                                "\"#user\"")),
                mistake(
                        Plain.class,
                        "Remove it",
                        List.of(
                                "Origin: rate-limit.limits.plain.key",
                                "but ADAPTIVE has one limit for all calls of this instance and does not support it",
                                "clientIp"),
                        "rate-limit.limits.plain.key=clientIp"),
                mistake(
                        Charged.class,
                        "counts over time",
                        List.of(
                                "'charged'",
                                "but ADAPTIVE counts calls in flight and does not support it",
                                "\"#count\"")),
                mistake(
                        Bucket.class,
                        "use ADAPTIVE or CONCURRENCY",
                        List.of("'bucket'", ", but TOKEN_BUCKET does not support it", "'critical'")),
                mistake(
                        Reports.class,
                        "rate-limit.limits.reports.priorities",
                        List.of(
                                "'reports'",
                                "but there are no priorities to choose from",
                                "#vip ? 'critical' : 'batch'")),
                mistake(
                        Reports.class,
                        "add it to rate-limit.limits.reports.priorities",
                        List.of("'reports'", "is 'batch'", "[critical, btach] (did you mean 'btach'?)"),
                        reports + "priorities=critical,btach"),
                mistake(
                        Plain.class,
                        "",
                        List.of(
                                "Origin: rate-limit.limits.other.priorities.",
                                "but TOKEN_BUCKET does not support it",
                                "[a, b]"),
                        other + "algorithm=token-bucket",
                        other + "rate=5/s",
                        other + "priorities=a,b"),
                mistake(
                        Reports.class,
                        "",
                        List.of(
                                "Origin: rate-limit.limits.reports.shares.",
                                "shares is bulk, but must be one of the priorities"),
                        classes,
                        reports + "shares.bulk=5%"),
                mistake(
                        Reports.class,
                        "",
                        List.of(
                                "Origin: rate-limit.limits.reports.shares.",
                                "must be percentages such as 5%: batch is \"some\""),
                        classes,
                        reports + "shares.batch=some"),
                mistake(
                        Reports.class,
                        "",
                        List.of("Origin: rate-limit.limits.reports.shares.", "above 0% and below 100%"),
                        classes,
                        reports + "shares.batch=100%"),
                mistake(
                        Reports.class,
                        "",
                        List.of(
                                "Origin: rate-limit.limits.reports.min-concurrent.",
                                "minConcurrent is 300, but must be from 1 to maxConcurrent, which is 200"),
                        classes,
                        reports + "min-concurrent=300"),
                mistake(
                        Reports.class,
                        "",
                        List.of("Origin: rate-limit.limits.reports.late-after.", "longer than 0s"),
                        classes,
                        reports + "late-after=0s"),
                mistake(
                        Plain.class,
                        "",
                        List.of("Origin: rate-limit.limits.other.late-after.", "but CONCURRENCY does not support it"),
                        other + "algorithm=concurrency",
                        other + "max-concurrent=5",
                        other + "late-after=1s"),
                mistake(
                        Plain.class,
                        "",
                        List.of("Origin: rate-limit.limits.plain.rate.", "but ADAPTIVE does not support it", "5/s"),
                        "rate-limit.limits.plain.rate=5/s"));
    }

    @ParameterizedTest
    @MethodSource
    void mistakesStopTheStart(Mistake mistake) {
        String[] properties = mistake.properties.toArray(String[]::new);
        runner(mistake.bean, properties).run(context -> {
            assertThat(context).hasFailed();
            FailureAnalysis analysis = Contexts.analyse(context.getStartupFailure(), properties);
            assertThat(analysis.getDescription()).contains(mistake.told);
            assertThat(analysis.getAction()).contains(mistake.remedy).isNotBlank();
        });
    }

    private static void failsOnRedis(String told, String... properties) {
        new ApplicationContextRunner()
                .withConfiguration(
                        AutoConfigurations.of(RateLimitAutoConfiguration.class, RedisRateLimitAutoConfiguration.class))
                // Nobody listens there.
                .withPropertyValues("rate-limit.redis.url=redis://localhost:1", "rate-limit.backend=redis")
                .withPropertyValues(properties)
                .run(context -> {
                    assertThat(context).hasFailed();
                    FailureAnalysis analysis = Contexts.analyse(context.getStartupFailure());
                    assertThat(analysis.getDescription())
                            .contains("Origin: rate-limit.limits.busy", told)
                            .contains("set the backend to memory for limit 'busy'");
                    assertThat(analysis.getAction()).contains("choose another backend");
                });
    }

    @Test
    void redisHasNeitherALimitThatFindsItselfNorClassesOfCalls() {
        failsOnRedis("ADAPTIVE adapts the limit of one process", "rate-limit.limits.busy.algorithm=adaptive");
        failsOnRedis(
                "[critical, batch]",
                "rate-limit.limits.busy.algorithm=concurrency",
                "rate-limit.limits.busy.max-concurrent=5",
                "rate-limit.limits.busy.priorities=critical,batch");
    }

    @Test
    void aClassThatCallersCanChooseIsReported(CapturedOutput output) {
        runner(WithHeader.class, "rate-limit.limits.header.priorities=critical,batch")
                .run(context -> assertThat(context).hasNotFailed());
        assertThat(output)
                .containsOnlyOnce(".call: clients control the priority of rate limit 'header' \"header('X-Class')\","
                        + " so they can claim the highest priority. Look the priority up in a bean")
                .contains("[RL-209]");
    }

    @Test
    void prioritiesThatNothingChoosesAreReported(CapturedOutput output) {
        runner(Plain.class, "rate-limit.limits.plain.priorities=critical,normal,batch")
                .run(context -> assertThat(context).hasNotFailed());
        assertThat(output)
                .containsOnlyOnce("has the priorities [critical, normal, batch] but no priority expression, so all"
                        + " its calls have the priority 'normal'")
                .contains("[RL-218]");
    }

    @Test
    void defaultsMeanTheLimitsThatTheySuit() {
        runner(
                        Plain.class,
                        "rate-limit.defaults.priority=@classes",
                        "rate-limit.defaults.priorities=a,b",
                        "rate-limit.defaults.key=clientIp",
                        "rate-limit.defaults.late-after=1s",
                        "rate-limit.limits.bucket.rate=5/s")
                .withBean("classes", String.class, () -> "a")
                .run(context -> {
                    assertThat(context).hasNotFailed();
                    TestLimits limits = TestLimits.of(context);
                    assertThat(limits.limit("plain").limit().priorities()).containsExactly("a", "b");
                    assertThat(limits.limit("plain").properties().get("key")).isNull();
                    assertThat(limits.limit("bucket").limit().priorities()).isEmpty();
                });
    }

    @Test
    void itNeverBecomesAnotherAlgorithmAtRunTime() {
        runner(Plain.class).run(context -> {
            TestLimits limits = TestLimits.of(context);
            assertThat(catchThrowable(() -> limits.change(
                            "plain", LimitChange.of("algorithm", "concurrency").with("max-concurrent", "5"))))
                    .hasMessageContaining("cannot change from ADAPTIVE to CONCURRENCY")
                    .hasMessageContaining("ADAPTIVE belongs to one process and has no keys");
        });
    }
}
