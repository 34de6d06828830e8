package io.ratelimited.spring.check;

import io.ratelimited.spring.RateLimitProperties;
import io.ratelimited.spring.limit.LogText;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.bind.BindContext;
import org.springframework.boot.context.properties.bind.BindHandler;
import org.springframework.boot.context.properties.bind.Bindable;
import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.boot.context.properties.source.ConfigurationProperty;
import org.springframework.boot.context.properties.source.ConfigurationPropertyName;
import org.springframework.boot.context.properties.source.ConfigurationPropertySource;
import org.springframework.boot.origin.PropertySourceOrigin;
import org.springframework.core.env.ConfigurableEnvironment;
import org.springframework.core.env.EnumerablePropertySource;
import org.springframework.core.env.PropertySource;
import org.springframework.core.env.StandardEnvironment;

/**
 * Warns of environment variables that set nothing: Spring Boot ignores those that are misspelt. It reads a name without
 * dashes, or with underscores for all of them, but for the names in a map, which it must know from elsewhere then.
 */
final class UnreadVariables {

    private static final LogText.Lines LOG = LogText.lines(UnreadVariables.class);

    /** Other variables with these words may be the application's own, which it reads by placeholders. */
    private static final Pattern OURS =
            Pattern.compile("RATELIMIT_(LIMITS|CLIENTS|DEFAULTS|MEMORY|HTTP|ROUTES|REDIS|ASPECT|ACTUATOR)_.*"
                    + "|RATE_LIMIT_(LIMITS|CLIENTS)_.*");

    private UnreadVariables() {}

    static void warn(ConfigurableEnvironment environment) {
        if (!(environment.getPropertySources().get(StandardEnvironment.SYSTEM_ENVIRONMENT_PROPERTY_SOURCE_NAME)
                instanceof EnumerablePropertySource<?> variables)) {
            return;
        }
        List<String> ours = Stream.of(variables.getPropertyNames())
                .filter(name -> OURS.matcher(name).matches())
                .sorted()
                .toList();
        if (ours.isEmpty()) {
            return;
        }
        Set<String> read = read(environment, variables);
        ours.stream()
                .filter(name -> !read.contains(name))
                .forEach(name -> LOG.warn("The environment variable " + name
                        + " sets nothing. Leave out the dashes of a property, and write no underscores for them, as in"
                        + " RATELIMIT_LIMITS_SEARCH_MAXWAIT. The name of a limit may have dashes if another property names it, too;"
                        + " one with dots takes its value from a variable by a placeholder in application.yml."));
    }

    /** The variables that have a value for a property, also if that of another source comes first. */
    private static Set<String> read(ConfigurableEnvironment environment, PropertySource<?> variables) {
        Set<String> read = new HashSet<>();
        ConfigurationPropertySource source = ConfigurationPropertySource.from(variables);
        if (source != null) {
            Binder.get(environment).bind("rate-limit", Bindable.of(RateLimitProperties.class), new BindHandler() {
                @Override
                public <T> @Nullable Bindable<T> onStart(
                        ConfigurationPropertyName name, Bindable<T> target, BindContext context) {
                    ConfigurationProperty found = source.getConfigurationProperty(name);
                    if (found != null && found.getOrigin() instanceof PropertySourceOrigin origin) {
                        read.add(origin.getPropertyName());
                    }
                    return target;
                }
            });
        }
        return read;
    }
}
