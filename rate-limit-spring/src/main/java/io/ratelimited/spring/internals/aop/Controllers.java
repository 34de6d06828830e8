package io.ratelimited.spring.internals.aop;

import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.List;
import org.springframework.core.annotation.MergedAnnotations;
import org.springframework.core.annotation.MergedAnnotations.SearchStrategy;
import org.springframework.stereotype.Controller;

/**
 * Finds the methods of a controller that handle requests: an annotation on the class limits only these. For the same
 * request Spring also calls others, such as {@code @InitBinder} and {@code @ModelAttribute} methods. Annotations are known
 * by name, because their modules are optional.
 */
public final class Controllers {

    private static final List<String> OF_REQUESTS = List.of(
            "org.springframework.web.bind.annotation.RequestMapping",
            "org.springframework.web.service.annotation.HttpExchange");

    private static final List<String> OF_MESSAGES = List.of(
            "org.springframework.messaging.handler.annotation.MessageMapping",
            "org.springframework.messaging.simp.annotation.SubscribeMapping",
            "org.springframework.messaging.rsocket.annotation.ConnectMapping",
            "org.springframework.messaging.rsocket.service.RSocketExchange",
            "org.springframework.graphql.data.method.annotation.SchemaMapping",
            "org.springframework.graphql.data.method.annotation.BatchMapping",
            "org.springframework.graphql.data.federation.EntityMapping");

    private static final List<String> OF_ASSISTANTS = List.of(
            "org.springframework.web.bind.annotation.InitBinder",
            "org.springframework.web.bind.annotation.ModelAttribute",
            "org.springframework.web.bind.annotation.ExceptionHandler",
            "org.springframework.messaging.handler.annotation.MessageExceptionHandler",
            "org.springframework.graphql.data.method.annotation.GraphQlExceptionHandler");

    /** A controller without a known mapping is mapped in another way: each of its methods may be a handler. */
    private static final ClassValue<Boolean> HAS_HANDLERS = new ClassValue<>() {
        @Override
        protected Boolean computeValue(Class<?> type) {
            return MergedAnnotations.from(type, SearchStrategy.TYPE_HIERARCHY).isPresent(Controller.class)
                    && BeanTypes.methods(type).stream().anyMatch(Controllers::isMapped);
        }
    };

    private Controllers() {}

    /** Returns whether a class is a controller whose handler methods are known. */
    public static boolean hasHandlers(Class<?> type) {
        return HAS_HANDLERS.get(type);
    }

    /**
     * Returns whether an annotation on the class limits a method: it limits handlers of any visibility, or public methods if
     * there are none.
     */
    static boolean isLimitedByClass(Method method, Class<?> type) {
        return hasHandlers(type) ? isMapped(method) : Modifier.isPublic(method.getModifiers());
    }

    /** Returns whether Spring calls a method of a controller before or after a handler method, for the same request or message. */
    public static boolean assistsHandler(Method method) {
        return isAny(method, OF_ASSISTANTS);
    }

    /**
     * Returns whether a method answers a whole web request: one request may call many methods for messages and GraphQL
     * fields.
     */
    static boolean answersRequest(Method method) {
        return isAny(method, OF_REQUESTS);
    }

    private static boolean isMapped(Method method) {
        return isAny(method, OF_REQUESTS) || isAny(method, OF_MESSAGES);
    }

    private static boolean isAny(Method method, List<String> names) {
        MergedAnnotations annotations = MergedAnnotations.from(method, SearchStrategy.TYPE_HIERARCHY);
        return names.stream().anyMatch(annotations::isPresent);
    }
}
