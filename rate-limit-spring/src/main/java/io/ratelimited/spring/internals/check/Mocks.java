package io.ratelimited.spring.internals.check;

import java.lang.reflect.Method;
import org.jspecify.annotations.Nullable;
import org.springframework.util.ClassUtils;
import org.springframework.util.ReflectionUtils;

/**
 * Mocks of Mockito, which tests have in the place of beans. By reflection, because applications do not have Mockito. The class of
 * a mock says nothing: it may be the class that is mocked.
 */
public final class Mocks {

    private static final @Nullable Method DETAILS = method("org.mockito.Mockito", "mockingDetails", Object.class);
    private static final @Nullable Method IS_MOCK = method("org.mockito.MockingDetails", "isMock");

    private Mocks() {}

    /**
     * Returns whether an object is a mock. Lets Mockito start, which may attach an agent: not to be asked about every bean.
     */
    public static boolean isMock(Object object) {
        try {
            return DETAILS != null
                    && IS_MOCK != null
                    && Boolean.TRUE.equals(
                            ReflectionUtils.invokeMethod(IS_MOCK, ReflectionUtils.invokeMethod(DETAILS, null, object)));
        } catch (RuntimeException | LinkageError ex) {
            // A Mockito that cannot start, as on a JRE without agents, has made no mock.
            return false;
        }
    }

    private static @Nullable Method method(String className, String name, Class<?>... parameters) {
        return ClassUtils.isPresent(className, Mocks.class.getClassLoader())
                ? ClassUtils.getMethodIfAvailable(
                        ClassUtils.resolveClassName(className, Mocks.class.getClassLoader()), name, parameters)
                : null;
    }
}
