package io.ratelimited.spring.internals.aop;

import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.TypeVariable;
import java.util.Arrays;
import java.util.stream.Stream;
import org.aopalliance.intercept.MethodInvocation;
import org.jspecify.annotations.Nullable;
import org.springframework.core.KotlinDetector;
import org.springframework.core.ResolvableType;
import org.springframework.util.ClassUtils;
import org.springframework.util.ReflectionUtils;

/**
 * Functions that override one of a generic type whose type argument is a number or a value class. Kotlin compiles {@code
 * find(id: Long)} of a {@code Store<Long>} to {@code find(long)}, and {@code find(id: UserId)} to {@code find-3Nx1tcw(String)},
 * where the {@code Store} has {@code find(Object)}: for the JVM these are other methods, and a bridge calls one for the other.
 */
final class KotlinOverrides {

    /** The method by which an object of a value class returns its value; null for other classes. */
    private static final ClassValue<@Nullable Method> UNBOX = new ClassValue<>() {
        @Override
        protected @Nullable Method computeValue(Class<?> type) {
            return KotlinDetector.isKotlinType(type) ? ReflectionUtils.findMethod(type, "unbox-impl") : null;
        }
    };

    private KotlinOverrides() {}

    /** The methods that a function overrides or implements for a class although they have other parameters or another name. */
    static Stream<Method> of(Method method, Class<?> userClass) {
        return KotlinDetector.isKotlinType(method.getDeclaringClass()) && !method.isBridge()
                ? inherited(userClass)
                        .filter(declared -> !isSameForJvm(method, declared) && overrides(userClass, method, declared))
                : Stream.empty();
    }

    /**
     * The function that a bridge calls; null for other methods. Spring compares names and classes as the JVM does, and may find
     * an overload.
     */
    static @Nullable Method behind(Method bridge, Class<?> userClass) {
        return bridge.isBridge() && KotlinDetector.isKotlinType(bridge.getDeclaringClass())
                ? Stream.of(ReflectionUtils.getUniqueDeclaredMethods(userClass))
                        .filter(method -> of(method, userClass).anyMatch(declared -> isSameForJvm(bridge, declared)))
                        .findFirst()
                        .orElse(null)
                : null;
    }

    /** The arguments of a call as a function takes them: a bridge takes objects where the function behind it takes values. */
    static @Nullable Object[] arguments(MethodInvocation call, Method function) {
        @Nullable Object[] given = call.getArguments();
        if (call.getMethod().getName().equals(function.getName())) {
            return given;
        }
        @Nullable Object[] arguments = given.clone();
        Class<?>[] types = function.getParameterTypes();
        for (int i = 0; i < arguments.length; i++) {
            Object argument = arguments[i];
            Method unbox = argument == null ? null : UNBOX.get(argument.getClass());
            if (unbox != null && unbox.getReturnType() == types[i]) {
                ReflectionUtils.makeAccessible(unbox);
                arguments[i] = ReflectionUtils.invokeMethod(unbox, argument);
            }
        }
        return arguments;
    }

    private static Stream<Method> inherited(Class<?> userClass) {
        Class<?> superclass = userClass.getSuperclass();
        return Stream.concat(
                        superclass == null
                                ? Stream.empty()
                                : Stream.of(ReflectionUtils.getAllDeclaredMethods(superclass)),
                        ClassUtils.getAllInterfacesForClassAsSet(userClass).stream()
                                .flatMap(type -> Stream.of(type.getMethods())))
                .filter(method -> !method.isBridge()
                        && Modifier.isPublic(method.getModifiers())
                        && !Modifier.isStatic(method.getModifiers()));
    }

    private static boolean isSameForJvm(Method one, Method other) {
        return one.getName().equals(other.getName())
                && Arrays.equals(one.getParameterTypes(), other.getParameterTypes());
    }

    private static boolean overrides(Class<?> userClass, Method method, Method declared) {
        if (method.getParameterCount() != declared.getParameterCount()
                || !KotlinNames.of(method).equals(KotlinNames.of(declared))) {
            return false;
        }
        boolean renamed = !method.getName().equals(declared.getName());
        for (int i = 0; i < method.getParameterCount(); i++) {
            Class<?> type =
                    ResolvableType.forMethodParameter(declared, i, userClass).toClass();
            Class<?> own =
                    ResolvableType.forMethodParameter(method, i, userClass).toClass();
            boolean generic = declared.getGenericParameterTypes()[i] instanceof TypeVariable;
            if (type != own && !(generic && (isNumber(own, type) || (renamed && isValue(own, type))))) {
                return false;
            }
        }
        return !renamed || hasBridge(userClass, declared);
    }

    private static boolean isNumber(Class<?> own, Class<?> argument) {
        return ClassUtils.resolvePrimitiveIfNecessary(own) == argument;
    }

    /** Returns whether a class is that of the value of a value class. */
    static boolean isValue(Class<?> own, Class<?> argument) {
        Method unbox = UNBOX.get(argument);
        return unbox != null && unbox.getReturnType() == own;
    }

    /** Functions have the same name in Kotlin and other names for the JVM although none overrides the other, too. */
    private static boolean hasBridge(Class<?> userClass, Method declared) {
        Method own = ReflectionUtils.findMethod(userClass, declared.getName(), declared.getParameterTypes());
        return own != null && own.isBridge();
    }
}
