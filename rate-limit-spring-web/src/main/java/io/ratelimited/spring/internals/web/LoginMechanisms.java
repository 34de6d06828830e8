package io.ratelimited.spring.internals.web;

import io.ratelimited.spring.internals.aop.LimitedTypes;
import java.util.Objects;
import java.util.stream.Stream;
import org.springframework.aop.framework.autoproxy.AutoProxyUtils;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.context.ApplicationContext;
import org.springframework.util.ClassUtils;

/**
 * Credentials that Spring Security checks on every path beside a login. What is of one stack stands in the package of that
 * stack: the classes of the other one may be missing.
 */
public final class LoginMechanisms {

    private static final boolean PRESENT = ClassUtils.isPresent(
            "org.springframework.security.web.SecurityFilterChain", LoginMechanisms.class.getClassLoader());

    private LoginMechanisms() {}

    /** Returns whether the application has the filters of Spring Security. */
    public static boolean arePossible() {
        return PRESENT;
    }

    /** Returns whether a bean of one of the types, which check credentials, has a limit. */
    public static boolean areLimited(ApplicationContext context, Class<?>... checks) {
        return context.getAutowireCapableBeanFactory() instanceof ConfigurableListableBeanFactory beans
                && Stream.of(checks)
                        .flatMap(type -> Stream.of(beans.getBeanNamesForType(type)))
                        .map(name -> AutoProxyUtils.determineTargetClass(beans, name))
                        .filter(Objects::nonNull)
                        .anyMatch(LimitedTypes::contains);
    }
}
