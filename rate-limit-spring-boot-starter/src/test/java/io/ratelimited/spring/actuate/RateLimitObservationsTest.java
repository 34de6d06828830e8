package io.ratelimited.spring.actuate;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.micrometer.common.KeyValue;
import io.micrometer.common.KeyValues;
import io.micrometer.observation.Observation;
import io.micrometer.observation.ObservationRegistry;
import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.Contexts;
import io.ratelimited.spring.RateLimitDecision;
import io.ratelimited.spring.RateLimitObservationConvention;
import io.ratelimited.spring.RateLimits;
import org.junit.jupiter.api.Test;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;

/** What traces show of a call that a limit refused, delayed or only counted. */
class RateLimitObservationsTest {

    private final ObservationRegistry registry = ObservationRegistry.create();
    private final ApplicationContextRunner runner = Contexts.runner(new ManualTicker().autoAdvance())
            .withConfiguration(AutoConfigurations.of(RateLimitObservationAutoConfiguration.class))
            .withBean(ObservationRegistry.class, () -> registry)
            .withPropertyValues("rate-limit.limits.search.rate=1/s");

    RateLimitObservationsTest() {
        registry.observationConfig().observationHandler(context -> true);
    }

    private KeyValues observed(RateLimits limits, int calls) {
        Observation observation = Observation.start("request", registry);
        try {
            observation.scoped(() -> {
                for (int i = 0; i < calls; i++) {
                    limits.execute("search", null, () -> "answer");
                }
            });
        } catch (RateLimitExceededException refused) {
            assertThat(refused.decision().limit()).isEqualTo("search");
        } finally {
            observation.stop();
        }
        return observation.getContext().getHighCardinalityKeyValues();
    }

    @Test
    void aRefusedCallIsSeenInTheObservationOfItsRequest() {
        runner.run(context -> assertThat(observed(context.getBean(RateLimits.class), 2))
                .containsExactly(
                        KeyValue.of("rate.limit.name", "search"),
                        KeyValue.of("rate.limit.outcome", "rejected"),
                        KeyValue.of("rate.limit.wait", "0ms")));
    }

    @Test
    void aDelayedCallIsSeenWithItsWait() {
        runner.withPropertyValues("rate-limit.limits.search.policy=wait", "rate-limit.limits.search.max-wait=5s")
                .run(context -> assertThat(observed(context.getBean(RateLimits.class), 2))
                        .contains(
                                KeyValue.of("rate.limit.outcome", "delayed"),
                                KeyValue.of("rate.limit.wait", "1000ms")));
    }

    @Test
    void anAdmittedCallAddsNothing() {
        runner.run(context ->
                assertThat(observed(context.getBean(RateLimits.class), 1)).isEmpty());
    }

    @Test
    void withoutAnObservationNothingHappens() {
        runner.run(context -> {
            RateLimits limits = context.getBean(RateLimits.class);
            limits.execute("search", null, () -> "answer");
            assertThatExceptionOfType(RateLimitExceededException.class)
                    .isThrownBy(() -> limits.execute("search", null, () -> "answer"));
        });
    }

    @Test
    void aConventionOfTheApplicationReplacesTheDefault() {
        runner.withBean(RateLimitObservationConvention.class, () -> new RateLimitObservationConvention() {
                    @Override
                    public KeyValues keyValues(RateLimitDecision decision) {
                        return KeyValues.of("throttled", decision.limit().name());
                    }
                })
                .run(context -> assertThat(observed(context.getBean(RateLimits.class), 2))
                        .containsExactly(KeyValue.of("throttled", "search")));
    }
}
