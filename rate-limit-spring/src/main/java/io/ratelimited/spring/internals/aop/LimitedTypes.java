package io.ratelimited.spring.internals.aop;

import io.ratelimited.spring.RateLimited;
import java.lang.annotation.Annotation;
import java.lang.reflect.Method;
import org.springframework.core.annotation.MergedAnnotation;
import org.springframework.core.annotation.MergedAnnotations;
import org.springframework.core.annotation.MergedAnnotations.SearchStrategy;
import org.springframework.core.annotation.RepeatableContainers;
import org.springframework.util.ClassUtils;
import org.springframework.util.ReflectionUtils;

/**
 * Finds classes that have {@link RateLimited} anywhere: on themselves, on a method, or on types that they extend or
 * implement, directly or on another annotation. The start asks about every class of the application, and most have no limit:
 * so each class, interface and annotation is looked at only once.
 */
public final class LimitedTypes {

    private static final ClassValue<Boolean> TYPES = new ClassValue<>() {
        @Override
        protected Boolean computeValue(Class<?> type) {
            return find(type);
        }
    };

    private static final ClassValue<Boolean> ANNOTATIONS = new ClassValue<>() {
        @Override
        protected Boolean computeValue(Class<?> type) {
            return type == RateLimited.class
                    || holdsLimits(type)
                    || MergedAnnotations.from(type, SearchStrategy.DIRECT, RepeatableContainers.standardRepeatables())
                            .isPresent(RateLimited.class);
        }
    };

    private LimitedTypes() {}

    /**
     * Returns whether an annotation is made of others that limit: the container of one that stands on an element several
     * times.
     */
    private static boolean holdsLimits(Class<?> annotation) {
        Method value = ClassUtils.getMethodIfAvailable(annotation, MergedAnnotation.VALUE);
        Class<?> held = value == null ? null : value.getReturnType().getComponentType();
        return held != null && held.isAnnotation() && ANNOTATIONS.get(held);
    }

    /** Returns whether methods of a class may have limits; false is certain. */
    public static boolean contains(Class<?> type) {
        return TYPES.get(type);
    }

    private static boolean find(Class<?> type) {
        if (type == Object.class) {
            return false;
        }
        Class<?> superclass = type.getSuperclass();
        if (superclass != null && contains(superclass)) {
            return true;
        }
        for (Class<?> implemented : type.getInterfaces()) {
            if (contains(implemented)) {
                return true;
            }
        }
        return declares(type);
    }

    private static boolean declares(Class<?> type) {
        try {
            if (isLimit(type.getDeclaredAnnotations())) {
                return true;
            }
            for (Method method : ReflectionUtils.getDeclaredMethods(type)) {
                if (isLimit(method.getDeclaredAnnotations())) {
                    return true;
                }
            }
            return false;
        } catch (IllegalStateException | LinkageError | ArrayStoreException ex) {
            return true; // what cannot be read, such as a class of a missing dependency, may have limits
        }
    }

    private static boolean isLimit(Annotation[] annotations) {
        for (Annotation annotation : annotations) {
            if (ANNOTATIONS.get(annotation.annotationType())) {
                return true;
            }
        }
        return false;
    }
}
