package io.ratelimited.spring.autoconfigure;

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
 * Ignores lists that a higher property source has replaced. Spring Boot takes a list from one source as a whole, and then
 * reports lists within its elements in lower sources, such as {@code rate-limit.routes[0].methods[0]}, as unknown
 * properties.
 */
public final class ReplacedLists extends AbstractBindHandler {

    private static final ConfigurationPropertyName PREFIX = ConfigurationPropertyName.of("rate-limit");

    /** Maps, whose keys may be numbers. */
    private static final Set<String> MAPS = Set.of("limits", "tiers");

    /** @param parent which reports unknown properties */
    public ReplacedLists(BindHandler parent) {
        super(parent);
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
            if (!unknown.isEmpty()) {
                throw new UnboundConfigurationPropertiesException(unknown);
            }
        }
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
        if (!PREFIX.isAncestorOf(name)) {
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
