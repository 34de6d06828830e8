package io.ratelimited.spring.internals.web.reactive;

import io.ratelimited.spring.internals.web.LoginMechanisms;
import java.util.Collection;
import java.util.List;
import org.springframework.context.ApplicationContext;
import org.springframework.security.authentication.AuthenticationManager;
import org.springframework.security.authentication.AuthenticationProvider;
import org.springframework.security.authentication.ReactiveAuthenticationManager;
import org.springframework.security.web.server.SecurityWebFilterChain;
import org.springframework.security.web.server.WebFilterChainProxy;

/** Finds the filters of Spring Security that check credentials on every path of a WebFlux application. */
public final class ReactiveLogins {

    private ReactiveLogins() {}

    /** The names of the filters; none where the check itself has limits. */
    public static List<String> besideLogin(ApplicationContext context) {
        return LoginMechanisms.arePossible() ? Security.filters(context) : List.of();
    }

    /** Returns whether Spring Security filters requests. */
    public static boolean arePossible(ApplicationContext context) {
        return LoginMechanisms.arePossible() && Security.isUsed(context);
    }

    private static final class Security {

        /** A form and the rest have filters of one class, one for each mechanism. */
        private static final String MECHANISM = "AuthenticationWebFilter";

        private static boolean isUsed(ApplicationContext context) {
            return context.getBeanNamesForType(WebFilterChainProxy.class, true, false).length > 0;
        }

        private static List<String> filters(ApplicationContext context) {
            // A reactive manager may wrap one that blocks, with its providers.
            if (LoginMechanisms.areLimited(
                    context,
                    ReactiveAuthenticationManager.class,
                    AuthenticationManager.class,
                    AuthenticationProvider.class)) {
                return List.of();
            }
            Collection<SecurityWebFilterChain> chains =
                    context.getBeansOfType(SecurityWebFilterChain.class).values();
            if (chains.isEmpty() && isUsed(context)) {
                // The one that Spring Security makes then is no bean. It has a form and HTTP Basic.
                return List.of(MECHANISM);
            }
            return chains.stream()
                    .map(chain -> chain.getWebFilters()
                            .map(filter -> filter.getClass().getSimpleName())
                            .filter(MECHANISM::equals)
                            .collectList()
                            .block())
                    .filter(filters -> filters != null && filters.size() > 1)
                    .map(filters -> filters.get(0))
                    .distinct()
                    .toList();
        }
    }
}
