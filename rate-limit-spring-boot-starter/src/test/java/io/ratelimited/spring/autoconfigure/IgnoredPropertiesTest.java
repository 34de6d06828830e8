package io.ratelimited.spring.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.boot.context.properties.source.ConfigurationPropertySources;
import org.springframework.boot.env.YamlPropertySourceLoader;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.core.env.MapPropertySource;
import org.springframework.core.env.PropertySource;
import org.springframework.core.env.StandardEnvironment;
import org.springframework.core.env.SystemEnvironmentPropertySource;
import org.springframework.core.io.ByteArrayResource;

/** Properties that this version does not have are warned of, with the nearest name; only those of a limit fail startup. */
@ExtendWith(OutputCaptureExtension.class)
class IgnoredPropertiesTest {

    /** Spring Boot's own name: it fails for unknown properties of other sources only. */
    private static final String VARIABLES = StandardEnvironment.SYSTEM_ENVIRONMENT_PROPERTY_SOURCE_NAME;

    private final ApplicationContextRunner application =
            new ApplicationContextRunner().withConfiguration(AutoConfigurations.of(RateLimitAutoConfiguration.class));

    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
            rate-limit.http.header           | rate-limit.http.headers
            rate-limit.http.trustedProxy     | rate-limit.http.trusted-proxies
            rate-limit.headers               | rate-limit.http.headers
            rate-limit.redis.open-api        | rate-limit.http.open-api
            rate-limit.search.rate           | rate-limit.limits.search.rate
            rate-limit.orders.tiers.gold.key | rate-limit.limits.orders.tiers.gold.key
            """)
    void areWarnedOfWithTheNearestName(String name, String near, CapturedOutput output) {
        for (boolean enabled : List.of(true, false)) {
            int before = output.length();
            application
                    .withPropertyValues(name + "=legacy", "rate-limit.enabled=" + enabled)
                    .run(context -> {
                        assertThat(context).hasNotFailed();
                        assertThat(warnings(output.toString().substring(before)))
                                .singleElement()
                                .asString()
                                .contains("has no effect, because this version has no such property (did you mean "
                                        + near + "?). Origin: ")
                                .doesNotContain("legacy");
                    });
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"limit.search.rate", "rutes[0].path", "client.partner.hosts", "default.rate"})
    void failStartupWhereTheyAreMeantForALimit(String name) {
        application
                .withPropertyValues("rate-limit." + name + "=5/m")
                .run(context ->
                        assertThat(context).getFailure().rootCause().hasMessageContaining("rate-limit." + name));
    }

    @Test
    void areWarnedOfWithTheirLine(CapturedOutput output) throws IOException {
        PropertySource<?> yaml = new YamlPropertySourceLoader()
                .load("test", new ByteArrayResource("""
                        rate-limit:
                          redis: { timeout: 20ms, pasword: s3cret }
                          somewhere: { else: 1 }
                        """.getBytes(StandardCharsets.UTF_8), "application.yml"))
                .get(0);
        application
                .withInitializer(
                        context -> context.getEnvironment().getPropertySources().addLast(yaml))
                .run(context -> assertThat(warnings(output.toString()))
                        .satisfiesExactly(
                                redis -> assertThat(redis)
                                        .contains("Property rate-limit.redis.pasword has no effect")
                                        .contains("[application.yml]")
                                        .contains("2:36.")
                                        .doesNotContain("s3cret"),
                                other -> assertThat(other)
                                        .contains("Property rate-limit.somewhere.else has no effect")
                                        .doesNotContain("did you mean")
                                        .contains("logging.level.io.ratelimited.spring.autoconfigure."
                                                + "IgnoredProperties to error. [RL-340]")));
    }

    @Test
    void areNotWarnedOfIfTheApplicationBindsThem(CapturedOutput output) {
        application
                .withUserConfiguration(OfApplication.class)
                .withPropertyValues("rate-limit.own.color=red", "rate-limit.own.sise=1")
                .run(context -> {
                    assertThat(context.getBean(Own.class).color()).isEqualTo("red");
                    assertThat(warnings(output.toString()))
                            .singleElement()
                            .asString()
                            .contains("rate-limit.own.sise");
                });
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
            RATELIMIT_HTTP_HEADER              | (did you mean RATELIMIT_HTTP_HEADERS?)
            RATE_LIMIT_HTTP_HEADER             | (did you mean RATELIMIT_HTTP_HEADERS?)
            RATELIMIT_HTTP_TRUSTED_PROXIES     | (did you mean RATELIMIT_HTTP_TRUSTEDPROXIES?)
            RATELIMIT_BACKND                   | (did you mean RATELIMIT_BACKEND?)
            RATELIMIT_LIMITS_KNOWN_MAX_WAIT    | (did you mean RATELIMIT_LIMITS_KNOWN_MAXWAIT?)
            RATELIMIT_LIMITS_KNOWN_RTAE        | (did you mean RATELIMIT_LIMITS_KNOWN_RATE?)
            RATE_LIMIT_LIMITS_SEARCH_RATE      | Write RATELIMIT_LIMITS_SEARCH_RATE.
            rate_limit_limits_search_rate      | Write RATELIMIT_LIMITS_SEARCH_RATE.
            RATE_LIMIT_HTTP_TRUSTED_PROXIES_1  | because this version has no such property. Correct
            RATE_LIMIT_LIMITS_KNOWN_BURST_0    | because this version has no such property
            """)
    void ofTheEnvironmentAreWarnedOf(String variable, String remedy, CapturedOutput output) {
        withVariable(variable, "1")
                .withPropertyValues("rate-limit.limits.known.burst=5")
                .run(context -> assertThat(warnings(output.toString()))
                        .singleElement()
                        .asString()
                        .contains("Environment variable " + variable + " has no effect", remedy, "[RL-340]")
                        .satisfies(warning ->
                                assertThat(warning.split(variable + "\\b", -1)).hasSize(2)));
    }

    /** Spring Boot reads a variable with an underscore for a dash only if a file has the name. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "RATE_LIMIT_LIMITS_PER_USER_RATE",
                "RATELIMIT_LIMITS_PER_USER_RATE",
                "RATE_LIMIT_LIMITS_PER_USER_MAX_WAIT",
                "RATELIMIT_CLIENTS_MY_PARTNER_MAXWAIT",
                "RATE_LIMIT_DEFAULTS_TIERS_VERY_GOLD_RATE",
                "RATELIMIT_LIMITS_KNOWN_TIERS_A_B_STATUS"
            })
    void ofTheEnvironmentWithANameThatMayHaveDashesNeedTheNameInAFile(String variable, CapturedOutput output) {
        withVariable(variable, "1")
                .withPropertyValues("rate-limit.limits.known.burst=5")
                .run(context -> assertThat(warnings(output.toString()))
                        .singleElement()
                        .asString()
                        .contains(
                                "Environment variable " + variable + " has no effect",
                                "If it has a name with dashes, start it with RATE_LIMIT_, write each dash as _, and set"
                                        + " another property of that name in a file. Otherwise, correct or remove it.")
                        .doesNotContain("did you mean"));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "RATELIMIT_HTTP_TRUSTEDPROXIES_0",
                "RATE_LIMIT_HTTP_TRUSTED_PROXIES_0",
                "RATELIMIT_CLIENTS_PARTNER_LIMITS_0",
                "RATE_LIMIT_CLIENTS_PARTNER_LIMITS_0",
                "RATELIMIT_ROUTES_0_METHODS_0"
            })
    void ofTheEnvironmentWhoseListAHigherSourceReplacesAreNot(String variable, CapturedOutput output) {
        withVariable(variable, "1")
                .withPropertyValues(
                        "rate-limit.http.trusted-proxies=10.0.0.0/8",
                        "rate-limit.clients.partner.hosts=partner.example",
                        "rate-limit.clients.partner.limits=known",
                        "rate-limit.routes[0].path=/search",
                        "rate-limit.routes[0].limits=known",
                        "rate-limit.limits.known.rate=5/s")
                .run(context -> {
                    assertThat(context).hasNotFailed();
                    assertThat(output).doesNotContain("RL-340");
                });
    }

    @ParameterizedTest
    @CsvSource({
        "RATELIMIT_HTTP_STATUS, 503",
        "RATE_LIMIT_HTTP_STATUS, 503",
        "RATELIMIT_HTTP_TRUSTEDPROXIES_0, 10.0.0.0/8",
        "RATE_LIMIT_HTTP_TRUSTED_PROXIES, 1",
        "RATELIMIT_LIMITS_SEARCH_RATE, 1/s",
        "RATELIMIT_LIMITS_PER-USER_RATE, 1/s",
        "RATE_LIMIT_LIMITS_KNOWN_RATE, 1/s",
        "RATELIMIT_PORT, tcp://10.0.0.1:80",
        "RATE_LIMIT_PORT_80_TCP_ADDR, 10.0.0.1",
        "RATELIMIT_REDIS_SERVICE_HOST, 10.0.0.1",
        "RATELIMIT_REDIS_PORT, tcp://10.0.0.1:6379",
        "RATE_LIMIT_PER_MINUTE, 5",
        "RATELIMITER_BACKEND, other",
    })
    void ofTheEnvironmentThatAreReadOrBelongToOthersAreNot(String variable, String value, CapturedOutput output) {
        withVariable(variable, value)
                .withPropertyValues("rate-limit.limits.known.burst=5")
                .run(context -> {
                    assertThat(context).hasNotFailed();
                    assertThat(output).doesNotContain("RL-340");
                });
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "RATELIMIT_LIMITS_SEARCH_RATE",
                "RATE_LIMIT_LIMITS_KNOWN_RATE",
                "RATE_LIMIT_LIMITS_PER_USER_RATE",
                "RATELIMIT_LIMITS_PER-USER_RATE",
                "RATELIMIT_LIMITS_IN-NO-FILE_RATE"
            })
    void variablesThatAreNotWarnedOfApply(String variable) {
        withVariable(variable, "7/s")
                .withPropertyValues("rate-limit.limits.known.burst=5", "rate-limit.limits.per-user.burst=5")
                .run(context -> assertThat(
                                context.getBean(RateLimitProperties.class).limits())
                        .asString()
                        .contains("rate=7/s"));
    }

    @Test
    void aVariableWithTheDashesOfAClientApplies() {
        withVariable("RATE_LIMIT_CLIENTS_MY_PARTNER_MAX_WAIT", "7s")
                .withPropertyValues("rate-limit.clients.my-partner.hosts=a.example")
                .run(context -> assertThat(
                                context.getBean(RateLimitProperties.class).clients())
                        .hasEntrySatisfying(
                                "my-partner",
                                client -> assertThat(client.maxWait()).hasSeconds(7)));
    }

    @Test
    void aChildContextDoesNotRepeatTheWarnings(CapturedOutput output) {
        application.withPropertyValues("rate-limit.http.header=legacy").run(parent -> {
            try (AnnotationConfigApplicationContext child = new AnnotationConfigApplicationContext()) {
                child.setParent(parent);
                child.getEnvironment()
                        .getPropertySources()
                        .addLast(new MapPropertySource("child", Map.of("rate-limit.http.sttus", 1)));
                ConfigurationPropertySources.attach(child.getEnvironment());
                child.register(RateLimitAutoConfiguration.class);
                child.refresh();
            }
            assertThat(warnings(output.toString()))
                    .satisfiesExactly(
                            first -> assertThat(first).contains("rate-limit.http.header"),
                            second -> assertThat(second).contains("rate-limit.http.sttus"));
        });
    }

    private ApplicationContextRunner withVariable(String name, String value) {
        return application.withInitializer(context -> context.getEnvironment()
                .getPropertySources()
                .replace(VARIABLES, new SystemEnvironmentPropertySource(VARIABLES, Map.of(name, value))));
    }

    private static List<String> warnings(String output) {
        return output.lines().filter(line -> line.contains("[RL-340]")).toList();
    }

    @EnableConfigurationProperties(Own.class)
    static class OfApplication {}

    @ConfigurationProperties("rate-limit.own")
    record Own(String color) {}
}
