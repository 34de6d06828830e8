package io.ratelimited.spring;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Policy;
import java.lang.reflect.AnnotatedElement;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.springframework.aop.support.AopUtils;
import org.springframework.beans.factory.BeanFactory;
import org.springframework.boot.convert.DurationStyle;
import org.springframework.core.DefaultParameterNameDiscoverer;
import org.springframework.core.ParameterNameDiscoverer;
import org.springframework.core.annotation.MergedAnnotation;
import org.springframework.core.annotation.MergedAnnotations;
import org.springframework.core.annotation.MergedAnnotations.SearchStrategy;
import org.springframework.util.ClassUtils;
import org.springframework.util.StringValueResolver;

/**
 * Finds the limits on methods, once per method and class of the target: annotations on the method, on what it
 * overrides or implements, or else on its class. Thread-safe.
 */
final class LimitedMethods {

    private final RateLimits rateLimits;
    private final BeanFactory beanFactory;
    private final StringValueResolver placeholders;
    private final CallStyles styles;
    private final CurrentRequest.@Nullable Source requests;
    private final ParameterNameDiscoverer names = new DefaultParameterNameDiscoverer();
    private final Map<Class<?>, Map<Method, Optional<LimitedMethod>>> cache = new ConcurrentHashMap<>();

    LimitedMethods(
            RateLimits rateLimits,
            BeanFactory beanFactory,
            StringValueResolver placeholders,
            CallStyles styles,
            CurrentRequest.@Nullable Source requests) {
        this.rateLimits = rateLimits;
        this.beanFactory = beanFactory;
        this.placeholders = placeholders;
        this.styles = styles;
        this.requests = requests;
    }

    /**
     * The limits on a method.
     *
     * @param method as called, perhaps of an interface
     * @param targetClass class of the called object
     * @return null when there are none
     * @throws InvalidRateLimitException when one cannot be meant
     */
    @Nullable
    LimitedMethod find(Method method, Class<?> targetClass) {
        Map<Method, Optional<LimitedMethod>> methods = cache.get(targetClass);
        if (methods == null) {
            methods = cache.computeIfAbsent(targetClass, type -> new ConcurrentHashMap<>());
        }
        Optional<LimitedMethod> found = methods.get(method);
        if (found == null) {
            found = Optional.ofNullable(resolve(method, targetClass));
            methods.put(method, found);
        }
        return found.orElse(null);
    }

    /** Whether there may be limits on a method, decided without making any. */
    static boolean isLimited(Method method, Class<?> targetClass) {
        return !declarations(method, targetClass).isEmpty();
    }

    private @Nullable LimitedMethod resolve(Method method, Class<?> targetClass) {
        List<Declaration> declarations = declarations(method, targetClass);
        if (declarations.isEmpty()) {
            return null;
        }
        Method specific = AopUtils.getMostSpecificMethod(method, targetClass);
        List<MethodLimit> limits = new ArrayList<>();
        Method fallback = null;
        for (Declaration declaration : declarations) {
            LimitProperties declared = properties(declaration);
            NamedLimit limit = rateLimits.register(declaration.name(placeholders), declaration.place(), declared);
            LimitProperties use = rateLimits.merged(limit.name(), declared);
            limits.add(methodLimit(limit, use, specific, declaration.place()));
            if (use.fallback() != null) {
                fallback = Fallbacks.find(specific, targetClass, use.fallback(), limit.name(), declaration.place());
            }
        }
        return new LimitedMethod(specific, limits, fallback, rateLimits, styles.of(specific), requests);
    }

    private MethodLimit methodLimit(NamedLimit limit, LimitProperties use, Method method, String place) {
        String permits = use.permits();
        boolean fixed = permits == null || permits.matches("\\d+");
        return new MethodLimit(
                limit,
                expression("key", use.key(), method, limit, place),
                fixed ? null : expression("permits", permits, method, limit, place),
                permits == null || !fixed ? 1 : Long.parseLong(permits),
                expression("when", use.when(), method, limit, place),
                expression("tier", use.tier(), method, limit, place));
    }

    private @Nullable CallExpression expression(
            String attribute, @Nullable String text, Method method, NamedLimit limit, String place) {
        if (text == null) {
            return null;
        }
        try {
            return new CallExpression(
                    attribute + " of rate limit '" + limit.name() + "'", text, method, names, beanFactory);
        } catch (IllegalArgumentException ex) {
            throw new InvalidRateLimitException(
                    limit.name(), place, attribute + " " + ex.getMessage(), "Correct the expression.", ex);
        }
    }

