package io.ratelimited.spring.internals.client;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Policy;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.ContextRunner;
import io.ratelimited.spring.fields.RateLimitHeaderReader;
import io.ratelimited.spring.internals.call.LimitEnforcer;
import io.ratelimited.spring.internals.limit.LimitRegistry;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Function;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.context.support.GenericApplicationContext;
import org.springframework.format.datetime.standard.DurationFormatterUtils;

/** Applications of the Spring Framework with clients that are limited as properties say. */
final class LimitedClientsContext {

    private static final String CLIENTS = "rate-limit.clients.";

    private LimitedClientsContext() {}

    /** @param properties those of the clients, and of limits; each as {@code name=value} */
    static ContextRunner runner(ManualTicker ticker, String... properties) {
        Map<String, Map<String, String>> clients = new TreeMap<>();
        for (String property : properties) {
            if (property.startsWith(CLIENTS)) {
                String[] parts = property.substring(CLIENTS.length()).split("[.=]", 3);
                clients.computeIfAbsent(parts[0], name -> new LinkedHashMap<>())
                        .put(parts[1].replace("[0]", ""), parts[2]);
            }
        }
        return ContextRunner.limited(ticker)
                .withPropertyValues(Stream.of(properties)
                        .filter(property -> !property.startsWith(CLIENTS))
                        .toArray(String[]::new))
                .withInitializer(context -> ((GenericApplicationContext) context)
                        .registerBean(LimitedClients.class, () -> clients(context.getBeanFactory(), clients)));
    }

    private static LimitedClients clients(
            ConfigurableListableBeanFactory beans, Map<String, Map<String, String>> named) {
        Map<String, ClientProperties> clients = new TreeMap<>();
        named.forEach((name, values) -> clients.put(
                name,
                new ClientProperties(
                        read(values, "hosts", LimitedClientsContext::list),
                        read(values, "limits", LimitedClientsContext::list),
                        null,
                        read(values, "max-pause", DurationFormatterUtils::detectAndParse),
                        read(values, "policy", text -> Policy.valueOf(text.toUpperCase(Locale.ROOT))),
                        read(values, "max-wait", DurationFormatterUtils::detectAndParse),
                        values.remove("key"))));
        assertThat(named.values()).as("not read").allMatch(Map::isEmpty);
        return new LimitedClients(
                clients,
                beans.getBean(LimitRegistry.class),
                beans.getBean(LimitEnforcer.class),
                beans.getBeanProvider(RateLimitHeaderReader.class).getIfAvailable(() -> ResponseHeaders::read),
                beans);
    }

    private static <T> @Nullable T read(Map<String, String> values, String property, Function<String, T> reader) {
        String text = values.remove(property);
        return text == null ? null : reader.apply(text);
    }

    private static List<String> list(String text) {
        return List.of(text.split(","));
    }
}
