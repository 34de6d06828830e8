package io.ratelimited.spring.internals.web.servlet;

import io.ratelimited.spring.internals.web.LoginMechanisms;
import java.util.List;
import java.util.Set;
import org.springframework.context.ApplicationContext;
import org.springframework.security.authentication.AuthenticationManager;
import org.springframework.security.web.SecurityFilterChain;

/** Finds the filters of Spring Security that check credentials on every path of a servlet application. */
public final class ServletLogins {

    private ServletLogins() {}

    /** The names of the filters; none where the check itself has limits. */
    public static List<String> besideLogin(ApplicationContext context) {
        return LoginMechanisms.arePossible() ? Security.filters(context) : List.of();
    }

    private static final class Security {

        private static final Set<String> ON_EVERY_PATH = Set.of(
                "BasicAuthenticationFilter",
                "BearerTokenAuthenticationFilter",
                "DigestAuthenticationFilter",
                "RememberMeAuthenticationFilter");

        private static List<String> filters(ApplicationContext context) {
            if (context.getBeanProvider(LimitedProviders.class).stream().anyMatch(LimitedProviders::areUsed)
                    || LoginMechanisms.areLimited(context, AuthenticationManager.class)) {
                return List.of();
            }
            return context.getBeansOfType(SecurityFilterChain.class).values().stream()
                    .flatMap(chain -> chain.getFilters().stream())
                    .map(filter -> filter.getClass().getSimpleName())
                    .filter(ON_EVERY_PATH::contains)
                    .distinct()
                    .toList();
        }
    }
}
