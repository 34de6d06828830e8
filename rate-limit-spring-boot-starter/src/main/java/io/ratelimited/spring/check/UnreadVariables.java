package io.ratelimited.spring.check;

import io.ratelimited.spring.RateLimitProperties;
import java.util.Locale;
import java.util.Set;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.springframework.core.env.ConfigurableEnvironment;
import org.springframework.core.env.EnumerablePropertySource;
import org.springframework.core.env.StandardEnvironment;

/**
 * Warns of environment variables that set nothing. For names that Spring Boot knows, an underscore may stand for the dash of
 * {@code rate-limit}; names in a map are only found without it.
 */
final class UnreadVariables {

    private static final Log LOG = LogFactory.getLog(UnreadVariables.class);
    private static final String PREFIX = "RATE_LIMIT_LIMITS_";

    private UnreadVariables() {}

    static void warn(ConfigurableEnvironment environment, RateLimitProperties properties) {
        Set<String> known =
                properties.limits() == null ? Set.of() : properties.limits().keySet();
        if (environment.getPropertySources().get(StandardEnvironment.SYSTEM_ENVIRONMENT_PROPERTY_SOURCE_NAME)
                instanceof EnumerablePropertySource<?> variables) {
            for (String name : variables.getPropertyNames()) {
                if (name.startsWith(PREFIX) && known.stream().noneMatch(limit -> isOf(limit, name))) {
                    LOG.warn("The environment variable " + name
                            + " sets nothing. Where no other property names the limit,"
                            + " write RATELIMIT_LIMITS_<NAME>_<PROPERTY> without further underscores, as in"
                            + " RATELIMIT_LIMITS_SEARCH_MAXWAIT.");
                }
            }
        }
    }

    private static boolean isOf(String limit, String variable) {
        return plain(variable.substring(PREFIX.length())).startsWith(plain(limit));
    }

    private static String plain(String name) {
        return name.toLowerCase(Locale.ROOT).replaceAll("[^a-z0-9]", "");
    }
}
