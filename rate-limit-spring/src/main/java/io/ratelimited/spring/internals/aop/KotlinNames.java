package io.ratelimited.spring.internals.aop;

import java.lang.reflect.Method;
import java.util.regex.Pattern;
import org.springframework.core.KotlinDetector;

/**
 * The names of functions as their authors wrote them. For the JVM, Kotlin adds a hash to a function with a parameter or result
 * of a value class, as in {@code load-3Nx1tcw}, and the name of the module to an internal one, as in {@code load$shop}.
 */
public final class KotlinNames {

    private static final Pattern ADDED = Pattern.compile("(.+?)(-[\\w-]{7})?([$][^$]+)?");

    private KotlinNames() {}

    /** The name of a method in the language of its class. */
    public static String of(Method method) {
        String name = method.getName();
        if ((name.indexOf('-') < 0 && name.indexOf('$') < 0)
                || !KotlinDetector.isKotlinType(method.getDeclaringClass())) {
            return name;
        }
        var parts = ADDED.matcher(name);
        return parts.matches() ? parts.group(1) : name;
    }
}
