package io.ratelimited.spring.internals.web;

import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.spring.internals.text.LogText;
import java.lang.reflect.Method;
import org.jspecify.annotations.Nullable;
import org.springframework.context.ApplicationContext;
import org.springframework.http.MediaType;
import org.springframework.util.ClassUtils;
import org.springframework.web.method.ControllerAdviceBean;
import org.springframework.web.method.annotation.ExceptionHandlerMappingInfo;
import org.springframework.web.method.annotation.ExceptionHandlerMethodResolver;

/**
 * Warns when the application has started of advice for {@code Exception} or another supertype that answers rejections, where no
 * advice before it is made for them.
 */
public final class CatchAllCheck {

    private static final LogText.Lines LOG = LogText.lines(CatchAllCheck.class);

    private CatchAllCheck() {}

    /** Looks at the advice of a context. */
    public static void check(ApplicationContext context, RouteLimits limits) {
        if (limits.isIdle()) {
            return;
        }
        for (ControllerAdviceBean advice : ControllerAdviceBean.findAnnotatedBeans(context)) {
            Class<?> type = advice.getBeanType();
            ExceptionHandlerMappingInfo first = type == null ? null : ofRejections(type);
            if (first != null) {
                if (!first.getExceptionTypes().contains(RateLimitExceededException.class)) {
                    warnOf(first.getHandlerMethod());
                }
                return;
            }
        }
    }

    /** None for methods that Spring cannot read either: it says so when it looks for one itself. */
    private static @Nullable ExceptionHandlerMappingInfo ofRejections(Class<?> advice) {
        try {
            return new ExceptionHandlerMethodResolver(advice)
                    .resolveExceptionMappingByExceptionType(RateLimitExceededException.class, MediaType.ALL);
        } catch (RuntimeException | LinkageError ex) {
            LOG.debug("The exception handlers of " + advice.getName() + " are not known", ex);
            return null;
        }
    }

    private static void warnOf(Method handler) {
        String advice = ClassUtils.getShortName(handler.getDeclaringClass());
        LOG.warn("Rejected calls get the response of " + advice + "." + handler.getName()
                + " instead of a 429 response: it"
                + " handles every exception. Add an @ExceptionHandler method for RateLimitExceededException to "
                + advice
                + " that throws it again. [RL-233]");
    }
}
