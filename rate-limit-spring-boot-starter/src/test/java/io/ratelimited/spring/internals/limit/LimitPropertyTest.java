package io.ratelimited.spring.internals.limit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Limit.Attribute;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.Contexts;
import io.ratelimited.spring.LimitChange;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.TestLimits;
import java.io.IOException;
import java.lang.reflect.Method;
import java.lang.reflect.RecordComponent;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.ZoneId;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/** The table, what can be bound, what can be annotated and what a limit has are one. */
class LimitPropertyTest {

    @Test
    void whatCanBeBoundHasARowOfItsNameAndType() throws ClassNotFoundException {
        RecordComponent[] components = Class.forName("io.ratelimited.spring.autoconfigure.LimitProperties")
                .getRecordComponents();
        assertThat(LimitProperty.values())
                .extracting(LimitProperty::label)
                .containsExactlyElementsOf(
                        Stream.of(components).map(RecordComponent::getName).toList());
        List<Class<?>> types =
                Stream.of(components).<Class<?>>map(RecordComponent::getType).toList();
        assertThat(LimitProperty.values()).extracting(LimitProperty::type).isEqualTo(types);
    }

    @Test
    void theDefaultsOfTheMetadataAreThoseInForce() throws IOException {
        Set<LimitProperty> described = EnumSet.noneOf(LimitProperty.class);
        for (JsonNode node : JsonMapper.shared()
                .readTree(Files.readString(Path.of("target/classes/META-INF/spring-configuration-metadata.json")))
                .get("properties")) {
            String name = node.get("name").asString();
            if (name.startsWith("rate-limit.defaults.") && node.has("defaultValue")) {
                LimitProperty property = LimitProperty.of(name.substring("rate-limit.defaults.".length()));
                described.add(property);
                Object value = property.read(name, node.get("defaultValue").asString());
                Object inForce = property == LimitProperty.POLICY
                        ? Algorithm.TOKEN_BUCKET.defaultPolicy()
                        : Objects.requireNonNullElseGet(property.defaultValue(), () -> ofSomeLimit(property));
                assertThat(value instanceof ZoneId zone ? zone.normalized() : value)
                        .as(name)
                        .isEqualTo(inForce);
            }
        }
        assertThat(LimitProperty.values())
                .allMatch(property -> property.defaultValue() == null || described.contains(property));
    }

    /** The value of a limit that states as little as it can, of the first algorithm that has the parameter. */
    private static Object ofSomeLimit(LimitProperty property) {
        Algorithm algorithm = Algorithm.all().stream()
                .filter(property::hasMeaningFor)
                .findFirst()
                .orElseThrow();
        Limit.Builder limit = Limit.of("any", algorithm);
        if (algorithm.uses(Attribute.RATE)) {
            limit.rate("1/s");
        }
        if (algorithm.uses(Attribute.WARMUP)) {
            limit.warmup(Duration.ofSeconds(1));
        }
        if (algorithm.uses(Attribute.BLOCK)) {
            limit.block(Duration.ofMinutes(1));
        }
        return property.of(limit.build());
    }

    @Test
    void aValueOfAnotherTypeIsExplained() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> LimitProperty.read(Map.of("rate", "5/s", "burst", "many")))
                .withMessage("burst is \"many\", but must be a whole number");
    }

    /** The texts that a limit shows are those that a change takes, whatever their types are. */
    @Test
    void textsAreReadAsTheyAreWritten() {
        Map<String, String> texts = Map.ofEntries(
                Map.entry("algorithm", "concurrency"),
                Map.entry("max-concurrent", "7"),
                Map.entry("priorities", "critical,batch"),
                Map.entry("shares", "batch=5%"),
                Map.entry("block-factor", "2.5"),
                Map.entry("block", "1500ms"),
                Map.entry("zone", "Europe/Rome"),
                Map.entry("key", "#user, #tenant"),
                Map.entry("tiers.gold.rate", "200/s"),
                Map.entry("tiers[10% off].max-concurrent", "9"));
        Map<LimitProperty, Object> values = LimitProperty.read(texts);
        assertThat(values)
                .containsEntry(LimitProperty.ALGORITHM, Algorithm.CONCURRENCY)
                .containsEntry(LimitProperty.BLOCK, Duration.ofMillis(1500))
                .containsEntry(
                        LimitProperty.TIERS,
                        Map.of(
                                "gold", Map.of(LimitProperty.RATE, "200/s"),
                                "10% off", Map.of(LimitProperty.MAX_CONCURRENT, 9)));
        assertThat(LimitProperty.texts(values)).isEqualTo(texts);
    }

    @Test
    void namesAndConstantsAreReadAsSpringBootReadsThem() {
        assertThat(LimitProperty.read(Map.of("maxWait", "2s", "policy", "WAIT", "on-failure", "deny")))
                .isEqualTo(LimitProperty.read(Map.of("max-wait", "2000ms", "policy", "wait", "onFailure", "Deny")));
    }

    @Test
    void thePropertiesOfALimitAreMadeOnceForEachStateOfIt() {
        Contexts.runner(new ManualTicker())
                .withPropertyValues("rate-limit.limits.a.rate=100/s", "rate-limit.limits.a.tiers.gold.rate=200/s")
                .run(context -> {
                    TestLimits limits = TestLimits.of(context);
                    Map<String, String> before = limits.limit("a").properties();
                    assertThat(limits.limit("a").properties()).isSameAs(before);
                    assertThat(before).containsEntry("tiers.gold.rate", "200/s");

                    limits.change("a", LimitChange.rate("70/s"));
                    assertThat(limits.limit("a").properties())
                            .containsEntry("rate", "70/s")
                            .containsEntry("tiers.gold.rate", "200/s");
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
                    limits.change("a", LimitChange.of("algorithm", "gcra"));
                    assertThat(limits.limit("a").limit())
                            .isEqualTo(Limit.of("a", Algorithm.GCRA)
                                    .rate("60/m")
                                    .burst(200)
                                    .build());
                });
    }
}
