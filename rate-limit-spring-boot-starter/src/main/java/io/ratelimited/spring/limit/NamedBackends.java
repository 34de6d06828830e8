package io.ratelimited.spring.limit;

import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.core.env.Environment;

/** The backends that the properties name. Only properties can name one, so this is known before any bean is made. */
public record NamedBackends(
        @Nullable String backend,
        @Nullable OfLimit defaults,
        @Nullable Map<String, OfLimit> limits) {

    /** The property of one limit. */
    public record OfLimit(@Nullable String backend) {}

    /** The names, in lower case. */
    public static Set<String> of(Environment environment) {
        NamedBackends named = Binder.get(environment).bindOrCreate("rate-limit", NamedBackends.class);
        OfLimit none = new OfLimit(null);
        return Stream.concat(
                        Stream.of(new OfLimit(named.backend), Objects.requireNonNullElse(named.defaults, none)),
                        named.limits == null ? Stream.empty() : named.limits.values().stream())
                .flatMap(limit -> Stream.ofNullable(limit.backend))
                .map(name -> name.strip().toLowerCase(Locale.ROOT))
                .collect(Collectors.toSet());
    }
}
