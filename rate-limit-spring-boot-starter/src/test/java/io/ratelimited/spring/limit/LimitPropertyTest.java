package io.ratelimited.spring.limit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Limit.Attribute;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.Contexts;
import io.ratelimited.spring.LimitProperties;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.RateLimits;
import java.lang.reflect.Method;
import java.lang.reflect.RecordComponent;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** The table, what can be bound, what can be annotated and what a limit has are one. */
class LimitPropertyTest {

    @Test
    void eachComponentOfThePropertiesHasARowOfItsNameAndType() {
        RecordComponent[] components = LimitProperties.class.getRecordComponents();
        assertThat(LimitProperty.values())
                .extracting(LimitProperty::label)
                .containsExactlyElementsOf(
                        Stream.of(components).map(RecordComponent::getName).toList());
        List<Class<?>> types =
                Stream.of(components).<Class<?>>map(RecordComponent::getType).toList();
        assertThat(LimitProperty.values()).extracting(LimitProperty::type).isEqualTo(types);
    }

    @Test
    void aValueOfAnotherTypeIsExplained() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> LimitProperties.of(Map.of("rate", "5/s", "burst", 10)))
                .withMessage("burst must be of the type Long, not Integer");
    }

    @Test
    void thePropertiesOfALimitAreMadeOnceForEachStateOfIt() {
        Contexts.runner(new ManualTicker())
                .withPropertyValues("rate-limit.limits.a.rate=100/s", "rate-limit.limits.a.tiers.gold.rate=200/s")
                .run(context -> {
                    RateLimits limits = context.getBean(RateLimits.class);
                    LimitProperties before = limits.get("a").properties();
                    assertThat(limits.get("a").properties()).isSameAs(before);
                    assertThat(before.tiers()).isEqualTo(Map.of("gold", LimitProperties.of(Map.of("rate", "200/s"))));

                    limits.update("a", LimitProperties.of(Map.of("rate", "70/s")));
                    assertThat(limits.get("a").properties().rate()).isEqualTo("70/s");
                    assertThat(limits.get("a").properties().tiers()).isEqualTo(before.tiers());
                });
    }

    @Test
    void eachAttributeOfTheAnnotationButItsNameHasARow() {
        assertThat(RateLimited.class.getDeclaredMethods())
                .extracting(Method::getName)
                .filteredOn(attribute -> !List.of("name", "value").contains(attribute))
                .hasSizeGreaterThan(10)
                .allSatisfy(attribute ->
                        assertThat(LimitProperty.of(attribute)).as(attribute).isNotNull());
    }

    @Test
    void eachAttributeOfALimitHasARowWithAMeaningForTheSameAlgorithms() {
        for (Attribute attribute : Attribute.values()) {
            LimitProperty property = LimitProperty.of(attribute.label());
            assertThat(property).as(attribute.label()).isNotNull();
            for (Algorithm algorithm : Algorithm.all()) {
                assertThat(property.hasMeaningFor(algorithm)).isEqualTo(algorithm.uses(attribute));
            }
        }
        assertThat(Arrays.stream(LimitProperty.values()).filter(LimitProperty::isParameter))
                .hasSize(Attribute.values().length + 1) // and maxWaiting, which every algorithm has
                .contains(LimitProperty.MAX_WAITING);
    }

    @Test
    void aChangeByCodeIsAChangeOfPropertiesThatLaterChangesKeep() {
        Contexts.runner(new ManualTicker())
                .withPropertyValues("rate-limit.limits.a.rate=100/s", "rate-limit.limits.a.burst=200")
                .run(context -> {
                    RateLimits limits = context.getBean(RateLimits.class);
                    limits.get("a");

                    limits.update(
                            "a", limit -> Limit.of("a", Algorithm.TOKEN_BUCKET).rate("50/s"));
                    assertThat(limits.get("a").limit())
                            .isEqualTo(Limit.of("a", Algorithm.TOKEN_BUCKET)
                                    .rate("50/s")
                                    .build());
                    assertThat(limits.get("a").properties().burst()).isNull();

                    limits.update("a", LimitProperties.of(Map.of("rate", "70/s")));
                    assertThat(limits.get("a").limit().burst())
                            .as("still the default")
                            .isEqualTo(70);

                    limits.update(
                            "a", limit -> Limit.of("a", Algorithm.FIXED_WINDOW).rate("60/m"));
                    assertThat(limits.get("a").limit())
                            .isEqualTo(Limit.of("a", Algorithm.FIXED_WINDOW)
                                    .rate("60/m")
                                    .build());
                    limits.update("a", LimitProperties.of(Map.of("algorithm", Algorithm.GCRA)));
                    assertThat(limits.get("a").limit())
                            .isEqualTo(Limit.of("a", Algorithm.GCRA)
                                    .rate("60/m")
                                    .burst(200)
                                    .build());
                });
    }
}
