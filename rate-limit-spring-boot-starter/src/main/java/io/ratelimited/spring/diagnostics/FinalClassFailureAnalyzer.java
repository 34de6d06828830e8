package io.ratelimited.spring.diagnostics;

import io.ratelimited.spring.internals.aop.BeanTypes;
import io.ratelimited.spring.internals.aop.Declarations;
import java.lang.reflect.Modifier;
import org.jspecify.annotations.Nullable;
import org.springframework.aop.framework.AopConfigException;
import org.springframework.beans.factory.BeanCreationException;
import org.springframework.beans.factory.BeanFactory;
import org.springframework.boot.diagnostics.AbstractFailureAnalyzer;
import org.springframework.boot.diagnostics.FailureAnalysis;

/** Explains why a final class with limited methods gets no proxy. A Kotlin class is final unless it is declared open. */
final class FinalClassFailureAnalyzer extends AbstractFailureAnalyzer<AopConfigException> {

    private final BeanFactory beans;

    FinalClassFailureAnalyzer(BeanFactory beans) {
        this.beans = beans;
    }

    @Override
    protected @Nullable FailureAnalysis analyze(Throwable rootFailure, AopConfigException cause) {
        String bean = null;
        for (Throwable failure = rootFailure; failure != null && failure != cause; failure = failure.getCause()) {
            bean = failure instanceof BeanCreationException creation ? creation.getBeanName() : bean;
        }
        Class<?> type = bean == null || !beans.containsBean(bean) ? null : beans.getType(bean, false);
        if (type == null) {
            return null;
        }
        return Modifier.isFinal(type.getModifiers())
                ? BeanTypes.methods(type).stream()
                        .flatMap(method -> Declarations.of(method, type).stream())
                        .findFirst()
                        .map(limited -> new FailureAnalysis(
                                limited.place() + ": class " + type.getName()
                                        + " is final, so Spring's proxies cannot intercept it",
                                "Make the class open (Kotlin: with the plugin kotlin-spring), let it implement an"
                                        + " interface and set spring.aop.proxy-target-class: false, or weave"
                                        + " (rate-limit.aspect.mode: woven). [RL-108]",
                                cause))
                        .orElse(null)
                : null;
    }
}
