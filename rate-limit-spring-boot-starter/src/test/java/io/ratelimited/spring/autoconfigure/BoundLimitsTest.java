package io.ratelimited.spring.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Policy;
import io.ratelimited.spring.internals.limit.LimitProperty;
import io.ratelimited.spring.internals.limit.LimitSettings;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.core.env.MapPropertySource;
import org.springframework.core.env.StandardEnvironment;
import org.springframework.core.env.SystemEnvironmentPropertySource;

/** The properties of a limit are bound as all of Spring Boot's: in any form of their names, with placeholders, from variables. */
class BoundLimitsTest {

    @Test
    void namesOfEveryFormVariablesPlaceholdersListsAndMapsAreRead() {
        StandardEnvironment environment = new StandardEnvironment();
        environment
                .getPropertySources()
                .addFirst(new MapPropertySource(
                        "file",
                        Map.ofEntries(
                                Map.entry("usual", "250ms"),
                                Map.entry("rate-limit.limits.search.maxWait", "${usual}"),
                                Map.entry("rate-limit.limits.search.max_concurrent", "7"),
                                Map.entry("rate-limit.limits.search.POLICY", "Wait"),
                                Map.entry("rate-limit.limits.search.priorities[0]", "critical"),
                                Map.entry("rate-limit.limits.search.priorities[1]", "batch"),
                                Map.entry("rate-limit.limits.search.shares.batch", "5%"),
                                Map.entry("rate-limit.limits.search.tiers.gold.rate", "1/s"),
                                Map.entry("rate-limit.limits[Orders.place].rate", "${absent:9/s}"))));
        environment
                .getPropertySources()
                .addFirst(new SystemEnvironmentPropertySource(
                        "test-systemEnvironment",
                        Map.of(
                                "RATELIMIT_LIMITS_SEARCH_RATE", "3/s",
                                "RATELIMIT_LIMITS_SEARCH_BLOCKMAX", "1h",
                                "RATE_LIMIT_DEFAULTS_MISSING_KEY", "deny")));

        LimitSettings bound = Binder.get(environment)
                .bind("rate-limit", RateLimitProperties.class)
                .get()
                .limitSettings();

        assertThat(bound.defaults()).containsOnlyKeys(LimitProperty.MISSING_KEY);
        assertThat(bound.limits().get("Orders.place")).isEqualTo(Map.of(LimitProperty.RATE, "9/s"));
        assertThat(bound.limits().get("search"))
                .isEqualTo(Map.of(
                        LimitProperty.RATE, "3/s",
                        LimitProperty.BLOCK_MAX, Duration.ofHours(1),
                        LimitProperty.MAX_WAIT, Duration.ofMillis(250),
                        LimitProperty.MAX_CONCURRENT, 7,
                        LimitProperty.POLICY, Policy.WAIT,
                        LimitProperty.PRIORITIES, List.of("critical", "batch"),
                        LimitProperty.SHARES, Map.of("batch", "5%"),
                        LimitProperty.TIERS, Map.of("gold", Map.of(LimitProperty.RATE, "1/s"))));
    }

    /** As the page on properties recommends: a variable does not show where its name has dashes. */
    @Test
    void aVariableWithUnderscoresForDashesChangesALimitWhoseNameHasSome() {
        assertThat(limitsWith("RATE_LIMIT_LIMITS_PER_USER_RATE", "rate-limit.limits.per-user.burst"))
                .containsOnlyKeys("per-user")
                .allSatisfy((name, values) -> assertThat(values).containsEntry(LimitProperty.RATE, "1/s"));
        assertThat(limitsWith("RATELIMIT_LIMITS_PERUSER_RATE", "rate-limit.limits.per-user.burst"))
                .containsOnlyKeys("per-user", "peruser")
                .allSatisfy((name, values) -> assertThat(values).containsEntry(LimitProperty.RATE, "1/s"));
        assertThat(limitsWith("RATE_LIMIT_LIMITS_PER_USER_RATE", "rate-limit.limits.other.burst"))
                .as("a name that is in no file")
                .containsOnlyKeys("other");
    }

    private static Map<String, Map<LimitProperty, Object>> limitsWith(String variable, String property) {
        StandardEnvironment environment = new StandardEnvironment();
        environment.getPropertySources().addFirst(new MapPropertySource("file", Map.of(property, "5")));
        environment
                .getPropertySources()
                .addFirst(new SystemEnvironmentPropertySource("test-systemEnvironment", Map.of(variable, "1/s")));
        return Binder.get(environment)
                .bind("rate-limit", RateLimitProperties.class)
                .get()
                .limitSettings()
                .limits();
    }
}