    /** What the annotation says, with placeholders resolved. */
    private LimitProperties properties(Declaration declaration) {
        MergedAnnotation<RateLimited> annotation = declaration.annotation();
        String name = declaration.name(placeholders);
        Algorithm algorithm = only(annotation.getValue("algorithm", Algorithm[].class), "algorithm", name, declaration);
        Policy policy = only(annotation.getValue("policy", Policy[].class), "policy", name, declaration);
        long burst = annotation.getLong("burst");
        int maxConcurrent = annotation.getInt("maxConcurrent");
        return new LimitProperties(
                algorithm,
                text(annotation, "rate"),
                burst == -1 ? null : Long.valueOf(burst),
                duration(annotation, "warmup", name, declaration),
                maxConcurrent == -1 ? null : Integer.valueOf(maxConcurrent),
                text(annotation, "key"),
                text(annotation, "permits"),
                text(annotation, "when"),
                text(annotation, "tier"),
                policy,
                duration(annotation, "maxWait", name, declaration),
                text(annotation, "fallback"),
                null,
                null,
                null,
                null,
                null,
                null,
                null,
                null,
                null,
                null);
    }

    private static <T> @Nullable T only(Optional<T[]> values, String attribute, String name, Declaration declaration) {
        T[] array = values.orElse(null);
        if (array == null || array.length == 0) {
            return null;
        }
        if (array.length > 1) {
            throw new InvalidRateLimitException(
                    name,
                    declaration.place(),
                    attribute + " must be one: " + Arrays.toString(array),
                    "Remove the others.");
        }
        return array[0];
    }

    private @Nullable String text(MergedAnnotation<RateLimited> annotation, String attribute) {
        String text = annotation.getString(attribute);
        if (text.isEmpty()) {
            return null;
        }
        return placeholders.resolveStringValue(text);
    }

    private @Nullable Duration duration(
            MergedAnnotation<RateLimited> annotation, String attribute, String name, Declaration declaration) {
        String text = text(annotation, attribute);
        try {
            return text == null ? null : DurationStyle.detectAndParse(text);
        } catch (IllegalArgumentException ex) {
            throw new InvalidRateLimitException(
                    name,
                    declaration.place(),
                    attribute + " must be a duration such as 500ms, 10s or PT10S: \"" + text + "\"",
                    "Correct the annotation.",
                    ex);
        }
    }

    /** Annotations on a method: its own, or else those of what it overrides, or else those of its class. */
    private static List<Declaration> declarations(Method method, Class<?> targetClass) {
        Class<?> userClass = ClassUtils.getUserClass(targetClass);
        Method specific = AopUtils.getMostSpecificMethod(method, userClass);
        if (MergedAnnotations.from(specific, SearchStrategy.TYPE_HIERARCHY).isPresent(RateLimitExempt.class)) {
            return List.of();
        }
        List<MergedAnnotation<RateLimited>> own = nearest(specific);
        if (!own.isEmpty()) {
            return declarations(own, specific, userClass, false);
        }
        if (!Modifier.isPublic(specific.getModifiers()) || specific.getDeclaringClass() == Object.class) {
            return List.of();
        }
        return declarations(nearest(userClass), specific, userClass, true);
    }

    private static List<MergedAnnotation<RateLimited>> nearest(AnnotatedElement element) {
        List<MergedAnnotation<RateLimited>> all = MergedAnnotations.from(element, SearchStrategy.TYPE_HIERARCHY).stream(
                        RateLimited.class)
                .toList();
        if (all.isEmpty()) {
            return all;
        }
        int nearest = all.get(0).getAggregateIndex();
        return all.stream().filter(a -> a.getAggregateIndex() == nearest).toList();
    }

    private static List<Declaration> declarations(
            List<MergedAnnotation<RateLimited>> annotations, Method method, Class<?> userClass, boolean ofClass) {
        List<Declaration> declarations = new ArrayList<>(annotations.size());
        for (int i = 0; i < annotations.size(); i++) {
            declarations.add(new Declaration(annotations.get(i), method, userClass, ofClass, i + 1));
        }
        return declarations;
    }

    /**
     * An annotation and where it stands.
     *
     * @param position among several of one element, from 1
     */
    private record Declaration(
            MergedAnnotation<RateLimited> annotation,
            Method method,
            Class<?> userClass,
            boolean ofClass,
            int position) {

        private String name(StringValueResolver placeholders) {
            String given = annotation.getString("name");
            if (!given.isEmpty()) {
                return String.valueOf(placeholders.resolveStringValue(given));
            }
            String base = ofClass ? userClass.getSimpleName() : userClass.getSimpleName() + "." + methodName();
            return position == 1 ? base : base + "#" + position;
        }

        private String methodName() {
            boolean overloaded = Stream.of(userClass.getDeclaredMethods())
                            .filter(other -> !other.isBridge() && !other.isSynthetic())
                            .filter(other -> other.getName().equals(method.getName()))
                            .count()
                    > 1;
            return overloaded ? method.getName() + parameterTypes() : method.getName();
        }

        private String parameterTypes() {
            return Stream.of(method.getParameterTypes())
                    .map(Class::getSimpleName)
                    .collect(Collectors.joining(",", "(", ")"));
        }

        private String place() {
            return "@RateLimited on " + userClass.getName()
                    + (ofClass ? "" : "." + method.getName() + parameterTypes());
        }
    }
}
