package io.ratelimited.spring.internals.limit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatNoException;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Decision;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.CapturedLog;
import io.ratelimited.spring.ContextRunner;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.RateLimits;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Tiers and classes that an expression names otherwise than the properties: as Spring Boot binds names. */
@ExtendWith(CapturedLog.Capture.class)
final class RelaxedTiersTest {

    enum Plan {
        GOLD_PLUS {
            @Override
            public String toString() {
                return "Gold, and more";
            }
        },
        FREE
    }

    static class Calls {

        @RateLimited(name = "planned", rate = "1/s", tier = "#plan")
        public void planned(Object plan) {}

        @RateLimited(name = "keyed", rate = "1/s", key = "#caller", tier = "#plan")
        public void keyed(String caller, Object plan) {}

        @RateLimited(
                name = "classed",
                algorithm = Algorithm.CONCURRENCY,
                maxConcurrent = 9,
                priority = "#important ? 'VERY_URGENT' : 'Batch'")
        public void classed(boolean important) {}

        @RateLimited(name = "byEnum", algorithm = Algorithm.CONCURRENCY, maxConcurrent = 9, priority = "#plan")
        public void byEnum(Object plan) {}
    }

    private void run(CapturedLog output, java.util.function.BiConsumer<Calls, RateLimits> test) {
        ContextRunner.limited(new ManualTicker())
                .withBean(Calls.class)
                .withPropertyValues(
                        "rate-limit.limits.planned.tiers.gold-plus.rate=3/s",
                        "rate-limit.limits.keyed.tiers.gold-plus.rate=3/s",
                        "rate-limit.limits.classed.priorities=very-urgent,batch",
                        "rate-limit.limits.byEnum.priorities=gold-plus,free")
                .run(context -> {
                    assertThat(context).hasNotFailed();
                    test.accept(context.getBean(Calls.class), context.getBean(RateLimits.class));
                    assertThat(output).doesNotContain("[RL-208]", "[RL-218]");
                });
    }

    @Test
    void anEnumConstantNamesATier(CapturedLog output) {
        run(output, (calls, limits) -> {
            for (int i = 0; i < 3; i++) {
                assertThatNoException().isThrownBy(() -> calls.planned(Plan.GOLD_PLUS));
            }
        });
    }

    @ParameterizedTest
    @ValueSource(strings = {"gold-plus", "GOLD_PLUS", "goldPlus", "Gold-Plus"})
    void aTextNamesATier(String tier, CapturedLog output) {
        run(output, (calls, limits) -> {
            for (int i = 0; i < 3; i++) {
                assertThatNoException().isThrownBy(() -> calls.planned(tier));
            }
        });
    }

    @ParameterizedTest
    @ValueSource(strings = {"gold-plus", "GOLD_PLUS", "goldPlus", "Gold-Plus"})
    void theRemainingPermitsAreThoseOfTheTierOfTheCalls(String tier, CapturedLog output) {
        run(output, (calls, limits) -> {
            calls.keyed("ann", tier);
            assertThat(limits.remaining("ann", tier))
                    .extracting(Decision::remaining)
                    .containsExactly(2L);
        });
    }

    @Test
    void priorityNamesMatchRelaxed(CapturedLog output) {
        run(output, (calls, limits) -> {
            calls.classed(true);
            calls.classed(false);
            calls.byEnum(Plan.GOLD_PLUS);
            calls.byEnum(Plan.FREE);
        });
    }
}
