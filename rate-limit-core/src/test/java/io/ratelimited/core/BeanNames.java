package io.ratelimited.core;

import com.tngtech.archunit.core.domain.JavaMethod;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** The names of the beans that the modules declare. Used by the tests of every module that declares any. */
public final class BeanNames {

    private static final List<String> BEANS =
            List.of("org.springframework.context.annotation.Bean", "io.ratelimited.spring.internals.bean.InternalBean");

    private BeanNames() {}

    /** Each bean method of the main classes on the class path, with the name of its bean. */
    public static Map<String, String> declared() {
        Map<String, String> names = new TreeMap<>();
        ClassRules.mainClasses("io.ratelimited").stream()
                .filter(type -> !type.getPackageName().startsWith("io.ratelimited.sample"))
                .flatMap(type -> type.getMethods().stream())
                .forEach(method -> BEANS.stream()
                        .filter(method::isAnnotatedWith)
                        .forEach(bean -> names.put(method.getFullName(), name(method, bean))));
        return names;
    }

    /** The names that an application might pick for a bean of its own. */
    public static Set<String> othersMayPick() {
        return declared().values().stream()
                .filter(name -> !name.startsWith("io.ratelimited."))
                .collect(Collectors.toCollection(TreeSet::new));
    }

    private static String name(JavaMethod method, String bean) {
        return Stream.of("value", "name")
                .flatMap(member -> method.getAnnotationOfType(bean).get(member).stream())
                .flatMap(named -> named instanceof String[] all ? Stream.of(all) : Stream.of(named.toString()))
                .findFirst()
                .orElse(method.getName());
    }
}
