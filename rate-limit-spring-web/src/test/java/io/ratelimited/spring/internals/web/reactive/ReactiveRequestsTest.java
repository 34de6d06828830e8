package io.ratelimited.spring.internals.web.reactive;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.Ticker;
import io.ratelimited.spring.fields.HeaderStyle;
import io.ratelimited.spring.internals.request.CurrentRequest;
import io.ratelimited.spring.internals.web.ClientAddress;
import io.ratelimited.spring.internals.web.LimitHeaders;
import io.ratelimited.spring.internals.web.TrustedProxies;
import java.security.Principal;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.springframework.http.server.reactive.ServerHttpRequest;
import org.springframework.mock.http.server.reactive.MockServerHttpRequest;
import org.springframework.mock.web.server.MockServerWebExchange;
import org.springframework.security.authentication.AnonymousAuthenticationToken;
import org.springframework.security.authentication.TestingAuthenticationToken;
import org.springframework.security.core.Authentication;
import org.springframework.security.core.authority.AuthorityUtils;
import org.springframework.security.core.context.ReactiveSecurityContextHolder;
import org.springframework.web.server.ServerWebExchange;
import org.springframework.web.server.ServerWebExchangeDecorator;
import reactor.core.publisher.Mono;
import reactor.util.context.Context;

/** What a request is prepared for, when several limits are resolved at once. */
final class ReactiveRequestsTest {

    private final ReactiveRequests requests = new ReactiveRequests(
            ClientAddress.of(64, null), null, new LimitHeaders.Style(HeaderStyle.STANDARD, Ticker.system(), null));

    @Test
    void limitThatReadsThePrincipalIsNotForgottenByOneThatIsPreparedMeanwhile() {
        requests.prepare(word -> {
            requests.prepare(other -> true);
            return false;
        });
        Principal user = () -> "ann";
        ServerWebExchange exchange = exchangeOf(user);
        ReactiveCurrentRequest request = requests.with(exchange, Mono::just).block();
        assertThat(request).isNotNull();
        assertThat(request.principal()).isSameAs(user);
    }

    @Test
    void tasksThatWaitForThreadsAtTheSameTimeCountOnce() {
        requests.prepare(word -> false);
        ReactiveCurrentRequest request = Objects.requireNonNull(
                requests.with(exchangeOf(null), Mono::just).block());
        request.waitedForThread(0, 10);
        request.waitedForThread(4, 12);
        request.waitedForThread(20, 21);
        assertThat(request.takeWaitedNanos()).isEqualTo(13);
        assertThat(request.takeWaitedNanos()).as("once").isZero();
    }

    /** On servlets, Spring Security hides it from the request. */
    @Test
    void anAnonymousCallerIsNoPrincipal() {
        requests.prepare(word -> true);
        Authentication anonymous = new AnonymousAuthenticationToken(
                "key", "anonymousUser", AuthorityUtils.createAuthorityList("ROLE_ANONYMOUS"));
        Authentication ann = new TestingAuthenticationToken("ann", "secret", "ROLE_USER");
        assertThat(principal(exchangeOf(anonymous), null)).isNull();
        assertThat(principal(exchangeOf(null), anonymous)).isNull();
        assertThat(principal(exchangeOf(anonymous), anonymous)).isNull();
        assertThat(principal(exchangeOf(ann), null)).isSameAs(ann);
        assertThat(principal(exchangeOf(null), ann)).isSameAs(ann);
        assertThat(principal(exchangeOf(anonymous), ann)).isSameAs(ann);
    }

    private @Nullable Principal principal(ServerWebExchange exchange, @Nullable Authentication inContext) {
        return Objects.requireNonNull(requests.with(exchange, Mono::just)
                        .contextWrite(
                                inContext == null
                                        ? Context.empty()
                                        : ReactiveSecurityContextHolder.withAuthentication(inContext))
                        .block())
                .principal();
    }

    private static ServerWebExchange exchangeOf(@Nullable Principal user) {
        return new ServerWebExchangeDecorator(MockServerWebExchange.from(MockServerHttpRequest.get("/"))) {
            @Override
            @SuppressWarnings("unchecked")
            public <T extends Principal> Mono<T> getPrincipal() {
                return Mono.justOrEmpty((T) user);
            }
        };
    }

    /** A proxy may append a line of its own to those that the client sent. */
    @Test
    void ofSeveralLinesOfAForwardingHeaderTheLastIsThatOfTheProxy() {
        ReactiveClients clients = new ReactiveClients(
                ClientAddress.of(64, null), TrustedProxies.of(List.of("1")), new TrustedProxies.Untrusted());
        ServerHttpRequest request = MockServerHttpRequest.get("/")
                .header("X-Forwarded-For", "192.0.2.1", "203.0.113.5")
                .build();
        assertThat(clients.of(request, request)).isEqualTo("203.0.113.5");
    }

    /** Event loops run the code of many requests, and code without one. */
    @Test
    void aThreadHasARequestOnlyWhileItRunsItsCode() {
        requests.prepare(word -> false);
        ReactiveCurrentRequest one = request("/one");
        ReactiveCurrentRequest other = request("/other");
        List<@Nullable CurrentRequest> seen = new ArrayList<>();
        one.run(() -> {
            other.run(() -> seen.add(requests.current()));
            one.run(() -> seen.add(requests.current()));
            seen.add(requests.current());
        });
        seen.add(requests.current());
        assertThatThrownBy(() -> one.run(() -> {
                    throw new IllegalStateException();
                }))
                .isInstanceOf(IllegalStateException.class);
        seen.add(requests.current());
        one.onThread(() -> Mono.just(1)).block();
        seen.add(requests.current());
        FollowedResponse.of(one, Mono.fromRunnable(() -> seen.add(requests.current())))
                .block();
        seen.add(requests.current());
        assertThat(seen).containsExactly(other, one, one, null, null, null, one, null);
    }

    private ReactiveCurrentRequest request(String path) {
        ServerWebExchange exchange = MockServerWebExchange.from(MockServerHttpRequest.get(path));
        return Objects.requireNonNull(requests.with(exchange, Mono::just).block());
    }
}
