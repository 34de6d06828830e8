package io.ratelimited.spring.web.reactive;

import io.ratelimited.spring.aop.LimitedTypes;
import io.ratelimited.spring.web.Refusal;
import java.lang.reflect.Method;
import java.util.List;
import java.util.Objects;
import java.util.stream.Stream;
import org.aopalliance.intercept.MethodInterceptor;
import org.aopalliance.intercept.MethodInvocation;
import org.jspecify.annotations.Nullable;
import org.springframework.aop.support.AopUtils;
import org.springframework.aop.support.StaticMethodMatcherPointcutAdvisor;
import org.springframework.core.annotation.AnnotatedElementUtils;
import org.springframework.http.HttpStatus;
import org.springframework.stereotype.Controller;
import org.springframework.web.bind.annotation.ExceptionHandler;

/**
 * Keeps refusals from exception handlers of a limited controller that are not made for them: throws the refusal instead.
 * What a method throws that returns a plain value goes to such a handler inside Spring's adapter, before anything else
 * sees it. But the handler is called on the proxy that the controller has for its limits. A controller without limits
 * gets no proxy for this. Thread-safe.
 */
public final class ControllerHandlersAdvisor extends StaticMethodMatcherPointcutAdvisor implements MethodInterceptor {

    private static final long serialVersionUID = 1L;

    public ControllerHandlersAdvisor() {
        setAdvice(this);
        setClassFilter(
                type -> LimitedTypes.contains(type) && AnnotatedElementUtils.hasAnnotation(type, Controller.class));
        setOrder(HIGHEST_PRECEDENCE);
    }

    @Override
    public boolean matches(Method method, Class<?> targetClass) {
        return AnnotatedElementUtils.hasAnnotation(
                AopUtils.getMostSpecificMethod(method, targetClass), ExceptionHandler.class);
    }

    @Override
    public @Nullable Object invoke(MethodInvocation handler) throws Throwable {
        Refusal refusal = refusalIn(handler.getArguments());
        if (refusal != null && !isFor(refusal, handler.getMethod())) {
            throw refusal.exception();
        }
        return handler.proceed();
    }

    private static @Nullable Refusal refusalIn(@Nullable Object[] arguments) {
        return Stream.of(arguments)
                .filter(Throwable.class::isInstance)
                .map(failure -> Refusal.in((Throwable) failure, HttpStatus.TOO_MANY_REQUESTS.value()))
                .filter(Objects::nonNull)
                .findFirst()
                .orElse(null);
    }

    /** As Spring reads it: the types of the annotation, or, if it has none, of the parameters. */
    private static boolean isFor(Refusal refusal, Method handler) {
        ExceptionHandler annotation = AnnotatedElementUtils.findMergedAnnotation(handler, ExceptionHandler.class);
        Class<?>[] types =
                annotation == null || annotation.value().length == 0 ? handler.getParameterTypes() : annotation.value();
        return List.of(types).contains(refusal.exception().getClass());
    }
}
