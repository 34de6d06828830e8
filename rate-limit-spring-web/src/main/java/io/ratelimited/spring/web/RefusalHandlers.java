package io.ratelimited.spring.web;

import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.spring.text.LogText;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.springframework.context.ApplicationContext;
import org.springframework.http.MediaType;
import org.springframework.util.ClassUtils;
import org.springframework.util.function.SingletonSupplier;
import org.springframework.web.bind.annotation.ControllerAdvice;
import org.springframework.web.method.ControllerAdviceBean;
import org.springframework.web.method.annotation.ExceptionHandlerMappingInfo;
import org.springframework.web.method.annotation.ExceptionHandlerMethodResolver;

/**
 * The {@code @ExceptionHandler} methods of the application: one that names {@link RateLimitExceededException} answers
 * refusals, one for {@code Exception} or the like does not. Both stacks choose methods alike. Thread-safe.
 */
public final class RefusalHandlers {

    private static final LogText.Lines LOG = LogText.lines(RefusalHandlers.class);

    private final ApplicationContext context;
    private final Supplier<Map<ControllerAdviceBean, ExceptionHandlerMethodResolver>> advice;
    private final Map<Class<?>, Optional<ExceptionHandlerMethodResolver>> controllers = new ConcurrentHashMap<>();

    public RefusalHandlers(ApplicationContext context) {
        this.context = context;
        this.advice = SingletonSupplier.of(this::advice);
    }

    private Map<ControllerAdviceBean, ExceptionHandlerMethodResolver> advice() {
        Map<ControllerAdviceBean, ExceptionHandlerMethodResolver> found = new LinkedHashMap<>();
        for (ControllerAdviceBean bean : ControllerAdviceBean.findAnnotatedBeans(context)) {
            Class<?> type = bean.getBeanType();
            if (type != null) {
                methods(type).ifPresent(methods -> found.put(bean, methods));
            }
        }
        return found;
    }

    /** None for methods that Spring cannot read either: it says so when it looks for one itself. */
    private static Optional<ExceptionHandlerMethodResolver> methods(Class<?> type) {
        try {
            return Optional.of(new ExceptionHandlerMethodResolver(type));
        } catch (RuntimeException | LinkageError ex) {
            LOG.debug("The exception handlers of " + type.getName() + " are not known", ex);
            return Optional.empty();
        }
    }

    /**
     * Returns whether the application answers a refusal itself: the method that Spring would choose for the failure names
     * its type.
     *
     * @param failure the refusal, or a failure that it caused
     * @param controller whose method has failed; null where no controller was called
     * @param accept the {@code Accept} field of the request
     */
    public boolean areFor(Refusal refusal, Throwable failure, @Nullable Class<?> controller, @Nullable String accept) {
        Class<?> type = controller == null ? null : ClassUtils.getUserClass(controller);
        Stream<ExceptionHandlerMethodResolver> own =
                type == null ? Stream.empty() : controllers.computeIfAbsent(type, RefusalHandlers::methods).stream();
        Stream<ExceptionHandlerMethodResolver> global = advice.get().entrySet().stream()
                .filter(entry -> entry.getKey().isApplicableToBeanType(type))
                .map(Map.Entry::getValue);
        return Stream.concat(own, global)
                .map(methods -> chosen(methods, failure, accept))
                .flatMap(Optional::stream)
                .findFirst()
                .filter(method ->
                        method.getExceptionTypes().contains(refusal.exception().getClass()))
                .isPresent();
    }

    private static Optional<ExceptionHandlerMappingInfo> chosen(
            ExceptionHandlerMethodResolver methods, Throwable failure, @Nullable String accept) {
        for (MediaType type : Refusal.accepted(accept)) {
            ExceptionHandlerMappingInfo method = methods.resolveExceptionMapping(failure, type);
            if (method != null) {
                return Optional.of(method);
            }
        }
        return Optional.empty();
    }

    /**
     * Returns whether an advice names refusals. Looks at classes alone, so that it can be asked while advice is being
     * sorted.
     *
     * @param ours the advice that is left out
     */
    public boolean areInAdvice(Class<?> ours) {
        return Stream.of(context.getBeanNamesForAnnotation(ControllerAdvice.class))
                .map(context::getType)
                .flatMap(Stream::ofNullable)
                .filter(type -> type != ours)
                .map(RefusalHandlers::methods)
                .flatMap(Optional::stream)
                .map(methods ->
                        methods.resolveExceptionMappingByExceptionType(RateLimitExceededException.class, MediaType.ALL))
                .anyMatch(method ->
                        method != null && method.getExceptionTypes().contains(RateLimitExceededException.class));
    }
}
