package io.ratelimited.spring.autoconfigure;

import io.ratelimited.spring.InvalidRateLimitException;
import io.ratelimited.spring.internals.aop.BeanTypes;
import io.ratelimited.spring.internals.aop.Declaration;
import io.ratelimited.spring.internals.aop.Declarations;
import io.ratelimited.spring.internals.client.OutgoingRequest;
import io.ratelimited.spring.internals.expression.CallRoot;
import io.ratelimited.spring.internals.limit.LimitProperty;
import io.ratelimited.spring.internals.limit.ResolvedLimit;
import java.lang.reflect.Method;
import java.util.List;
import java.util.Objects;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.springframework.aot.generate.GenerationContext;
import org.springframework.aot.hint.BindingReflectionHintsRegistrar;
import org.springframework.aot.hint.ExecutableMode;
import org.springframework.aot.hint.MemberCategory;
import org.springframework.aot.hint.ReflectionHints;
import org.springframework.aot.hint.RuntimeHints;
import org.springframework.aot.hint.RuntimeHintsRegistrar;
import org.springframework.beans.factory.aot.BeanRegistrationAotContribution;
import org.springframework.beans.factory.aot.BeanRegistrationAotProcessor;
import org.springframework.beans.factory.aot.BeanRegistrationCode;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.beans.factory.support.RegisteredBean;
import org.springframework.boot.context.properties.bind.BindException;
import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.core.ResolvableType;
import org.springframework.core.env.Environment;
import org.springframework.util.ClassUtils;
import org.springframework.util.ReflectionUtils;

/**
 * Hints for the reflection of limits, for applications that are processed ahead of time: the words of expressions, the
 * types of parameters and beans that expressions look into, and fallbacks, as annotations name them and the properties
 * that the build knows; the scripts of Redis, and the caches.
 */
final class RateLimitHints implements RuntimeHintsRegistrar, BeanRegistrationAotProcessor {

    private static final BindingReflectionHintsRegistrar TYPES = new BindingReflectionHintsRegistrar();
    /** Classes that the copy of Caffeine loads by name for caches bounded by number or by weight. */
    private static final List<String> CACHES = List.of("SSMS", "PSMS", "SSMW", "PSMW");

    private static final List<LimitProperty> EXPRESSIONS = List.of(
            LimitProperty.KEY,
            LimitProperty.PERMITS,
            LimitProperty.WHEN,
            LimitProperty.CHARGE,
            LimitProperty.TIER,
            LimitProperty.PRIORITY,
            LimitProperty.BLOCK_UNLESS);

    private static final Pattern BEAN = Pattern.compile("@'?(\\w+)");

    @Override
    public void registerHints(RuntimeHints hints, @Nullable ClassLoader classLoader) {
        hints.reflection().registerType(CallRoot.class, MemberCategory.INVOKE_PUBLIC_METHODS);
        hints.reflection().registerType(OutgoingRequest.class, MemberCategory.INVOKE_PUBLIC_METHODS);
        // Their components are the names of the properties.
        KnownProperties.records()
                .forEach(properties ->
                        hints.reflection().registerType(properties, MemberCategory.INVOKE_PUBLIC_METHODS));
        hints.resources().registerPattern("io/ratelimited/redis/*.lua");
        for (String cache : CACHES) {
            hints.reflection()
                    .registerTypeIfPresent(
                            classLoader,
                            "io.ratelimited.core.caffeine.cache." + cache,
                            MemberCategory.INVOKE_DECLARED_CONSTRUCTORS,
                            MemberCategory.ACCESS_DECLARED_FIELDS);
        }
    }

    @Override
    public @Nullable BeanRegistrationAotContribution processAheadOfTime(RegisteredBean bean) {
        Class<?> type = ClassUtils.getUserClass(bean.getBeanClass());
        List<Declaration> limits = BeanTypes.methods(type).stream()
                .flatMap(method -> Declarations.of(method, type).stream())
                .toList();
        return limits.isEmpty() ? null : new Contribution(type, limits, bean.getBeanFactory());
    }

    private record Contribution(Class<?> type, List<Declaration> limits, ConfigurableListableBeanFactory beans)
            implements BeanRegistrationAotContribution {

        @Override
        public void applyTo(GenerationContext generation, BeanRegistrationCode code) {
            ReflectionHints hints = generation.getRuntimeHints().reflection();
            for (Declaration limit : limits) {
                Use use = use(limit);
                Stream.of(ReflectionUtils.getAllDeclaredMethods(type))
                        .filter(candidate -> candidate.getName().equals(use.fallback))
                        .forEach(candidate -> hints.registerMethod(candidate, ExecutableMode.INVOKE));
                use.expressions.forEach(expression -> register(hints, limit.method(), expression));
            }
        }

        private void register(ReflectionHints hints, Method method, String expression) {
            // A parameter may be the key, and a record, of which every component is read.
            Stream.of(method.getParameterTypes()).forEach(parameter -> registerMethods(hints, parameter));
            if (expression.contains(".")) {
                TYPES.registerReflectionHints(hints, method.getGenericParameterTypes());
                registerMethods(hints, type);
                if (expression.contains("#result")) {
                    TYPES.registerReflectionHints(hints, method.getGenericReturnType());
                    registerResult(hints, ResolvableType.forMethodReturnType(method));
                }
            }
            Matcher bean = BEAN.matcher(expression);
            while (bean.find()) {
                Class<?> named = beans.containsBean(bean.group(1)) ? beans.getType(bean.group(1), false) : null;
                if (named != null) {
                    registerMethods(hints, ClassUtils.getUserClass(named));
                }
            }
        }

        /** A result, or the content of a future, a reactive type or a collection. */
        private static void registerResult(ReflectionHints hints, ResolvableType result) {
            if (result.resolve() != null) {
                registerMethods(hints, result.toClass());
            }
            Stream.of(result.getGenerics()).forEach(part -> registerResult(hints, part));
        }

        private static void registerMethods(ReflectionHints hints, Class<?> called) {
            hints.registerType(called, MemberCategory.INVOKE_PUBLIC_METHODS);
        }

        /** Annotation and properties, or the annotation alone where the build does not know the value of a placeholder. */
        private Use use(Declaration limit) {
            Environment environment = beans.getBean(Environment.class);
            try {
                RateLimitProperties properties =
                        Binder.get(environment).bindOrCreate("rate-limit", RateLimitProperties.class);
                ResolvedLimit use = ResolvedLimit.ofUse(
                        properties.limitSettings(),
                        limit.name(environment::resolvePlaceholders),
                        limit.place(),
                        limit.properties(environment::resolvePlaceholders));
                return new Use(
                        use.text(LimitProperty.FALLBACK),
                        EXPRESSIONS.stream()
                                .map(use::text)
                                .filter(Objects::nonNull)
                                .toList());
            } catch (BindException | InvalidRateLimitException ex) {
                return new Use(
                        limit.annotation().getString("fallback"),
                        EXPRESSIONS.stream()
                                .map(expression -> limit.annotation().getString(expression.label()))
                                .toList());
            }
        }
    }

    /** The members of one limit that are reached by reflection. */
    private record Use(@Nullable String fallback, List<String> expressions) {}
}
