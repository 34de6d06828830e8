package io.ratelimited.spring.autoconfigure;

import io.ratelimited.spring.InvalidRateLimitException;
import io.ratelimited.spring.internals.text.PropertyText;
import java.time.Duration;
import java.util.Set;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.bind.AbstractBindHandler;
import org.springframework.boot.context.properties.bind.BindContext;
import org.springframework.boot.context.properties.bind.BindHandler;
import org.springframework.boot.context.properties.bind.Bindable;
import org.springframework.boot.context.properties.bind.UnboundConfigurationPropertiesException;
import org.springframework.boot.context.properties.source.ConfigurationProperty;
import org.springframework.boot.context.properties.source.ConfigurationPropertyName;
import org.springframework.boot.context.properties.source.ConfigurationPropertySource;
import org.springframework.boot.context.properties.source.ConfigurationPropertyState;

/**
 * Decides which properties that nothing binds fail startup: those of a limit, a route, a client and the defaults. Other
 * properties that do not exist may be those of another version or of the application; {@link IgnoredProperties} warns of
 * them.
 *
 * <p>Lists that a higher property source has replaced are ignored. Spring Boot takes a list from one source as a whole, and
 * then reports lists within its elements in lower sources, such as {@code rate-limit.routes[0].methods[0]}, as unknown
 * properties.
 *
 * <p>A duration of ours without a unit fails startup, too: Spring Boot would take a block of 60 for milliseconds.
 */
final class UnboundProperties extends AbstractBindHandler {

    /** Maps, whose keys may be numbers. */
    private static final Set<String> MAPS = Set.of("limits", "tiers");

    /** @param parent which reports unknown properties */
    public UnboundProperties(BindHandler parent) {
        super(parent);
    }

    @Override
    public @Nullable Object onSuccess(
            ConfigurationPropertyName name, Bindable<?> target, BindContext context, Object result) {
        if (result instanceof Duration
                && KnownProperties.PREFIX.isAncestorOf(name)
                && KnownProperties.unknown(name).isEmpty()) {
            String text =
                    context.getBinder().bind(name, Bindable.of(String.class)).get();
            if (PropertyText.isWithoutUnit(text)) {
                throw new InvalidRateLimitException(
                        "Property " + name + " is " + text + ", but must be " + PropertyText.expected(Duration.class),
                        "Add its unit. [RL-102]");
            }
        }
        return super.onSuccess(name, target, context, result);
    }

    @Override
    public void onFinish(
            ConfigurationPropertyName name, Bindable<?> target, BindContext context, @Nullable Object result)
            throws Exception {
        try {
            super.onFinish(name, target, context, result);
        } catch (UnboundConfigurationPropertiesException ex) {
            Set<ConfigurationProperty> unknown = new TreeSet<>(ex.getUnboundProperties());
            unknown.removeIf(property -> isReplaced(property, context.getSources()));
            if (target.getType().resolve() == RateLimitProperties.class) {
                unknown.removeIf(property -> isHarmless(property.getName()));
            }
            if (!unknown.isEmpty()) {
                throw new UnboundConfigurationPropertiesException(unknown);
            }
        }
    }

    private static boolean isHarmless(ConfigurationPropertyName name) {
        return KnownProperties.unknown(name)
                .filter(unknown -> !unknown.isOfLimit())
                .isPresent();
    }

    private static boolean isReplaced(ConfigurationProperty property, Iterable<ConfigurationPropertySource> sources) {
        ConfigurationPropertyName list = listOf(property.getName());
        ConfigurationPropertySource own = property.getSource();
        if (list == null || own == null) {
            return false;
        }
        for (ConfigurationPropertySource source : sources) {
            if (source.getConfigurationProperty(list) != null
                    || source.containsDescendantOf(list) == ConfigurationPropertyState.PRESENT) {
                return source.getUnderlyingSource() != own.getUnderlyingSource();
            }
        }
        return false;
    }

    /** The outermost list that holds a property of ours. */
    private static @Nullable ConfigurationPropertyName listOf(ConfigurationPropertyName name) {
        if (!KnownProperties.PREFIX.isAncestorOf(name)) {
            return null;
        }
        for (int i = 2; i < name.getNumberOfElements(); i++) {
            String parent = name.getElement(i - 1, ConfigurationPropertyName.Form.UNIFORM);
            boolean ofMap = MAPS.contains(parent) && (i == 2 || parent.equals("tiers"));
            if (name.isNumericIndex(i) && !ofMap) {
                return name.chop(i);
            }
        }
        return null;
    }
}
