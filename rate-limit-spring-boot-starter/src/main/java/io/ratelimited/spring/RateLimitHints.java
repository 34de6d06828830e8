package io.ratelimited.spring;

import java.lang.reflect.Method;
import java.util.LinkedHashSet;
import java.util.Set;
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
import org.springframework.beans.factory.support.RegisteredBean;
import org.springframework.core.annotation.MergedAnnotation;
import org.springframework.core.annotation.MergedAnnotations;
import org.springframework.core.annotation.MergedAnnotations.SearchStrategy;
import org.springframework.util.ClassUtils;
import org.springframework.util.ReflectionUtils;

/**
 * What limits reach by reflection, for applications that are processed ahead of time: the words of expressions, the
 * types of parameters that expressions look into, and fallbacks; and the scripts of Redis. A fallback or expression
 * that only {@code application.yml} names is not known then.
 */
final class RateLimitHints implements RuntimeHintsRegistrar, BeanRegistrationAotProcessor {

    private static final BindingReflectionHintsRegistrar TYPES = new BindingReflectionHintsRegistrar();

    @Override
    public void registerHints(RuntimeHints hints, @Nullable ClassLoader classLoader) {
        hints.reflection().registerType(CallRoot.class, MemberCategory.INVOKE_PUBLIC_METHODS);
        hints.resources().registerPattern("io/ratelimited/redis/*.lua");
    }

    @Override
    public @Nullable BeanRegistrationAotContribution processAheadOfTime(RegisteredBean bean) {
        Class<?> type = ClassUtils.getUserClass(bean.getBeanClass());
        Set<Method> limited = new LinkedHashSet<>();
        ReflectionUtils.doWithMethods(type, limited::add, method -> LimitedMethods.isLimited(method, type));
        return limited.isEmpty() ? null : new Contribution(type, limited);
    }

    private record Contribution(Class<?> type, Set<Method> limited) implements BeanRegistrationAotContribution {

        @Override
        public void applyTo(GenerationContext generation, BeanRegistrationCode code) {
            ReflectionHints hints = generation.getRuntimeHints().reflection();
            for (Method method : limited) {
                annotations(method).forEach(annotation -> register(hints, method, annotation));
            }
        }

        private Stream<MergedAnnotation<RateLimited>> annotations(Method method) {
            return Stream.of(method, type)
                    .flatMap(element ->
                            MergedAnnotations.from(element, SearchStrategy.TYPE_HIERARCHY).stream(RateLimited.class));
        }

        private void register(ReflectionHints hints, Method method, MergedAnnotation<RateLimited> annotation) {
            String fallback = annotation.getString("fallback");
            for (Method candidate : ReflectionUtils.getAllDeclaredMethods(type)) {
                if (candidate.getName().equals(fallback)) {
                    hints.registerMethod(candidate, ExecutableMode.INVOKE);
                }
            }
            boolean looksInside = Stream.of("key", "permits", "when", "tier")
                    .anyMatch(attribute -> annotation.getString(attribute).contains("."));
            if (looksInside) {
                TYPES.registerReflectionHints(hints, method.getGenericParameterTypes());
            }
        }
    }
}
