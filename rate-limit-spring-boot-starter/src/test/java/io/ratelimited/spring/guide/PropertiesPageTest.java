package io.ratelimited.spring.guide;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Policy;
import io.ratelimited.spring.internals.text.PropertyText;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.springframework.util.ClassUtils;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/** The page of properties is held equal to what the configuration processor has generated. */
class PropertiesPageTest {

    private static final Path METADATA = Path.of("target", "classes", "META-INF", "spring-configuration-metadata.json");

    @Test
    void thePageListsEveryPropertyOnceWithItsDefaultAndItsMeaning() throws IOException {
        List<String> rows = new ArrayList<>();
        for (JsonNode property : metadata().get("properties")) {
            String name = property.get("name").asString();
            if (name.startsWith("rate-limit.") && !name.equals("rate-limit.limits")) {
                rows.add("| `%s` | %s | %s | %s |"
                        .formatted(
                                name.replace("rate-limit.defaults.", "rate-limit.limits.<name>."),
                                type(property.get("type").asString()),
                                property.has("defaultValue")
                                        ? "`" + property.get("defaultValue").asString() + "`"
                                        : "",
                                property.get("description").asString()));
            }
        }

        List<String> page = Files.readAllLines(Path.of("..", "docs", "properties.md"));
        assertThat(page.stream().filter(line -> line.startsWith("| `"))).containsExactlyInAnyOrderElementsOf(rows);
    }

    /** A type as the page names it; of an enum its values. */
    private static String type(String name) {
        return switch (name.replaceAll("<.*", "")) {
            case "java.lang.Boolean" -> "boolean";
            case "java.lang.Integer", "java.lang.Long" -> "whole number";
            case "java.lang.Double" -> "number";
            case "java.lang.String" -> "text";
            case "java.time.Duration" -> "duration";
            case "java.time.ZoneId" -> "time zone";
            case "java.util.List" -> "list";
            case "java.util.Map" -> "map";
            default ->
                PropertyText.values(ClassUtils.resolveClassName(name, null)).stream()
                        .map(value -> '`' + value + '`')
                        .collect(Collectors.joining(", "));
        };
    }

    @Test
    void everyPropertyHasADescriptionAndAType() throws IOException {
        for (JsonNode property : metadata().get("properties")) {
            assertThat(property.path("description").asString(""))
                    .as(property.toString())
                    .endsWith(".");
            assertThat(property.path("type").asString(""))
                    .as(property.toString())
                    .isNotEmpty();
        }
    }

    @Test
    void theSwitchOfTheHealthContributorIsOffered() throws IOException {
        assertThat(metadata().get("properties"))
                .anySatisfy(property ->
                        assertThat(property.get("name").asString()).isEqualTo("management.health.ratelimit.enabled"));
    }

    @Test
    void everyHintIsForAPropertyThatExists() throws IOException {
        List<String> names = new ArrayList<>();
        metadata()
                .get("properties")
                .forEach(property -> names.add(property.get("name").asString()));
        assertThat(metadata().get("hints")).isNotEmpty();
        for (JsonNode hint : metadata().get("hints")) {
            assertThat(names).contains(hint.get("name").asString());
        }
    }

    @Test
    void whatOnlyTheAnnotationHasIsNotOffered() throws IOException {
        Map<String, List<String>> offered = new HashMap<>();
        for (JsonNode hint : metadata().get("hints")) {
            List<String> values = new ArrayList<>();
            hint.get("values").forEach(value -> values.add(value.get("value").asString()));
            offered.put(hint.get("name").asString(), values);
        }
        assertThat(offered.get("rate-limit.defaults.algorithm"))
                .containsExactlyElementsOf(PropertyText.values(Algorithm.class))
                .doesNotContain("default");
        assertThat(offered.get("rate-limit.defaults.policy"))
                .containsExactlyElementsOf(PropertyText.values(Policy.class))
                .doesNotContain("default");
    }

    private static JsonNode metadata() throws IOException {
        return JsonMapper.shared().readTree(Files.readString(METADATA));
    }
}
