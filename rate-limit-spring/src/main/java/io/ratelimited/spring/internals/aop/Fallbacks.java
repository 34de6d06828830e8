package io.ratelimited.spring.internals.aop;

import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.spring.InvalidRateLimitException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Flow;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import kotlin.coroutines.Continuation;
import kotlinx.coroutines.Job;
import org.jspecify.annotations.Nullable;
import org.springframework.core.CoroutinesUtils;
import org.springframework.core.KotlinDetector;
import org.springframework.core.ReactiveAdapterRegistry;
import org.springframework.core.ResolvableType;
import org.springframework.util.ClassUtils;
import org.springframework.util.ReflectionUtils;

/** Finds and calls the method that a limit names as its fallback. */
final class Fallbacks {

    /** Causes may go in circles. */
    private static final int DEEPEST = 32;

    private Fallbacks() {}

    /**
     * The fallback of a method.
     *
     * @throws InvalidRateLimitException when the class has none that fits
     */
    static Method find(Method method, Class<?> targetClass, String name, String limit, String place) {
        Class<?> userClass = ClassUtils.getUserClass(targetClass);
        Method found = Stream.concat(
                        signatures(method, List.of(method.getParameterTypes()))
                                .map(types ->
                                        ReflectionUtils.findMethod(userClass, name, types.toArray(Class<?>[]::new))),
                        signatures(method, parameters(method, userClass)).map(types -> named(userClass, name, types)))
                .filter(candidate -> candidate != null)
                .map(candidate -> Declarations.written(candidate, userClass))
                .findFirst()
                .orElseThrow(() -> new InvalidRateLimitException(
                        limit,
                        place,
                        "there is no fallback method " + name
                                + Arrays.stream(method.getParameterTypes())
                                        .map(Class::getName)
                                        .collect(Collectors.joining(", ", "(", ")"))
                                + " in " + userClass.getName(),
                        "Add a method of that name with the parameters of " + KotlinNames.of(method)
                                + ", optionally followed by a RateLimitExceededException. [RL-107]"));
        if (found.equals(method)) {
            throw new InvalidRateLimitException(
                    limit,
                    place,
                    "fallback " + name + " is the limited method itself, which would bypass the limit",
                    "Name another method. [RL-107]");
        }
        if (!fits(method, found) || !fitsByGenerics(method, found, userClass)) {
            throw new InvalidRateLimitException(
                    limit,
                    place,
                    "fallback method " + name + " returns " + result(found, userClass) + ", not "
                            + result(method, userClass),
                    "Use the return type of " + KotlinNames.of(method) + ". [RL-107]");
        }
        ReflectionUtils.makeAccessible(found);
        return found;
    }

    /** The parameters that a fallback may have: those of the method, before them those with the exception. */
    private static Stream<List<Class<?>>> signatures(Method method, List<Class<?>> all) {
        if (!KotlinDetector.isSuspendingFunction(method)) {
            return Stream.of(with(all, RateLimitExceededException.class), all);
        }
        List<Class<?>> own = all.subList(0, all.size() - 1);
        Class<?> continuation = all.get(all.size() - 1);
        List<Class<?>> withRefusal = with(own, RateLimitExceededException.class);
        return Stream.of(with(withRefusal, continuation), all, withRefusal, own);
    }

    /**
     * A method of a name, perhaps one that Kotlin has changed, whose parameters have these types for a class; a superclass or
     * an interface may state them as type variables.
     */
    private static @Nullable Method named(Class<?> userClass, String name, List<Class<?>> types) {
        return Stream.of(ReflectionUtils.getAllDeclaredMethods(userClass))
                .filter(candidate -> KotlinNames.of(candidate).equals(name)
                        && !candidate.isBridge()
                        && parameters(candidate, userClass).equals(types))
                .findFirst()
                .orElse(null);
    }

    private static List<Class<?>> parameters(Method method, Class<?> userClass) {
        List<Class<?>> types = new ArrayList<>();
        for (int i = 0; i < method.getParameterCount(); i++) {
            types.add(ResolvableType.forMethodParameter(method, i, userClass).toClass());
        }
        return types;
    }

    private static List<Class<?>> with(List<Class<?>> types, Class<?> last) {
        List<Class<?>> result = new ArrayList<>(types);
        result.add(last);
        return result;
    }

    /** A method with a later result may have a fallback that returns the same or, as its result, any value. */
    private static boolean fits(Method method, Method fallback) {
        Class<?> type = method.getReturnType();
        return ClassUtils.isAssignable(type, fallback.getReturnType())
                || isStage(type)
                || (fallback.getReturnType() != void.class
                        && ReactiveAdapterRegistry.getSharedInstance().getAdapter(type) != null);
    }

    /** Returns whether the types of results may be those of the method: as far as both are known, by their generics. */
    private static boolean fitsByGenerics(Method method, Method fallback, Class<?> userClass) {
        ResolvableType wanted = result(method, userClass);
        ResolvableType found = result(fallback, userClass);
        if (KotlinDetector.isSuspendingFunction(method) && !isLater(wanted.toClass())) {
            return fitsSuspended(wanted, found, KotlinDetector.isSuspendingFunction(fallback));
        }
        if (!isLater(wanted.toClass())) {
            return fits(wanted, found);
        }
        if (isStage(wanted.toClass()) && !fitsStage(wanted.toClass(), found.toClass())) {
            return false;
        }
        // A later result may be stated as the result itself.
        ResolvableType result = isLater(found.toClass()) ? later(found) : found;
        return result.toClass() == void.class || fits(later(wanted), result);
    }

