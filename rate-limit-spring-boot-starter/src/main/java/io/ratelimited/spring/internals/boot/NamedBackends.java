package io.ratelimited.spring.internals.boot;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.bind.Bindable;
import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.core.env.Environment;

/** The backends that the properties name. Only properties can name one, so this is known before any bean is made. */
public final class NamedBackends {

    private NamedBackends() {}

    /** The property of one limit. */
    record OfLimit(@Nullable String backend) {}

    /** The names, in lower case. */
    public static Set<String> of(Environment environment) {
        Binder binder = Binder.get(environment);
        List<String> names = new ArrayList<>();
        binder.bind("rate-limit.backend", String.class).ifBound(names::add);
        binder.bind("rate-limit.defaults.backend", String.class).ifBound(names::add);
        binder.bind("rate-limit.limits", Bindable.mapOf(String.class, OfLimit.class))
                .ifBound(limits -> limits.values().stream()
                        .flatMap(limit -> Stream.ofNullable(limit.backend))
                        .forEach(names::add));
        Set<String> lowerCase = new HashSet<>();
        names.forEach(name -> lowerCase.add(name.strip().toLowerCase(Locale.ROOT)));
        return lowerCase;
    }
}
