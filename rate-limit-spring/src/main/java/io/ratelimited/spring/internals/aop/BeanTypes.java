package io.ratelimited.spring.internals.aop;

import io.ratelimited.spring.internals.text.LogText;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.springframework.aop.framework.autoproxy.AutoProxyUtils;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.util.ClassUtils;
import org.springframework.util.ReflectionUtils;

/** The classes of the beans that may have limited methods, found without making any bean. */
public final class BeanTypes {

    private static final LogText.Lines LOG = LogText.lines(BeanTypes.class);

    private BeanTypes() {}

    /** The classes behind the proxies of beans, by the name of the bean; lazy, prototype and scoped beans are among them. */
    public static Map<String, Class<?>> of(ConfigurableListableBeanFactory beans) {
        Map<String, Class<?>> types = new LinkedHashMap<>();
        for (String name : beans.getBeanNamesForType(Object.class, true, false)) {
            Class<?> type = type(name, beans);
            if (type != null && LimitedTypes.contains(type)) {
                types.put(name, type);
            }
        }
        return types;
    }

    private static @Nullable Class<?> type(String name, ConfigurableListableBeanFactory beans) {
        try {
            Class<?> type = AutoProxyUtils.determineTargetClass(beans, name);
            return type == null ? null : userClass(type);
        } catch (RuntimeException | LinkageError ex) {
            LOG.debug("The class of bean '" + name + "' is not known", ex);
            return null;
        }
    }

    /** The written class or interface behind a generated class: that of a proxy by class, or of a mock of Mockito. */
    public static Class<?> userClass(Class<?> type) {
        Class<?> user = ClassUtils.getUserClass(type);
        if (user.getName().contains("$MockitoMock$")) {
            for (Class<?> mocked : user.getInterfaces()) {
                if (user.getName().startsWith(mocked.getName() + "$MockitoMock$")) {
                    return mocked;
                }
            }
            return user.getSuperclass();
        }
        return user;
    }

    /** The methods of a class that callers may call, inherited and non-public ones included. */
    public static List<Method> methods(Class<?> type) {
        try {
            Method[] all = type.isInterface() ? type.getMethods() : ReflectionUtils.getUniqueDeclaredMethods(type);
            // Of a method that it inherits from a hidden class, a public class may have the bridge alone.
            return Stream.of(all)
                    .map(method -> Declarations.written(method, type))
                    .filter(method -> !method.isBridge() && !method.isSynthetic())
                    .filter(method -> method.getDeclaringClass() != Object.class)
                    .distinct()
                    .toList();
        } catch (IllegalStateException | LinkageError ex) {
            LOG.debug("The methods of " + type.getName() + " are not known", ex);
            return List.of();
        }
    }

    /**
     * The methods that a class does not inherit: static and private ones of its interfaces, and those of its superclasses
     * that nothing can override, which one of the same signature hides.
     */
    public static List<Method> notInherited(Class<?> type) {
        try {
            List<Method> found = new ArrayList<>();
            for (Class<?> implemented : ClassUtils.getAllInterfacesForClassAsSet(type)) {
                Stream.of(implemented.getDeclaredMethods())
                        .filter(method -> (method.getModifiers() & (Modifier.STATIC | Modifier.PRIVATE)) != 0)
                        .forEach(found::add);
            }
            List<Class<?>> subclasses = new ArrayList<>(List.of(type));
            for (Class<?> c = type.getSuperclass(); c != null && c != Object.class; c = c.getSuperclass()) {
                Stream.of(c.getDeclaredMethods())
                        .filter(method -> Modifier.isPrivate(method.getModifiers())
                                || (isOfOtherPackage(method, type)
                                        && subclasses.stream().noneMatch(subclass -> overrides(subclass, method))))
                        .forEach(found::add);
                subclasses.add(c);
            }
            found.removeIf(Method::isSynthetic);
            return found;
        } catch (LinkageError ex) {
            LOG.debug("The methods that " + type.getName() + " does not inherit are not known", ex);
            return List.of();
        }
    }

    private static boolean overrides(Class<?> subclass, Method method) {
        return !isOfOtherPackage(method, subclass)
                && Stream.of(subclass.getDeclaredMethods())
                        .anyMatch(own -> own.getName().equals(method.getName())
                                && Arrays.equals(own.getParameterTypes(), method.getParameterTypes()));
    }

    /** Returns whether a method of a superclass is package-private in another package, where a class cannot override it. */
    public static boolean isOfOtherPackage(Method method, Class<?> type) {
        Class<?> declaring = method.getDeclaringClass();
        return (method.getModifiers() & (Modifier.PUBLIC | Modifier.PROTECTED | Modifier.PRIVATE)) == 0
                && (declaring.getClassLoader() != type.getClassLoader()
                        || !declaring.getPackageName().equals(type.getPackageName()));
    }
}
