package io.ratelimited.spring.internals.call;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.Ticker;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.Contexts;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.autoconfigure.RateLimitAutoConfiguration;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.logging.LogLevel;
import org.springframework.boot.logging.LoggingSystem;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;

/** One line per decision, for whoever sets {@code logging.level.io.ratelimited=debug}. */
@ExtendWith(OutputCaptureExtension.class)
class DecisionLogTest {

    private static final String LOGGER = "io.ratelimited";

    private final LoggingSystem logging = LoggingSystem.get(getClass().getClassLoader());
    private final ApplicationContextRunner application = new ApplicationContextRunner()
            .withConfiguration(AutoConfigurations.of(RateLimitAutoConfiguration.class))
            .withBean(Ticker.class, ManualTicker::new)
            .withPropertyValues("rate-limit.limits.search.rate=1/m", "rate-limit.limits.all.rate=1/m");

    @Test
    void aDecisionIsOneLineWithTheMaskedKeyAndWhatIsLeft(CapturedOutput output) {
        logging.setLogLevel(LOGGER, LogLevel.DEBUG);
        try {
            application.run(context -> {
                RateLimits limits = context.getBean(RateLimits.class);
                limits.tryAcquire("search", "jane@example.org");
                limits.tryAcquire("search", "jane@example.org");
                limits.tryAcquire("all", null);
            });
        } finally {
            logging.setLogLevel(LOGGER, null);
        }

        assertThat(output.getOut().lines().filter(line -> line.contains("io.ratelimited.decisions")))
                .hasSize(3)
                .satisfiesExactly(
                        line -> assertThat(line)
                                .containsPattern("Rate limit 'search': admitted, key masked:[0-9a-f]+, remaining 0,"
                                        + " source memory$"),
                        line -> assertThat(line)
                                .containsPattern(
                                        "Rate limit 'search': rejected, key masked:[0-9a-f]+, remaining 0, retry"
                                                + " after 60s, source memory$"),
                        line -> assertThat(line).endsWith("Rate limit 'all': admitted, remaining 0, source memory"));
        assertThat(output).doesNotContain("jane@example.org");
    }

    /** The limit is exceeded by no one. */
    @Test
    void aRejectionForWantOfAKeySaysSoWhetherItIsEnforcedOrNot(CapturedOutput output) {
        logging.setLogLevel(LOGGER, LogLevel.DEBUG);
        try {
            Contexts.runner(new ManualTicker())
                    .withBean(Keyed.class)
                    .withPropertyValues(
                            "rate-limit.limits.enforced.missing-key=deny",
                            "rate-limit.limits.enforced.rate=5/m",
                            "rate-limit.limits.enforced.key=#name",
                            "rate-limit.limits.shadowed.missing-key=deny",
                            "rate-limit.limits.shadowed.policy=shadow",
                            "rate-limit.limits.shadowed.rate=5/m",
                            "rate-limit.limits.shadowed.key=#name")
                    .run(context -> {
                        Keyed keyed = context.getBean(Keyed.class);
                        keyed.shadowed(null);
                        assertThatThrownBy(() -> keyed.enforced(null)).isInstanceOf(RateLimitExceededException.class);
                    });
        } finally {
            logging.setLogLevel(LOGGER, null);
        }

        assertThat(output.getOut().lines().filter(line -> line.contains("io.ratelimited.decisions")))
                .satisfiesExactly(
                        line -> assertThat(line)
                                .endsWith("Rate limit 'shadowed': shadowed, remaining 0, no key (missing-key: deny),"
                                        + " source memory"),
                        line -> assertThat(line)
                                .endsWith("Rate limit 'enforced': rejected, remaining 0, no key (missing-key: deny),"
                                        + " source memory"));
    }

    static class Keyed {

        @RateLimited("enforced")
        public void enforced(@Nullable String name) {}

        @RateLimited("shadowed")
        public void shadowed(@Nullable String name) {}
    }

    @Test
    void withoutThatLevelNothingIsLogged(CapturedOutput output) {
        application.run(context -> context.getBean(RateLimits.class).tryAcquire("search", "jane"));

        assertThat(output).doesNotContain("io.ratelimited.decisions");
    }
}