    /** A stage of the JDK is made of any other, and of a value; one of another class is the result itself. */
    private static boolean fitsStage(Class<?> type, Class<?> other) {
        return type.isAssignableFrom(CompletableFuture.class)
                ? isStage(other) || !isLater(other)
                : ClassUtils.isAssignable(type, other);
    }

    /**
     * A suspend function awaits a later result of a fallback that is not one. Of a fallback that always throws, the result is
     * {@code Nothing}: {@link Void} for the JVM.
     */
    private static boolean fitsSuspended(ResolvableType wanted, ResolvableType found, boolean suspending) {
        ResolvableType result = !suspending && isLater(found.toClass()) ? later(found) : found;
        Class<?> type = wanted.toClass();
        Class<?> other = result.toClass();
        if (other == void.class) {
            return type == Object.class || type.getName().equals("kotlin.Unit");
        }
        return other == Void.class || KotlinOverrides.isValue(other, type) || fits(wanted, result);
    }

    /** The type of the result: Kotlin states that of a suspend function as the type of its continuation. */
    private static ResolvableType result(Method method, Class<?> userClass) {
        return KotlinDetector.isSuspendingFunction(method)
                ? ResolvableType.forMethodParameter(method, method.getParameterCount() - 1, userClass)
                        .getGeneric(0)
                : ResolvableType.forMethodReturnType(method, userClass);
    }

    private static boolean isStage(Class<?> type) {
        return CompletionStage.class.isAssignableFrom(type);
    }

    private static boolean isLater(Class<?> type) {
        return isStage(type)
                || (!isPlain(type)
                        && ReactiveAdapterRegistry.getSharedInstance().getAdapter(type) != null);
    }

    /** Most results are of the JDK: the registry would find every reactive library at startup for nothing. */
    private static boolean isPlain(Class<?> type) {
        return type.isPrimitive()
                || (type.getName().startsWith("java.") && !Flow.Publisher.class.isAssignableFrom(type));
    }

    /** The type of a later result; unknown for one that has none, or several type variables. */
    private static ResolvableType later(ResolvableType type) {
        return type.getGenerics().length == 1 ? type.getGeneric(0) : ResolvableType.NONE;
    }

    private static boolean fits(ResolvableType wanted, ResolvableType found) {
        Class<?> type = wanted.resolve();
        Class<?> other = found.resolve();
        if (type == null || other == null) {
            return true;
        }
        if (!ClassUtils.isAssignable(type, other)) {
            return false;
        }
        ResolvableType as = found.as(type);
        for (int i = 0; i < wanted.getGenerics().length && i < as.getGenerics().length; i++) {
            if (!fits(wanted.getGeneric(i), as.getGeneric(i))) {
                return false;
            }
        }
        return true;
    }

    /**
     * Calls a fallback in place of a refused call.
     *
     * @param suspending whether the refused method is a suspend function
     */
    static @Nullable Object call(
            Method fallback,
            @Nullable Object target,
            @Nullable Object[] args,
            boolean suspending,
            RateLimitExceededException refusal)
            throws Throwable {
        @Nullable Object[] arguments = arguments(fallback, args, suspending, refusal);
        if (KotlinDetector.isSuspendingFunction(fallback)) {
            return Coroutines.call(fallback, target, arguments);
        }
        try {
            return fallback.invoke(target, arguments);
        } catch (InvocationTargetException ex) {
            throw ex.getTargetException();
        }
    }

    /** Returns whether a failure is the refusal, or has it as a cause. */
    static boolean isCausedBy(Throwable failure, RateLimitExceededException refusal) {
        Throwable cause = failure;
        for (int depth = 0; cause != null && depth < DEEPEST; depth++, cause = cause.getCause()) {
            if (cause == refusal) {
                return true;
            }
        }
        return false;
    }

    private static @Nullable Object[] arguments(
            Method fallback, @Nullable Object[] args, boolean suspending, RateLimitExceededException refusal) {
        int own = suspending ? args.length - 1 : args.length;
        Class<?>[] types = fallback.getParameterTypes();
        @Nullable Object[] arguments = Arrays.copyOf(args, types.length);
        if (types.length > own && types[own] == RateLimitExceededException.class) {
            arguments[own] = refusal;
        }
        if (suspending && KotlinDetector.isSuspendingFunction(fallback)) {
            arguments[types.length - 1] = args[args.length - 1];
        }
        return arguments;
    }

    /** Loaded only where coroutines are. */
    private static final class Coroutines {

        private static Object call(Method function, @Nullable Object target, @Nullable Object[] arguments) {
            Continuation<?> caller = (Continuation<?>) Objects.requireNonNull(arguments[arguments.length - 1]);
            return CoroutinesUtils.invokeSuspendingFunction(
                    caller.getContext().minusKey(Job.Key), function, Objects.requireNonNull(target), arguments);
        }
    }
}
