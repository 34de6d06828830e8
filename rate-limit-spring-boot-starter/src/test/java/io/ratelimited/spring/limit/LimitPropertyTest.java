package io.ratelimited.spring.limit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Limit.Attribute;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.Contexts;
import io.ratelimited.spring.LimitChange;
import io.ratelimited.spring.LimitProperties;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.TestLimits;
import java.lang.reflect.Method;
import java.lang.reflect.RecordComponent;
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
                    TestLimits limits = TestLimits.of(context);
                    LimitProperties before = limits.limit("a").properties();
                    assertThat(limits.limit("a").properties()).isSameAs(before);
                    assertThat(before.tiers()).isEqualTo(Map.of("gold", LimitProperties.of(Map.of("rate", "200/s"))));

                    limits.change("a", LimitProperties.of(Map.of("rate", "70/s")));
                    assertThat(limits.limit("a").properties().rate()).isEqualTo("70/s");
                    assertThat(limits.limit("a").properties().tiers()).isEqualTo(before.tiers());
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
    }

    @Test
    void aChangeKeepsWhatItDoesNotSet() {
        Contexts.runner(new ManualTicker())
                .withPropertyValues("rate-limit.limits.a.rate=100/s", "rate-limit.limits.a.burst=200")
                .run(context -> {
                    TestLimits limits = TestLimits.of(context);
                    limits.change("a", LimitChange.rate("70/s"));
                    assertThat(limits.limit("a").limit().burst()).isEqualTo(200);

                    limits.change(
                            "a", LimitChange.of("algorithm", "fixed-window").with("rate", "60/m"));
                    assertThat(limits.limit("a").limit())
                            .isEqualTo(Limit.of("a", Algorithm.FIXED_WINDOW)
                                    .rate("60/m")
                                    .build());
                    limits.change("a", LimitProperties.of(Map.of("algorithm", Algorithm.GCRA)));
                    assertThat(limits.limit("a").limit())
                            .isEqualTo(Limit.of("a", Algorithm.GCRA)
                                    .rate("60/m")
                                    .burst(200)
                                    .build());
                });
    }
}
