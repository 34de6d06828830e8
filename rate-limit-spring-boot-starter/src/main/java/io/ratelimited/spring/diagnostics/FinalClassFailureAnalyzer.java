package io.ratelimited.spring.diagnostics;

import io.ratelimited.spring.aop.BeanTypes;
import io.ratelimited.spring.aop.Declarations;
import java.lang.reflect.Modifier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.springframework.aop.framework.AopConfigException;
import org.springframework.boot.diagnostics.AbstractFailureAnalyzer;
import org.springframework.boot.diagnostics.FailureAnalysis;
import org.springframework.util.ClassUtils;

/** Explains why a final class with limited methods gets no proxy. A Kotlin class is final unless it is declared open. */
final class FinalClassFailureAnalyzer extends AbstractFailureAnalyzer<AopConfigException> {

    private static final Pattern CLASS = Pattern.compile("CGLIB subclass of class ([^\\s:]+)");

    @Override
    protected @Nullable FailureAnalysis analyze(Throwable rootFailure, AopConfigException cause) {
        Matcher matcher = CLASS.matcher(String.valueOf(cause.getMessage()));
        if (!matcher.find()) {
            return null;
        }
        Class<?> type = ClassUtils.resolveClassName(matcher.group(1), null);
        return Modifier.isFinal(type.getModifiers())
                ? BeanTypes.methods(type).stream()
                        .flatMap(method -> Declarations.of(method, type).stream())
                        .findFirst()
                        .map(limited -> new FailureAnalysis(
                                limited.place() + ": class " + type.getName()
                                        + " is final, so that Spring's proxies cannot limit calls of it",
                                "Make the class open (Kotlin: with the plugin kotlin-spring), let it implement an"
                                        + " interface and set spring.aop.proxy-target-class: false, or weave"
                                        + " (rate-limit.aspect.mode: woven). [RL-108]",
                                cause))
                        .orElse(null)
                : null;
    }
}
