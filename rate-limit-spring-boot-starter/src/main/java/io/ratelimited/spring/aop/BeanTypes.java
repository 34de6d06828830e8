package io.ratelimited.spring.aop;

import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;
import org.springframework.aop.framework.autoproxy.AutoProxyUtils;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.util.ClassUtils;
import org.springframework.util.ReflectionUtils;

/** The classes of the beans that may have limited methods, found without making any bean. */
public final class BeanTypes {

    private static final Log LOG = LogFactory.getLog(BeanTypes.class);

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
                    .map(method -> Declaration.written(method, type))
                    .filter(method -> !method.isBridge() && !method.isSynthetic())
                    .filter(method -> method.getDeclaringClass() != Object.class)
                    .distinct()
                    .toList();
        } catch (IllegalStateException | LinkageError ex) {
            LOG.debug("The methods of " + type.getName() + " are not known", ex);
            return List.of();
        }
    }

    /** The methods of the interfaces of a class that its objects do not inherit: static and private ones. */
    public static List<Method> notInherited(Class<?> type) {
        try {
            return ClassUtils.getAllInterfacesForClassAsSet(type).stream()
                    .flatMap(implemented -> Stream.of(implemented.getDeclaredMethods()))
                    .filter(method -> (method.getModifiers() & (Modifier.STATIC | Modifier.PRIVATE)) != 0)
                    .filter(method -> !method.isSynthetic())
                    .toList();
        } catch (LinkageError ex) {
            LOG.debug("The methods of the interfaces of " + type.getName() + " are not known", ex);
            return List.of();
        }
    }
}
