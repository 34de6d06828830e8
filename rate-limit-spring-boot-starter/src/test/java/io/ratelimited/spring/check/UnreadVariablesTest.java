package io.ratelimited.spring.check;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.spring.Contexts;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.RateLimits;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.core.env.StandardEnvironment;
import org.springframework.core.env.SystemEnvironmentPropertySource;

@ExtendWith(OutputCaptureExtension.class)
class UnreadVariablesTest {

    @ParameterizedTest
    @CsvSource({
        "RATE_LIMIT_LIMITS_SEARCH_RATE, 3/s, 100/s, true",
        "RATE_LIMIT_CLIENTS_PARTNER_HOSTS, partner.example, 100/s, true",
        "RATELIMIT_LIMITS_SEARCH_RATE, 3/s, 3/s, false",
        "RATELIMIT_LIMITS_SEARCH_RTAE, 3/s, 100/s, true",
        "RATELIMIT_LIMITS_FULL_SEARCH_RATE, 3/s, 100/s, true",
        "RATELIMIT_DEFAULTS_MAX_WAIT, 3s, 100/s, true",
        "RATELIMIT_DEFAULTS_MAXWAIT, 3s, 100/s, false",
        "RATELIMIT_HTTP_TRUSTED_PROXIES, 1, 100/s, true",
        "RATELIMIT_CLIENTS_PARTNER_HOSTS_0, partner.example, 100/s, false",
        "RATELIMIT_OF_LOGINS, 3/s, 100/s, false",
        "RATE_LIMIT_DEFAULTS_POLICY, shadow, 100/s, false"
    })
    void aVariableThatSetsNothingIsWarnedOf(
            String name, String value, String rate, boolean warned, CapturedOutput output) {
        with(name, value).run(context -> {
            assertThat(context.getBean(RateLimits.class).get("search").limit().rate())
                    .hasToString(rate);
            assertThat(output.toString().contains("The environment variable " + name + " sets nothing"))
                    .isEqualTo(warned);
        });
    }

    @Test
    void aVariableOfALimitThatAnotherPropertyNamesIsRead(CapturedOutput output) {
        with("RATE_LIMIT_LIMITS_SEARCH_RATE", "3/s")
                .withPropertyValues("rate-limit.limits.search.burst=7")
                .run(context -> {
                    assertThat(context.getBean(RateLimits.class)
                                    .get("search")
                                    .limit()
                                    .rate())
                            .hasToString("3/s");
                    assertThat(output).doesNotContain("sets nothing");
                });
    }

    @ParameterizedTest
    @CsvSource({"MAX_WAITING, true", "MAXWAITING, false"})
    void aVariableMayBeWrittenOtherwiseWhereAnotherPropertyNamesItsLimit(
            String property, boolean warned, CapturedOutput output) {
        with("RATELIMIT_LIMITS_SEARCH_" + property, "7")
                .withPropertyValues("rate-limit.limits.search.burst=7")
                .run(context ->
                        assertThat(output.toString().contains("sets nothing")).isEqualTo(warned));
    }

    @Test
    void aVariableThatAnotherPropertyOverridesIsNotWarnedOf(CapturedOutput output) {
        with("RATELIMIT_LIMITS_SEARCH_RATE", "3/s")
                .withPropertyValues("rate-limit.limits.search.rate=7/s")
                .run(context -> assertThat(output).doesNotContain("sets nothing"));
    }

    private static ApplicationContextRunner with(String name, String value) {
        String variables = StandardEnvironment.SYSTEM_ENVIRONMENT_PROPERTY_SOURCE_NAME;
        return Contexts.runner()
                .withInitializer(context -> context.getEnvironment()
                        .getPropertySources()
                        .replace(variables, new SystemEnvironmentPropertySource(variables, Map.of(name, value))))
                .withBean(Search.class);
    }

    static class Search {

        @RateLimited(name = "search", rate = "100/s")
        public void search() {}
    }
}
