package io.ratelimited.spring.internals.aop;

import io.ratelimited.core.RateLimiter.Callbacks;
import io.ratelimited.spring.InvalidRateLimitException;
import io.ratelimited.spring.internals.aop.RateLimitAspect.LimitedCall;
import io.ratelimited.spring.internals.call.Admission;
import io.ratelimited.spring.internals.call.AsyncCalls;
import io.ratelimited.spring.internals.request.CurrentRequest;
import java.lang.reflect.AnnotatedElement;
import java.lang.reflect.Method;
import java.lang.reflect.Type;
import java.lang.reflect.TypeVariable;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Flow;
import java.util.stream.Stream;
import org.aopalliance.intercept.MethodInvocation;
import org.jspecify.annotations.Nullable;
import org.springframework.aop.Advisor;
import org.springframework.aop.Pointcut;
import org.springframework.aop.PointcutAdvisor;
import org.springframework.aop.ProxyMethodInvocation;
import org.springframework.aop.framework.Advised;
import org.springframework.aop.interceptor.AsyncExecutionInterceptor;
import org.springframework.core.GenericTypeResolver;
import org.springframework.core.KotlinDetector;
import org.springframework.core.ReactiveAdapter;
import org.springframework.core.ReactiveAdapterRegistry;
import org.springframework.core.annotation.MergedAnnotations;
import org.springframework.util.ClassUtils;

/** The kinds of calls, by the return type of the method: blocking, asynchronous, reactive. */
final class CallKinds {

    private static final boolean REACTOR = isPresent("reactor.core.publisher.Mono");
    private static final boolean COROUTINES = REACTOR && isPresent("kotlinx.coroutines.reactor.MonoKt");

    private static final String REACTOR_LIBRARY = "io.projectreactor:reactor-core";
    private static final String COROUTINES_LIBRARY = "org.jetbrains.kotlinx:kotlinx-coroutines-reactor";

    /** The annotations that Spring looks for if it is told no other: what can be seen where it does so in a proxy of its own. */
    private static final Set<String> ASYNC = Set.of(
            "org.springframework.scheduling.annotation.Async",
            "jakarta.ejb.Asynchronous",
            "jakarta.enterprise.concurrent.Asynchronous");

    /** Reactive types that the application may have without an adapter of Spring's. */
    private static final List<Class<?>> WITHOUT_ADAPTER = Stream.of(
                    "org.reactivestreams.Publisher",
                    Flow.Publisher.class.getName(),
                    "io.smallrye.mutiny.Uni",
                    "kotlinx.coroutines.flow.Flow",
                    "kotlinx.coroutines.Deferred")
            .filter(CallKinds::isPresent)
            .<Class<?>>map(name -> ClassUtils.resolveClassName(name, CallKinds.class.getClassLoader()))
            .toList();

    private CallKinds() {}

    /**
     * Makes the calls of a method: the method itself where they block their thread.
     *
     * @param targetClass the class that may resolve a type variable of the return type
     * @param place the origin of the first limit
     * @throws InvalidRateLimitException if its result comes later, in a way that a limit cannot follow: it would be taken for a value
     */
    static LimitedCall of(LimitedMethod limited, Class<?> targetClass, String place) {
        Method method = limited.method();
        Class<?> type = GenericTypeResolver.resolveReturnType(method, targetClass);
        if (CompletionStage.class.isAssignableFrom(type) && type.isAssignableFrom(CompletableFuture.class)) {
            return new FutureCalls(limited, isAsync(method) || isAsync(targetClass));
        }
        if (KotlinDetector.isSuspendingFunction(method)) {
            if (!COROUTINES) {
                throw unfollowed(limited, place, "is suspended", "Add " + COROUTINES_LIBRARY);
            }
            return ReactiveCalls.ofSuspending(limited);
        }
        if (type == void.class || ClassUtils.isSimpleValueType(type)) {
            return limited;
        }
        if (type == Object.class) {
            return new UntypedCalls(limited, place);
        }
        LimitedCall reactive = REACTOR ? ReactiveCalls.of(limited, type) : null;
        if (reactive != null) {
            return reactive;
        }
        if (isReactive(type)) {
            throw unfollowed(limited, place, "returns " + type.getTypeName(), remedy(type));
        }
        return limited;
    }

    private static boolean isReactive(Class<?> type) {
        ReactiveAdapter adapter = ReactiveAdapterRegistry.getSharedInstance().getAdapter(type);
        if (adapter != null) {
            return !CompletionStage.class.isAssignableFrom(adapter.getReactiveType());
        }
        for (Class<?> known : WITHOUT_ADAPTER) {
            if (known.isAssignableFrom(type)) {
                return true;
            }
        }
        return false;
    }

    private static String remedy(Class<?> type) {
        ReactiveAdapter adapter =
                REACTOR ? ReactiveAdapterRegistry.getSharedInstance().getAdapter(type) : null;
        if (adapter != null) {
            return "Declare that it returns " + adapter.getReactiveType().getCanonicalName();
        }
        boolean coroutines = WITHOUT_ADAPTER.stream()
                .anyMatch(known -> known.getName().startsWith("kotlinx.") && known.isAssignableFrom(type));
        return "Add " + (coroutines ? COROUTINES_LIBRARY : REACTOR_LIBRARY);
    }

    private static InvalidRateLimitException unfollowed(
            LimitedMethod limited, String place, String result, String remedy) {
        return new InvalidRateLimitException(
                limited.limits().get(0).limit().name(),
                place,
                "method " + KotlinNames.of(limited.method()) + " " + result
                        + ", which the limit cannot follow to its end",
                remedy + ". If its class has the annotation, you can also exempt it with @RateLimitExempt. [RL-118]");
    }

