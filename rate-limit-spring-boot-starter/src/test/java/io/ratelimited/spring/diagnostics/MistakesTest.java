package io.ratelimited.spring.diagnostics;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.spring.InvalidRateLimitException;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.autoconfigure.RateLimitAutoConfiguration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.autoconfigure.aop.AopAutoConfiguration;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.annotation.Configuration;

/** Settings that are surely mistakes: each fails startup or logs a warning that says what to write. */
@ExtendWith(OutputCaptureExtension.class)
class MistakesTest {

    private final ApplicationContextRunner application = new ApplicationContextRunner()
            .withConfiguration(AutoConfigurations.of(AopAutoConfiguration.class, RateLimitAutoConfiguration.class));

    @Test
    void aLimitThatAdmitsNoCallIsWarnedOf(CapturedOutput output) {
        application
                .withPropertyValues(
                        "rate-limit.limits.shut.rate=0/s",
                        "rate-limit.limits.none.algorithm=concurrency",
                        "rate-limit.limits.none.max-concurrent=0",
                        "rate-limit.limits.open.rate=1/s")
                .run(context -> assertThat(output)
                        .contains("Rate limit 'shut' rejects every call, because its rate is 0/s. Origin:"
                                + " rate-limit.limits.shut. Set a number above 0, or remove the limit. [RL-270]")
                        .contains("Rate limit 'none' rejects every call, because its max-concurrent is 0.")
                        .doesNotContain("'open'"));
    }

    @ParameterizedTest
    @ValueSource(strings = {"rate-limits", "rate-limt", "rat-limit", "rate-lmiit", "spring.rate-limit"})
    void aPrefixThatLooksLikeOursIsWarnedOf(String prefix, CapturedOutput output) {
        application
                .withPropertyValues(prefix + ".limits.search.rate=1/s")
                .run(context -> assertThat(output)
                        .containsOnlyOnce("Properties under " + prefix + ".limits have no effect, because nothing reads"
                                + " them. Rename the prefix to rate-limit.limits. [RL-271]"));
    }

    @Test
    void aPrefixThatLooksLikeOursAndIsOfTheApplicationIsNotWarnedOf(CapturedOutput output) {
        application
                .withUserConfiguration(OfApplication.class)
                .withPropertyValues("rate-limiter.http.color=red", "date-limit.http.color=red")
                .run(context -> assertThat(output)
                        .contains("Properties under date-limit.http")
                        .doesNotContain("rate-limiter"));
    }

    /** Each instance would silently enforce all of each limit. */
    @Test
    void anAddressOfRedisWithoutABackendIsWarnedOf(CapturedOutput output) {
        ApplicationContextRunner addressed = application.withPropertyValues("rate-limit.redis.url=redis://localhost:1");
        addressed
                .withPropertyValues("rate-limit.backend=memory")
                .run(context -> assertThat(output).doesNotContain("RL-273"));
        addressed.run(context -> assertThat(output)
                .contains("Property rate-limit.redis.url has no effect: no property sets a backend, so each instance"
                        + " enforces the limits on its own. Set rate-limit.backend: redis, or memory if that is meant."
                        + " [RL-273]"));
    }

    @Test
    void theRightPrefixIsNotWarnedOf(CapturedOutput output) {
        application
                .withPropertyValues("rate-limit.limits.search.rate=1/s")
                .run(context -> assertThat(output).doesNotContain("RL-271").doesNotContain("RL-270"));
    }

    @Test
    void aSecondLimitWithoutANameIsWarnedOf(CapturedOutput output) {
        application
                .withBean(Twice.class)
                .run(context -> assertThat(output)
                        .containsOnlyOnce("Rate limit 'Twice.call#2' has no name, so responses show the name of its"
                                + " method. Origin: @RateLimited on ")
                        .contains("[RL-272]"));
    }

    @Test
    void aBurstOfMinusOneFailsStartup() {
        assertThatFails(NegativeBurst.class, "burst is -1, but must be at least 1");
    }

    @Test
    void aNegativeBlockFactorFailsStartup() {
        assertThatFails(NegativeFactor.class, "blockFactor is -1.7, but must be from 1 to 1000");
    }

    @Test
    void aNegativeNumberOfCallsInFlightFailsStartup() {
        assertThatFails(NegativeCalls.class, "maxConcurrent is -1, but must be 0 or more");
    }

    @Test
    void valueAndNameThatDifferFailStartupWithACode() {
        application
                .withBean(BothNames.class)
                .run(context -> assertThat(remedy(context.getStartupFailure())).contains("[RL-109]"));
    }

    @Test
    void aLimitThatIsDefinedTwiceShowsWhatDiffers() {
        application.withBean(Twins.class).run(context -> {
            assertThat(context.getStartupFailure())
                    .hasMessageContaining("rate is ")
                    .hasMessageContaining("5/m")
                    .hasMessageContaining("6/m")
                    .hasMessageContaining("burst is ")
                    .hasMessageContaining("not set");
            assertThat(remedy(context.getStartupFailure())).contains("[RL-105]");
        });
    }

    /** As of a map of the application whose keys are its own. */
    @Test
    void aKeyThatLooksLikeOurPrefixAndIsNoneFailsNoStart() {
        application
                .withPropertyValues("[rate limit].limits.search.rate=1/s")
                .run(context -> assertThat(context).hasNotFailed());
    }

    @Configuration(proxyBeanMethods = false)
    @EnableConfigurationProperties(Own.class)
    static class OfApplication {}

    @ConfigurationProperties("rate-limiter.http")
    record Own(String color) {}

    private static String remedy(Throwable failure) {
        Throwable cause = failure;
        while (!(cause instanceof InvalidRateLimitException)) {
            cause = cause.getCause();
        }
        return ((InvalidRateLimitException) cause).remedy();
    }

    private void assertThatFails(Class<?> bean, String message) {
        application
                .withBean(bean)
                .run(context -> assertThat(context.getStartupFailure()).hasStackTraceContaining(message));
    }

    static class Twice {

        @RateLimited(name = "named", rate = "5/m")
        @RateLimited(rate = "50/d")
        public void call() {}
    }

    static class NegativeBurst {

        @RateLimited(rate = "5/m", burst = -1)
        public void call() {}
    }

    static class NegativeFactor {

        @RateLimited(rate = "5/m", key = "#a0", block = "1m", blockFactor = -1.7)
        public void call(String user) {}
    }

    static class NegativeCalls {

        @RateLimited(algorithm = Algorithm.CONCURRENCY, maxConcurrent = -1)
        public void call() {}
    }

    static class BothNames {

        @RateLimited(value = "a", name = "b", rate = "5/m")
        public void call() {}
    }

    static class Twins {

        @RateLimited(name = "twin", rate = "5/m")
        public void one() {}

        @RateLimited(name = "twin", rate = "6/m", burst = 7)
        public void other() {}
    }
}
