package io.ratelimited.spring.internals.web;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Ticker;
import io.ratelimited.spring.fields.HeaderStyle;
import io.ratelimited.spring.internals.request.CurrentRequest;
import io.ratelimited.spring.internals.web.servlet.ServletRequests;
import java.security.Principal;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.springframework.mock.web.MockHttpServletRequest;
import org.springframework.security.authentication.AnonymousAuthenticationToken;
import org.springframework.security.authentication.UsernamePasswordAuthenticationToken;
import org.springframework.security.core.authority.AuthorityUtils;
import org.springframework.security.core.context.SecurityContextHolder;
import org.springframework.web.context.request.RequestContextHolder;
import org.springframework.web.context.request.ServletRequestAttributes;

/** The caller of a message of a WebSocket: the security context of its thread knows it, its request does not. */
class ThreadsCallerTest {

    private final MockHttpServletRequest request = new MockHttpServletRequest();

    @AfterEach
    void clear() {
        RequestContextHolder.resetRequestAttributes();
        SecurityContextHolder.clearContext();
    }

    private @Nullable Principal principal() {
        RequestContextHolder.setRequestAttributes(new ServletRequestAttributes(request));
        CurrentRequest current = new ServletRequests(
                        ClientAddress.of(64, List.of()),
                        null,
                        new LimitHeaders.Style(HeaderStyle.NONE, Ticker.system(), null))
                .current();
        assertThat(current).isNotNull();
        return current.principal();
    }

    @Test
    void isThatOfTheSecurityContextWhereTheRequestKnowsNobody() {
        SecurityContextHolder.getContext()
                .setAuthentication(new UsernamePasswordAuthenticationToken("ann", null, List.of()));
        assertThat(principal().getName()).isEqualTo("ann");
    }

    @Test
    void isThatOfTheRequestFirst() {
        request.setUserPrincipal(() -> "of the request");
        SecurityContextHolder.getContext()
                .setAuthentication(new UsernamePasswordAuthenticationToken("ann", null, List.of()));
        assertThat(principal().getName()).isEqualTo("of the request");
    }

    @Test
    void isNobodyWhereNobodyIsLoggedIn() {
        assertThat(principal()).isNull();
        SecurityContextHolder.getContext()
                .setAuthentication(new AnonymousAuthenticationToken(
                        "key", "anonymousUser", AuthorityUtils.createAuthorityList("ROLE_ANONYMOUS")));
        assertThat(principal()).isNull();
    }
}