    /** A failed result of a reactive type; null for other types. */
    static @Nullable Object failed(Class<?> returnType, RuntimeException failure) {
        return REACTOR ? ReactiveCalls.failed(returnType, failure) : null;
    }

    private static boolean isAsync(AnnotatedElement element) {
        MergedAnnotations annotations =
                MergedAnnotations.from(element, MergedAnnotations.SearchStrategy.TYPE_HIERARCHY);
        return ASYNC.stream().anyMatch(annotations::isPresent);
    }

    private static boolean isPresent(String className) {
        return ClassUtils.isPresent(className, CallKinds.class.getClassLoader());
    }

    /** Returns whether the proxy that a call came through has passed it to an executor before the limit. */
    private static boolean isAsync(MethodInvocation call) {
        if (call instanceof DelegatedInvocation delegated) {
            return isAsync(delegated.call());
        }
        Object target = call.getThis();
        if (target != null
                && call instanceof ProxyMethodInvocation proxied
                && proxied.getProxy() instanceof Advised proxy) {
            for (Advisor advisor : proxy.getAdvisors()) {
                if (advisor instanceof RateLimitAdvisor) {
                    return false;
                }
                if (advisor.getAdvice() instanceof AsyncExecutionInterceptor
                        && advisor instanceof PointcutAdvisor asynchronous
                        && matches(asynchronous.getPointcut(), call.getMethod(), target.getClass())) {
                    return true;
                }
            }
        }
        return false;
    }

    private static boolean matches(Pointcut pointcut, Method method, Class<?> targetClass) {
        return pointcut.getClassFilter().matches(targetClass)
                && pointcut.getMethodMatcher().matches(method, targetClass);
    }

    /**
     * Calls whose type does not say what they return: of a method that returns {@link Object}, or a type argument that its class
     * does not state, as that of a lambda. The response to a web request follows whatever it is made of. Elsewhere, a reactive
     * result fails its call, because each subscription to it would be a call that no limit sees.
     */
    private record UntypedCalls(LimitedMethod limited, String place) implements LimitedCall {

        @Override
        public Method method() {
            return limited.method();
        }

        @Override
        public boolean blocks() {
            return true;
        }

        @Override
        public @Nullable Object invoke(MethodInvocation call) throws Throwable {
            return limited.invoke(limited.currentRequest() == null ? new Checked(limited, place, call) : call);
        }

        private record Checked(LimitedMethod limited, String place, MethodInvocation call)
                implements DelegatedInvocation {

            @Override
            public @Nullable Object proceed() throws Throwable {
                Object result = call.proceed();
                Class<?> type = result == null ? null : result.getClass();
                if (type != null && isReactive(type)) {
                    Type declared = limited.method().getGenericReturnType();
                    throw unfollowed(
                            limited,
                            place,
                            "returned " + type.getName() + " although its type is " + declared.getTypeName(),
                            remedy(type)
                                    + (declared instanceof TypeVariable
                                            ? ", or state the type argument in an interface or a class of the bean"
                                            : ""));
                }
                return result;
            }
        }
    }

    /**
     * Calls that return a stage.
     *
     * @param async whether Spring runs them on an executor by their annotation, as it may do by advice, too: in a task that waits
     *     for the stage. If they went on in another task after a wait, none of its threads might be left for that one
     */
    private record FutureCalls(LimitedMethod limited, boolean async) implements LimitedCall {

        @Override
        public Method method() {
            return limited.method();
        }

        @Override
        public boolean blocks() {
            return false;
        }

        @Override
        public @Nullable Object invoke(MethodInvocation made) throws Throwable {
            MethodInvocation call = DeferredInvocation.of(made);
            CurrentRequest request = limited.currentRequest();
            CurrentRequest served = limited.served(request);
            CompletableFuture<Admission> entered;
            try {
                entered = async || isAsync(call)
                        ? CompletableFuture.completedFuture(limited.enter(call, request))
                        : limited.reserveAsync(call, request, Callbacks.MAY_BLOCK);
            } catch (RuntimeException ex) {
                entered = CompletableFuture.failedFuture(ex);
            }
            CompletionStage<@Nullable Object> result = AsyncCalls.<@Nullable Object>run(
                    entered, limited.enforcer(), request, () -> cast(call.proceed()), refusal -> {
                        CompletionStage<@Nullable Object> instead = stage(limited.refused(call, refusal, request));
                        instead.whenComplete((value, failure) -> {
                            if (failure != null) {
                                LimitedMethod.fallbackFailed(failure, refusal, request);
                            }
                        });
                        return instead;
                    });
            if (served != null && result instanceof CompletableFuture<?> future && !future.isDone()) {
                CompletableFuture<Admission> admitted = entered;
                served.atEnd(() -> {
                    if (Admission.mayFollow(admitted)) {
                        future.cancel(true);
                    }
                });
            }
            return result;
        }

        private static CompletionStage<@Nullable Object> stage(@Nullable Object value) {
            CompletionStage<@Nullable Object> stage = value instanceof CompletionStage<?> ? cast(value) : null;
            return stage == null ? CompletableFuture.completedFuture(value) : stage.toCompletableFuture();
        }

        @SuppressWarnings("unchecked")
        private static @Nullable CompletionStage<@Nullable Object> cast(@Nullable Object stage) {
            return (CompletionStage<@Nullable Object>) stage;
        }
    }
}
