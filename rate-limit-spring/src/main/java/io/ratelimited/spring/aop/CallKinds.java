package io.ratelimited.spring.aop;

import io.ratelimited.core.RateLimiter.Callbacks;
import io.ratelimited.spring.call.Admission;
import io.ratelimited.spring.call.AsyncCalls;
import java.lang.reflect.Method;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import org.aopalliance.intercept.MethodInvocation;
import org.jspecify.annotations.Nullable;
import org.springframework.core.GenericTypeResolver;
import org.springframework.core.KotlinDetector;
import org.springframework.util.ClassUtils;

/** Finds the kind of the calls of a method, by its return type. */
final class CallKinds {

    private static final boolean REACTOR = isPresent("reactor.core.publisher.Mono");
    private static final boolean COROUTINES = REACTOR && isPresent("kotlinx.coroutines.reactor.MonoKt");

    private CallKinds() {}

    /**
     * The kind of the calls of a method.
     *
     * @param targetClass which may say what a type variable of the return type is
     * @throws IllegalStateException for a suspend function in an application that cannot call one through a proxy
     */
    static LimitedMethod.Kind of(Method method, Class<?> targetClass) {
        Class<?> type = GenericTypeResolver.resolveReturnType(method, targetClass);
        if (CompletionStage.class.isAssignableFrom(type) && type.isAssignableFrom(CompletableFuture.class)) {
            return CallKinds::invokeAsync;
        }
        if (KotlinDetector.isSuspendingFunction(method)) {
            if (!COROUTINES) {
                throw new IllegalStateException("suspend function " + method.toGenericString()
                        + " cannot be limited without org.jetbrains.kotlinx:kotlinx-coroutines-reactor; add it");
            }
            return ReactiveCalls.ofSuspending(method);
        }
        boolean value = type == void.class || ClassUtils.isSimpleValueType(type);
        LimitedMethod.@Nullable Kind reactive = REACTOR && !value ? ReactiveCalls.of(type) : null;
        return reactive == null ? LimitedMethod.Kind.BLOCKING : reactive;
    }

    /** A failed result of a reactive type; null for other types. */
    static @Nullable Object failed(Class<?> returnType, RuntimeException failure) {
        return REACTOR ? ReactiveCalls.failed(returnType, failure) : null;
    }

    private static @Nullable Object invokeAsync(LimitedMethod method, MethodInvocation call) throws Throwable {
        CompletableFuture<Admission> entered;
        try {
            entered = method.reserveAsync(call, method.currentRequest(), Callbacks.MAY_BLOCK);
        } catch (RuntimeException ex) {
            return CompletableFuture.failedFuture(ex);
        }
        return AsyncCalls.<@Nullable Object>run(
                entered,
                method.enforcer(),
                () -> cast(call.proceed()),
                refusal -> stage(method.refused(call, refusal)));
    }

    private static CompletionStage<@Nullable Object> stage(@Nullable Object value) {
        CompletionStage<@Nullable Object> stage = value instanceof CompletionStage<?> ? cast(value) : null;
        return stage == null ? CompletableFuture.completedFuture(value) : stage.toCompletableFuture();
    }

    @SuppressWarnings("unchecked")
    private static @Nullable CompletionStage<@Nullable Object> cast(@Nullable Object stage) {
        return (CompletionStage<@Nullable Object>) stage;
    }

    private static boolean isPresent(String className) {
        return ClassUtils.isPresent(className, CallKinds.class.getClassLoader());
    }
}
