package io.ratelimited.spring.aop;

import io.ratelimited.spring.call.AsyncCalls;
import java.lang.reflect.Method;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import org.jspecify.annotations.Nullable;
import org.springframework.core.KotlinDetector;
import org.springframework.util.ClassUtils;

/** How calls are made, by the return type of the method. */
final class CallKinds {

    private static final boolean REACTOR = isPresent("reactor.core.publisher.Mono");
    private static final boolean COROUTINES = REACTOR && isPresent("kotlinx.coroutines.reactor.MonoKt");

    private CallKinds() {}

    /**
     * The style of a method.
     *
     * @throws IllegalStateException for a suspend function in an application that cannot call one through a proxy
     */
    static LimitedMethod.CallStyle of(Method method) {
        Class<?> type = method.getReturnType();
        if (CompletionStage.class.isAssignableFrom(type) && type.isAssignableFrom(CompletableFuture.class)) {
            return AsyncCalls::invoke;
        }
        if (KotlinDetector.isSuspendingFunction(method)) {
            if (!COROUTINES) {
                throw new IllegalStateException("suspend function " + method.toGenericString()
                        + " cannot be limited without org.jetbrains.kotlinx:kotlinx-coroutines-reactor; add it");
            }
            return ReactiveCalls.ofSuspending(method);
        }
        LimitedMethod.@Nullable CallStyle reactive = REACTOR ? ReactiveCalls.of(type) : null;
        return reactive == null ? LimitedMethod.CallStyle.BLOCKING : reactive;
    }

    private static boolean isPresent(String className) {
        return ClassUtils.isPresent(className, CallKinds.class.getClassLoader());
    }
}
