package io.ratelimited.spring.check;

import io.ratelimited.spring.RateLimitProperties;
import java.util.Collection;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;
import org.springframework.core.env.ConfigurableEnvironment;
import org.springframework.core.env.EnumerablePropertySource;
import org.springframework.core.env.StandardEnvironment;

/**
 * Warns of environment variables that set nothing. For names that Spring Boot knows, an underscore may stand for the dash of
 * {@code rate-limit}; names in a map are only found without it.
 */
final class UnreadVariables {

    private static final Log LOG = LogFactory.getLog(UnreadVariables.class);

    private UnreadVariables() {}

    static void warn(ConfigurableEnvironment environment, RateLimitProperties properties) {
        if (environment.getPropertySources().get(StandardEnvironment.SYSTEM_ENVIRONMENT_PROPERTY_SOURCE_NAME)
                instanceof EnumerablePropertySource<?> variables) {
            for (String name : variables.getPropertyNames()) {
                warn(name, "LIMITS_", properties.limits());
                warn(name, "CLIENTS_", properties.clients());
            }
        }
    }

    /** @param known what the map has from elsewhere: Spring Boot asks for the variables of these names in both forms */
    private static void warn(String variable, String map, @Nullable Map<String, ?> known) {
        String prefix = "RATE_LIMIT_" + map;
        Collection<String> names = known == null ? Set.of() : known.keySet();
        if (variable.startsWith(prefix)
                && names.stream()
                        .noneMatch(name ->
                                plain(variable.substring(prefix.length())).startsWith(plain(name)))) {
            LOG.warn("The environment variable " + variable
                    + " sets nothing. Where no other property has the name, write"
                    + " RATELIMIT_" + map + "<NAME>_<PROPERTY> without further underscores, as in"
                    + " RATELIMIT_LIMITS_SEARCH_MAXWAIT.");
        }
    }

    private static String plain(String name) {
        return name.toLowerCase(Locale.ROOT).replaceAll("[^a-z0-9]", "");
    }
}
