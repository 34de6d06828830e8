package io.ratelimited.spring;

import io.ratelimited.core.RateLimitExceededException;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.stream.Stream;
import org.springframework.util.ClassUtils;
import org.springframework.util.ReflectionUtils;

/** Finds the method that is called instead of a refused one. */
final class Fallbacks {

    private Fallbacks() {}

    /**
     * The fallback of a method.
     *
     * @throws InvalidRateLimitException when the class has none that fits
     */
    static Method find(Method method, Class<?> targetClass, String name, String limit, String place) {
        Class<?>[] same = method.getParameterTypes();
        Class<?>[] withException = Arrays.copyOf(same, same.length + 1);
        withException[same.length] = RateLimitExceededException.class;
        Class<?> userClass = ClassUtils.getUserClass(targetClass);
        Method found = Stream.of(withException, same)
                .map(types -> ReflectionUtils.findMethod(userClass, name, types))
                .filter(candidate -> candidate != null)
                .findFirst()
                .orElseThrow(() -> new InvalidRateLimitException(
                        limit,
                        place,
                        "there is no fallback method " + name
                                + Arrays.toString(same).replace('[', '(').replace(']', ')') + " in "
                                + userClass.getName(),
                        "Add a method of that name with the parameters of " + method.getName()
                                + ", optionally followed by a RateLimitExceededException."));
        if (found.equals(method)) {
            throw new InvalidRateLimitException(
                    limit,
                    place,
                    "fallback " + name + " is the limited method itself, which would then go without a limit",
                    "Name another method.");
        }
        if (!ClassUtils.isAssignable(method.getReturnType(), found.getReturnType())) {
            throw new InvalidRateLimitException(
                    limit,
                    place,
                    "fallback method " + name + " returns "
                            + found.getReturnType().getName() + ", not "
                            + method.getReturnType().getName(),
                    "Return what " + method.getName() + " returns.");
        }
        ReflectionUtils.makeAccessible(found);
        return found;
    }
}
