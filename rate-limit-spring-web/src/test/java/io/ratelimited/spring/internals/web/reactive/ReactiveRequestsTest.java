package io.ratelimited.spring.internals.web.reactive;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Ticker;
import io.ratelimited.spring.fields.HeaderStyle;
import io.ratelimited.spring.internals.web.ClientAddress;
import io.ratelimited.spring.internals.web.LimitHeaders;
import java.security.Principal;
import org.junit.jupiter.api.Test;
import org.springframework.mock.http.server.reactive.MockServerHttpRequest;
import org.springframework.mock.web.server.MockServerWebExchange;
import org.springframework.web.server.ServerWebExchange;
import org.springframework.web.server.ServerWebExchangeDecorator;
import reactor.core.publisher.Mono;

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
        ServerWebExchange exchange =
                new ServerWebExchangeDecorator(MockServerWebExchange.from(MockServerHttpRequest.get("/"))) {
                    @Override
                    @SuppressWarnings("unchecked")
                    public <T extends Principal> Mono<T> getPrincipal() {
                        return Mono.just((T) user);
                    }
                };
        ReactiveCurrentRequest request = requests.with(exchange, Mono::just).block();
        assertThat(request).isNotNull();
        assertThat(request.principal()).isSameAs(user);
    }
}
