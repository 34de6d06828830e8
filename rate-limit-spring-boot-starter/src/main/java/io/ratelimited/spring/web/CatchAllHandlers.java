package io.ratelimited.spring.web;

import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.spring.limit.LimitRegistry;
import java.lang.reflect.Method;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.SmartInitializingSingleton;
import org.springframework.context.ApplicationContext;
import org.springframework.http.MediaType;
import org.springframework.stereotype.Controller;
import org.springframework.util.ClassUtils;
import org.springframework.web.method.ControllerAdviceBean;
import org.springframework.web.method.annotation.ExceptionHandlerMappingInfo;
import org.springframework.web.method.annotation.ExceptionHandlerMethodResolver;

/**
 * Warns of exception handlers of the application that would answer refusals as they answer failures: methods for {@code
 * Exception} or the like that win where no method is for refusals. Both stacks choose handlers alike.
 */
public final class CatchAllHandlers implements SmartInitializingSingleton {

    private static final Log LOG = LogFactory.getLog(CatchAllHandlers.class);

    private final ApplicationContext context;
    private final LimitRegistry limits;

    public CatchAllHandlers(ApplicationContext context, LimitRegistry limits) {
        this.context = context;
        this.limits = limits;
    }

    @Override
    public void afterSingletonsInstantiated() {
        if (!limits.all().isEmpty()) {
            find().forEach(CatchAllHandlers::warn);
        }
    }

    private Set<Method> find() {
        Map<ControllerAdviceBean, ExceptionHandlerMethodResolver> advice = new LinkedHashMap<>();
        for (ControllerAdviceBean bean : ControllerAdviceBean.findAnnotatedBeans(context)) {
            Class<?> type = bean.getBeanType();
            ExceptionHandlerMethodResolver methods = type == null ? null : methods(type);
            if (methods != null) {
                advice.put(bean, methods);
            }
        }
        Set<Method> found = new LinkedHashSet<>();
        // A request that a filter refuses has no controller.
        addAdvice(found, null, advice);
        for (String name : context.getBeanNamesForAnnotation(Controller.class)) {
            Class<?> bean = context.getType(name);
            if (bean != null) {
                Class<?> controller = ClassUtils.getUserClass(bean);
                ExceptionHandlerMethodResolver methods = methods(controller);
                if (methods == null || !add(found, methods)) {
                    addAdvice(found, controller, advice);
                }
            }
        }
        return found;
    }

    /** Null for handlers that cannot be meant: Spring reports them when it looks for one, and the start goes on. */
    private static @Nullable ExceptionHandlerMethodResolver methods(Class<?> type) {
        try {
            return new ExceptionHandlerMethodResolver(type);
        } catch (RuntimeException | LinkageError ex) {
            LOG.debug("The exception handlers of " + type.getName() + " are not known", ex);
            return null;
        }
    }

    /** The first advice that handles refusals of a controller at all is the one that does. */
    private static void addAdvice(
            Set<Method> found,
            @Nullable Class<?> controller,
            Map<ControllerAdviceBean, ExceptionHandlerMethodResolver> advice) {
        for (Map.Entry<ControllerAdviceBean, ExceptionHandlerMethodResolver> entry : advice.entrySet()) {
            if (entry.getKey().isApplicableToBeanType(controller) && add(found, entry.getValue())) {
                return;
            }
        }
    }

    /** Adds the method that handles refusals, if it is not made for them; false when there is none. */
    private static boolean add(Set<Method> found, ExceptionHandlerMethodResolver methods) {
        ExceptionHandlerMappingInfo handler =
                methods.resolveExceptionMappingByExceptionType(RateLimitExceededException.class, MediaType.ALL);
        if (handler == null) {
            return false;
        }
        if (!handler.getExceptionTypes().contains(RateLimitExceededException.class)) {
            found.add(handler.getHandlerMethod());
        }
        return true;
    }

    private static void warn(Method method) {
        String type = method.getDeclaringClass().getName();
        LOG.warn(Stream.of(method.getParameterTypes())
                        .map(Class::getSimpleName)
                        .collect(Collectors.joining(", ", type + "." + method.getName() + "(", ")"))
                + " also handles refusals of rate limits, and answers them as failures. Add a method to " + type
                + " that leaves them to the starter: @ExceptionHandler void refused(RateLimitExceededException refusal)"
                + " { throw refusal; }");
    }
}
