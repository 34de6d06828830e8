package io.ratelimited.spring.web;

import io.ratelimited.spring.aop.LimitedTypes;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.stream.Stream;
import org.springframework.aop.framework.autoproxy.AutoProxyUtils;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.context.ApplicationContext;
import org.springframework.security.authentication.AuthenticationManager;
import org.springframework.security.authentication.AuthenticationProvider;
import org.springframework.security.authentication.ReactiveAuthenticationManager;
import org.springframework.security.web.SecurityFilterChain;
import org.springframework.security.web.server.SecurityWebFilterChain;
import org.springframework.util.ClassUtils;

/** Credentials that Spring Security checks on every path beside a login. */
final class LoginMechanisms {

    private static final boolean PRESENT = ClassUtils.isPresent(
            "org.springframework.security.web.SecurityFilterChain", LoginMechanisms.class.getClassLoader());

    private LoginMechanisms() {}

    /** The names of the filters; none where the check itself has limits. */
    static List<String> besideLogin(ApplicationContext context) {
        return PRESENT && !Security.hasLimits(context) ? Security.filters(context) : List.of();
    }

    private static final class Security {

        private static final Set<String> ON_EVERY_PATH = Set.of(
                "BasicAuthenticationFilter",
                "BearerTokenAuthenticationFilter",
                "DigestAuthenticationFilter",
                "RememberMeAuthenticationFilter");

        private static boolean hasLimits(ApplicationContext context) {
            if (!(context.getAutowireCapableBeanFactory() instanceof ConfigurableListableBeanFactory beans)) {
                return false;
            }
            return Stream.of(
                            AuthenticationProvider.class,
                            AuthenticationManager.class,
                            ReactiveAuthenticationManager.class)
                    .flatMap(type -> Stream.of(beans.getBeanNamesForType(type)))
                    .map(name -> AutoProxyUtils.determineTargetClass(beans, name))
                    .filter(Objects::nonNull)
                    .anyMatch(LimitedTypes::contains);
        }

        private static List<String> filters(ApplicationContext context) {
            Stream<String> servlet = context.getBeansOfType(SecurityFilterChain.class).values().stream()
                    .flatMap(chain -> chain.getFilters().stream())
                    .map(filter -> filter.getClass().getSimpleName())
                    .filter(ON_EVERY_PATH::contains);
            // On WebFlux a form and the rest have filters of one class, one for each mechanism.
            Stream<String> reactive = context.getBeansOfType(SecurityWebFilterChain.class).values().stream()
                    .map(chain -> chain.getWebFilters()
                            .map(filter -> filter.getClass().getSimpleName())
                            .filter("AuthenticationWebFilter"::equals)
                            .collectList()
                            .block())
                    .filter(filters -> filters != null && filters.size() > 1)
                    .map(filters -> filters.get(0));
            return Stream.concat(servlet, reactive).distinct().toList();
        }
    }
}
