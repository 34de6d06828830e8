package io.ratelimited.spring.autoconfigure;

import io.ratelimited.spring.text.LogText;
import java.util.List;
import org.springframework.beans.factory.SmartInitializingSingleton;
import org.springframework.boot.context.properties.source.ConfigurationPropertyName;
import org.springframework.boot.context.properties.source.ConfigurationPropertySource;
import org.springframework.boot.context.properties.source.ConfigurationPropertySources;
import org.springframework.boot.context.properties.source.ConfigurationPropertyState;
import org.springframework.core.env.Environment;

/**
 * Warns of properties below a prefix that looks like {@code rate-limit}: nothing binds them, so Spring Boot does not reject
 * them, and the limits that they describe would silently not limit.
 */
final class MisspelledPrefix implements SmartInitializingSingleton {

    private static final LogText.Lines LOG = LogText.lines(MisspelledPrefix.class);

    private static final List<String> PREFIXES =
            List.of("rate-limits", "rate-limiter", "rate-limiting", "rate-limited", "spring.rate-limit");

    /** Members of ours, so that properties of other libraries are not meant. */
    private static final List<String> MEMBERS =
            List.of("limits", "defaults", "backend", "redis", "http", "clients", "routes", "memory");

    private final Environment environment;

    MisspelledPrefix(Environment environment) {
        this.environment = environment;
    }

    @Override
    public void afterSingletonsInstantiated() {
        for (String prefix : PREFIXES) {
            for (String member : MEMBERS) {
                if (isPresent(ConfigurationPropertyName.of(prefix + "." + member))) {
                    LOG.warn(
                            "Properties under " + prefix + "." + member + " have no effect, because nothing reads them."
                                    + " Rename the prefix to rate-limit." + member + ". [RL-271]");
                }
            }
        }
    }

    private boolean isPresent(ConfigurationPropertyName name) {
        for (ConfigurationPropertySource source : ConfigurationPropertySources.get(environment)) {
            if (source.containsDescendantOf(name) == ConfigurationPropertyState.PRESENT
                    || source.getConfigurationProperty(name) != null) {
                return true;
            }
        }
        return false;
    }
}
