package io.ratelimited.spring.internals.aop;

import java.lang.reflect.AccessibleObject;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.function.Supplier;
import org.aopalliance.intercept.MethodInterceptor;
import org.aopalliance.intercept.MethodInvocation;
import org.aspectj.lang.ProceedingJoinPoint;
import org.aspectj.lang.annotation.Around;
import org.aspectj.lang.annotation.Aspect;
import org.aspectj.lang.reflect.MethodSignature;
import org.jspecify.annotations.Nullable;

/**
 * The one advice: finds the {@link LimitedCall limits} of a method, and passes the call on to them. Applied by Spring's proxies,
 * where an advisor stands for its pointcut, or woven into classes by AspectJ. The pointcut binds no arguments, which would cost
 * more than all the rest.
 *
 * <p>Woven, it sees annotations on the method and on the class that declares it; {@link ComposedRateLimitAspect} sees
 * those that stand on an annotation there.
 */
@Aspect
public final class RateLimitAspect implements MethodInterceptor {

    /** Only patterns of signatures, which AspectJ matches when it weaves a class, and never at a call. */
    static final String PATTERN = "(execution(@io.ratelimited.spring.RateLimited * *(..))"
            + " || execution(@io.ratelimited.spring.RateLimited.List * *(..))"
            + " || (execution(* *(..)) && (within(@io.ratelimited.spring.RateLimited *)"
            + " || within(@io.ratelimited.spring.RateLimited.List *))))";

    private static final RateLimitAspect WOVEN = new RateLimitAspect();

    private volatile @Nullable Supplier<? extends LimitedCalls> methods;
    /** Stack of active contexts, newest first. */
    private final Deque<Supplier<? extends LimitedCalls>> contexts = new ArrayDeque<>();

    private RateLimitAspect() {}

    /** @param methods asked for at every call, so that the aspect itself depends on nothing */
    public RateLimitAspect(Supplier<? extends LimitedCalls> methods) {
        this.methods = methods;
    }

    /** The instance that woven classes call. Limits nothing until an application context configures it. */
    public static RateLimitAspect aspectOf() {
        return WOVEN;
    }

    /** Returns whether there is an instance for woven classes, as AspectJ asks. */
    public static boolean hasAspect() {
        return true;
    }

    /** Sets the limits of woven classes from now on. */
    public synchronized void configure(Supplier<? extends LimitedCalls> configured) {
        contexts.push(configured);
        methods = configured;
    }

    /** Ends the limits of woven classes, unless another context has some. */
    public synchronized void unconfigure(Supplier<? extends LimitedCalls> configured) {
        contexts.remove(configured);
        methods = contexts.peek();
    }

    /** Around every call that a proxy of Spring's passes on. */
    @Override
    public @Nullable Object invoke(MethodInvocation call) throws Throwable {
        LimitedCall method = find(call.getMethod(), call.getThis());
        if (method == null) {
            return call.proceed();
        }
        return method.invoke(
                WOVEN.methods == null ? call : new CountedCall(method.method(), DeferredInvocation.of(call)));
    }

    /** Around every call that an annotation on the method or its class limits. */
    @Around(PATTERN)
    public @Nullable Object limit(ProceedingJoinPoint call) throws Throwable {
        Method called = ((MethodSignature) call.getSignature()).getMethod();
        LimitedCall method = find(called, call.getTarget());
        return method == null || isCounted(method, called, call.getTarget())
                ? call.proceed()
                : method.invoke(new CountedCall(method.method(), new WovenCall(called, call)));
    }

    private @Nullable LimitedCall find(Method method, @Nullable Object target) {
        Supplier<? extends LimitedCalls> configured = methods;
        return configured == null
                ? null
                : configured.get().limitsOf(method, target == null ? method.getDeclaringClass() : target.getClass());
    }

    /**
     * Woven code also meets the overridden method that an overriding one calls: the same call, which may have been counted. One
     * that does not block may call it later, on another thread: its own annotation says that it has been counted.
     */
    private boolean isCounted(LimitedCall method, Method called, @Nullable Object target) {
        if (this != WOVEN) {
            return false;
        }
        Method overriding = method.method();
        // A proxy hands a call of a default method on to the body in its interface.
        boolean ofProxy = target != null && Proxy.isProxyClass(target.getClass());
        return (ofProxy || !overriding.equals(called))
                && (CountedCall.isCurrent(overriding, target)
                        || (!ofProxy && !method.blocks() && RateLimitAdvisor.isSeenByAspect(overriding)));
    }

    /** The limited methods of an application context. Thread-safe. */
    public interface LimitedCalls {

        /**
         * Finds the limits of a method.
         *
         * @param method as called, perhaps of an interface
         * @param targetClass class of the called object
         * @return null if nothing does
         */
        @Nullable
        LimitedCall limitsOf(Method method, Class<?> targetClass);
    }

    /** A limited method. Thread-safe. */
    public interface LimitedCall {

        /** The method that the limits stand on, which a class may override. */
        Method method();

        /** Returns whether a call blocks its thread until it ends. */
        boolean blocks();

        /** Calls the method under its limits. */
        @Nullable
        Object invoke(MethodInvocation call) throws Throwable;
    }

    private record WovenCall(Method method, ProceedingJoinPoint call) implements MethodInvocation {

        @Override
        public Method getMethod() {
            return method;
        }

        @Override
        public @Nullable Object[] getArguments() {
            return call.getArgs();
        }

        @Override
        public @Nullable Object getThis() {
            return call.getTarget();
        }

        @Override
        public AccessibleObject getStaticPart() {
            return method;
        }

        @Override
        public @Nullable Object proceed() throws Throwable {
            return call.proceed();
        }
    }
}
