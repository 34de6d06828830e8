package io.ratelimited.spring.autoconfigure;

import io.ratelimited.spring.internals.limit.KeyMemory;
import io.ratelimited.spring.internals.limit.LimitSettings;
import io.ratelimited.spring.internals.limit.SettingsSource;
import java.util.Set;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.springframework.boot.context.properties.source.ConfigurationPropertyName;
import org.springframework.boot.context.properties.source.ConfigurationPropertyName.Form;
import org.springframework.boot.context.properties.source.ConfigurationPropertySource;
import org.springframework.boot.context.properties.source.ConfigurationPropertySources;
import org.springframework.boot.context.properties.source.IterableConfigurationPropertySource;
import org.springframework.core.env.Environment;

/** The settings of the properties as Spring Boot binds them. */
record BoundSettings(RateLimitProperties properties, Environment here) implements SettingsSource {

    private static final ConfigurationPropertyName PREFIX = ConfigurationPropertyName.of("rate-limit");

    /** Properties of the parent that hold for all contexts. */
    private static final Set<String> SHARED =
            Set.of("enabled", "backend", "defaults", "limits", "memory", "clients", "redis");

    @Override
    public LimitSettings settings() {
        PropertyRanges.check(properties);
        return properties.limitSettings();
    }

    @Override
    public KeyMemory memory() {
        return properties.memory().keys();
    }

    @Override
    public void requireSame(Environment there) {
        names(here)
                .filter(name -> SHARED.contains(group(name)))
                .filter(name -> !value(name, here).equals(value(name, there)))
                .sorted()
                .findFirst()
                .ifPresent(name -> {
                    // A value of Redis can hold a password.
                    throw group(name).equals("redis")
                            ? SettingsSource.differing(name, "one value", "another")
                            : SettingsSource.differing(name, value(name, here), value(name, there));
                });
    }

    private static String group(ConfigurationPropertyName name) {
        return name.getElement(1, Form.UNIFORM);
    }

    private static Stream<ConfigurationPropertyName> names(Environment environment) {
        return sources(environment)
                .filter(IterableConfigurationPropertySource.class::isInstance)
                .flatMap(source -> ((IterableConfigurationPropertySource) source).stream())
                .filter(PREFIX::isAncestorOf);
    }

    private static String value(ConfigurationPropertyName name, Environment environment) {
        return sources(environment)
                .flatMap(source -> Stream.ofNullable(source.getConfigurationProperty(name)))
                .findFirst()
                .map(property -> environment.resolvePlaceholders(String.valueOf(property.getValue())))
                .orElse("not set");
    }

    private static Stream<ConfigurationPropertySource> sources(Environment environment) {
        return StreamSupport.stream(
                ConfigurationPropertySources.get(environment).spliterator(), false);
    }
}
