package io.ratelimited.spring.guide;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.spring.Contexts;
import io.ratelimited.spring.TestLimits;
import io.ratelimited.spring.internals.limit.LimitProperty;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Locale;
import java.util.Map;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The page on overload: its snippets in an application that runs, and its table beside the limit's own defaults. */
class OverloadPageTest {

    private static final Pattern ROW = Pattern.compile("(?m)^\\| `([a-z-]+)`(?:, `([a-z-]+)`)? \\|.*\\| (.*) \\|$");

    @Test
    void itsMethodIsLimitedAsItSays(@TempDir Path directory) throws Exception {
        DocPage page = DocPage.section("overload.md", "Shed low-priority calls first");
        Class<?> exports = page.classes(directory).get("Exports");
        Contexts.with(Contexts.runner(), exports)
                .withClassLoader(exports.getClassLoader())
                .withPropertyValues(page.properties())
                .run(context -> {
                    assertThat(context).hasNotFailed();
                    Limit limit = TestLimits.of(context).limit("exports").limit();
                    assertThat(limit.algorithm()).isEqualTo(Algorithm.ADAPTIVE);
                    assertThat(limit.lateAfter()).isEqualTo(Duration.ofSeconds(2));
                    assertThat(limit.priorities()).containsExactly("critical", "normal", "batch");
                    assertThat(limit.shares()).isEqualTo(Map.of("batch", 0.05));
                    Object bean = context.getBean(exports);
                    var method = exports.getDeclaredMethod("monthly", String.class, boolean.class);
                    method.setAccessible(true);
                    assertThat(method.invoke(bean, "ann", true)).isEqualTo("export of ann");
                });
    }

    @Test
    void itNamesPropertiesThatExistAndTheirDefaults() throws Exception {
        var rows = ROW.matcher(Files.readString(Path.of("../docs/overload.md")));
        Limit limit = Limit.of("reports", Algorithm.ADAPTIVE).build();
        int properties = 0;
        while (rows.find()) {
            for (int i = 1; i <= 2 && rows.group(i) != null; i++) {
                LimitProperty property = LimitProperty.valueOf(
                        rows.group(i).toUpperCase(Locale.ROOT).replace('-', '_'));
                String stated = rows.group(3).contains(",") ? rows.group(3).split(", ", -1)[i - 1] : rows.group(3);
                Object value = property.of(limit);
                assertThat(stated).as(rows.group(i)).isEqualTo(value == null ? stated : value.toString());
                assertThat(value == null).as(rows.group(i)).isEqualTo(!stated.matches("\\d+"));
                properties++;
            }
        }
        assertThat(properties).isEqualTo(5);
    }
}
