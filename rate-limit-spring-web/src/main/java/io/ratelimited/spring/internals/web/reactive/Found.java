package io.ratelimited.spring.internals.web.reactive;

import java.security.Principal;
import org.jspecify.annotations.Nullable;
import org.springframework.context.ApplicationContext;
import org.springframework.security.authentication.AuthenticationTrustResolver;
import org.springframework.security.authentication.AuthenticationTrustResolverImpl;
import org.springframework.security.core.Authentication;
import org.springframework.security.core.context.ReactiveSecurityContextHolder;
import org.springframework.security.core.context.SecurityContext;
import org.springframework.util.ClassUtils;
import org.springframework.web.server.ServerWebExchange;
import org.springframework.web.server.WebSession;
import org.springframework.web.server.adapter.WebHttpHandlerBuilder;
import org.springframework.web.server.session.DefaultWebSessionManager;
import reactor.core.publisher.Mono;

/**
 * The outcome of looking for something that WebFlux finds asynchronously. A failure concerns only the code that asks for it.
 *
 * @param value null if there is none
 */
record Found<T>(@Nullable T value, @Nullable Throwable failure) {

    private static final boolean SECURITY = ClassUtils.isPresent(
            "org.springframework.security.core.context.ReactiveSecurityContextHolder", Found.class.getClassLoader());

    /** The authenticated caller of an exchange; none for one who is not logged in. */
    static Mono<Found<Principal>> principal(ServerWebExchange exchange) {
        Mono<Principal> principal = exchange.getPrincipal();
        return of(SECURITY ? principal.filter(Security::isLoggedIn).switchIfEmpty(Security.principal()) : principal);
    }

    /** The id of the session. */
    static Mono<Found<String>> session(ServerWebExchange exchange) {
        return of(Mono.defer(() -> namesNoSession(exchange)
                ? Mono.empty()
                : exchange.getSession().filter(WebSession::isStarted).map(WebSession::getId)));
    }

    /** Such a request has none; asking for it would make one, if only in memory. */
    private static boolean namesNoSession(ServerWebExchange exchange) {
        ApplicationContext context = exchange.getApplicationContext();
        String name = WebHttpHandlerBuilder.WEB_SESSION_MANAGER_BEAN_NAME;
        return context != null
                && context.containsBean(name)
                && context.getBean(name) instanceof DefaultWebSessionManager sessions
                && sessions.getSessionIdResolver().resolveSessionIds(exchange).isEmpty();
    }

    private static <T> Mono<Found<T>> of(Mono<T> lookup) {
        return lookup.map(value -> new Found<T>(value, null))
                .onErrorResume(failure -> Mono.just(new Found<T>(null, failure)))
                .switchIfEmpty(Mono.fromSupplier(() -> new Found<T>(null, null)));
    }

    /**
     * Returns the value of a lookup.
     *
     * @param found null if nobody has looked yet
     * @throws IllegalStateException if nobody has looked yet, or if the lookup failed
     */
    static <T> @Nullable T now(@Nullable Found<T> found, String what) {
        if (found == null) {
            throw new IllegalStateException(
                    what + " is not known yet: the limit was created after this request arrived");
        }
        if (found.failure != null) {
            throw new IllegalStateException("could not be determined: " + found.failure.getMessage(), found.failure);
        }
        return found.value;
    }

    /** Loaded only where Spring Security is. */
    private static final class Security {

        private static final AuthenticationTrustResolver TRUST = new AuthenticationTrustResolverImpl();

        private static Mono<Principal> principal() {
            return ReactiveSecurityContextHolder.getContext()
                    .<Principal>mapNotNull(SecurityContext::getAuthentication)
                    .filter(Security::isLoggedIn);
        }

        /** Spring Security has an authentication for callers who are not, with {@code anonymous()}. */
        private static boolean isLoggedIn(Principal caller) {
            return !(caller instanceof Authentication authentication && TRUST.isAnonymous(authentication));
        }
    }
}
