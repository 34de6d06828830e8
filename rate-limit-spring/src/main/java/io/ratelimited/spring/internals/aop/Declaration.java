package io.ratelimited.spring.internals.aop;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Policy;
import io.ratelimited.spring.InvalidRateLimitException;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.internals.limit.LimitProperty;
import java.lang.reflect.Method;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.springframework.core.annotation.MergedAnnotation;
import org.springframework.util.ReflectionUtils;
import org.springframework.util.StringValueResolver;

/**
 * An annotation that limits a method, and where it stands.
 *
 * @param annotation its attributes
 * @param method of the class of the called object
 * @param owner the class that default names are made of: of a client, its interface
 * @param ofClass whether the annotation stands on the class
 * @param position among several of one element, from 1
 */
public record Declaration(
        MergedAnnotation<RateLimited> annotation, Method method, Class<?> owner, boolean ofClass, int position) {

    /** Defaults of attributes that are numbers. None is in the range of a property, so that no typing error looks unset. */
    private static final Set<Number> UNSET = Set.of(Long.MIN_VALUE, Integer.MIN_VALUE, Double.NaN);

    /** Names that several methods of a class have, without their parameters and with these. */
    private static final ClassValue<Set<String>> OVERLOADED = new ClassValue<>() {
        @Override
        protected Set<String> computeValue(Class<?> type) {
            Set<String> names = new HashSet<>();
            return Stream.of(ReflectionUtils.getUniqueDeclaredMethods(type))
                    .map(method -> Declarations.written(method, type))
                    .filter(method -> !method.isBridge() && !method.isSynthetic())
                    .distinct()
                    .flatMap(method -> Stream.of(KotlinNames.of(method), withParameters(method)))
                    .filter(name -> !names.add(name))
                    .collect(Collectors.toUnmodifiableSet());
        }
    };

    /** The name that the annotation gives, or the default. */
    public String name(StringValueResolver placeholders) {
        String given = givenName(placeholders);
        return given == null ? defaultName() : given;
    }

    /** Returns whether the name is the default one, which no other method may have. */
    boolean isNameless(StringValueResolver placeholders) {
        return givenName(placeholders) == null;
    }

    private String defaultName() {
        String simple = owner.getSimpleName();
        String type =
                simple.isEmpty() ? owner.getName().substring(owner.getName().lastIndexOf('.') + 1) : simple;
        String base = ofClass ? type : type + "." + methodName();
        return position == 1 ? base : base + "#" + position;
    }

    private String methodName() {
        String name = KotlinNames.of(method);
        return OVERLOADED.get(owner).contains(name) ? withParameters(method) : name;
    }

    private static String withParameters(Method method) {
        return KotlinNames.of(method) + parameterTypes(method, Class::getSimpleName);
    }

    private static String parameterTypes(Method method, Function<Class<?>, String> text) {
        return Stream.of(method.getParameterTypes()).map(text).collect(Collectors.joining(",", "(", ")"));
    }

    /**
     * Returns whether a web request is charged once, however many handler methods it comes through: by forwards, for one. Calls of
     * these methods that other code makes are charged each.
     */
    boolean isOncePerRequest() {
        return ofClass && Controllers.hasHandlers(owner) && Controllers.answersRequest(method);
    }

    /**
     * Returns whether the bean of this limit may be behind the proxy of another one. Any class may be. Another proxy may be if one
     * of their interfaces extends the other: two that only extend the same interface are two clients.
     */
    boolean mayBeBehind(Declaration other) {
        return (!owner.isInterface() || isRelated(owner, other.owner))
                && isRelated(Declarations.type(annotation), Declarations.type(other.annotation));
    }

    private static boolean isRelated(Class<?> one, Class<?> other) {
        return one.isAssignableFrom(other) || other.isAssignableFrom(one);
    }

    /** Returns whether this and another one come from the same annotation, which several classes may inherit. */
    boolean isOfSameAnnotation(Declaration other) {
        return position == other.position && Objects.equals(annotation.getSource(), other.annotation.getSource());
    }

    /** Where the annotation applies, for messages: another text for each class and method. */
    public String place() {
        return "@RateLimited on " + (ofClass ? owner.getName() : text(method, owner));
    }

    /** A method, for messages: with full names where the simple ones of its parameter types are also those of another method. */
    static String text(Method method, Class<?> owner) {
        String simple = withParameters(method);
        return owner.getName() + "."
                + (OVERLOADED.get(owner).contains(simple)
                        ? method.getName() + parameterTypes(method, Class::getTypeName)
                        : simple);
    }

    /** The annotated method, whose parameter names expressions may use too; null if a class is annotated. */
    @Nullable
    Method annotatedMethod() {
        return annotation.getSource() instanceof Method annotated ? annotated : null;
    }

    /** The values that the annotation sets, with placeholders resolved: each attribute is a property of its name. */
    public Map<LimitProperty, Object> properties(StringValueResolver placeholders) {
        Map<LimitProperty, Object> values = new HashMap<>();
        for (LimitProperty property : LimitProperty.values()) {
            Object attribute = annotation.getValue(property.label()).orElse(null);
            Object value = attribute == null ? null : value(property, attribute, placeholders);
            if (value != null) {
                values.put(property, value);
            }
        }
        return Map.copyOf(values);
    }

    /** The value of a property; null if the attribute has its default, which leaves the property to other places. */
    private @Nullable Object value(LimitProperty property, Object attribute, StringValueResolver placeholders) {
        if (attribute instanceof Enum<?> constant) {
            return constant == Algorithm.DEFAULT || constant == Policy.DEFAULT ? null : constant;
        }
        if (attribute instanceof Number number) {
            return UNSET.contains(number) ? null : number;
        }
        String text = text(property.label(), (String) attribute, placeholders);
        try {
            return text == null ? null : property.read(property.label(), text);
        } catch (IllegalArgumentException ex) {
            throw new InvalidRateLimitException(
                    name(placeholders),
                    place(),
                    String.valueOf(ex.getMessage()),
                    "Correct the annotation. [RL-103]",
                    ex);
        }
    }

    /** The name that the annotation gives, with placeholders resolved; null when it is empty. */
    private @Nullable String givenName(StringValueResolver placeholders) {
        return text("name", annotation.getString("name"), placeholders);
    }

    /** The text of an attribute with placeholders resolved; null when it is empty. */
    private @Nullable String text(String attribute, String text, StringValueResolver placeholders) {
        if (text.isEmpty()) {
            return null;
        }
        try {
            String resolved = placeholders.resolveStringValue(text);
            if (resolved != null && resolved.contains("${")) {
                throw unresolved(attribute, text, placeholders, null);
            }
            return resolved == null || resolved.isBlank() ? null : resolved;
        } catch (IllegalArgumentException ex) {
            throw unresolved(attribute, text, placeholders, ex);
        }
    }

    /** Some applications leave a placeholder as it is when nothing resolves it, others throw. */
    private InvalidRateLimitException unresolved(
            String attribute, String text, StringValueResolver placeholders, @Nullable Exception cause) {
        return new InvalidRateLimitException(
                attribute.equals("name") ? text : name(placeholders),
                place(),
                attribute + " is \"" + text + "\", but no property resolves its placeholder",
                "Set the property, or give the placeholder a default as in ${some.rate:100/s}. [RL-109]",
                cause);
    }
}
