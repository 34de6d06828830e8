package io.ratelimited.spring.internals.web;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Ticker;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.fields.HeaderStyle;
import io.ratelimited.spring.internals.web.servlet.ServletRequests;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.springframework.mock.web.MockHttpServletRequest;
import org.springframework.mock.web.MockHttpServletResponse;
import org.springframework.web.context.request.RequestAttributes;
import org.springframework.web.context.request.RequestContextHolder;
import org.springframework.web.context.request.ServletRequestAttributes;

/** The request of tasks that go on with a call on another thread, which serves other requests before and afterwards. */
class RequestScopeTest {

    private final MockHttpServletRequest request = new MockHttpServletRequest();
    private final ServletRequests requests = new ServletRequests(
            ClientAddress.of(64, List.of()), null, new LimitHeaders.Style(HeaderStyle.NONE, Ticker.system(), null));

    @AfterEach
    void clear() {
        RequestContextHolder.resetRequestAttributes();
    }

    private Executor scope() {
        RequestContextHolder.setRequestAttributes(new ServletRequestAttributes(request, new MockHttpServletResponse()));
        return Objects.requireNonNull(requests.current()).scopeOfThisThread();
    }

    private static @Nullable RequestAttributes ofThread() {
        return RequestContextHolder.getRequestAttributes();
    }

    @Test
    void tasksHaveTheRequestWithTheUserOfThatTime() {
        request.setUserPrincipal(() -> "ann");
        Executor scope = scope();
        request.setUserPrincipal(null);
        AtomicReference<String> user = new AtomicReference<>();
        scope.execute(() -> user.set(((ServletRequestAttributes) ofThread())
                .getRequest()
                .getUserPrincipal()
                .getName()));
        assertThat(user).hasValue("ann");
    }

    @Test
    void theThreadHasItsOwnRequestAfterwards() {
        Executor scope = scope();
        RequestContextHolder.resetRequestAttributes();
        scope.execute(() -> assertThat(ofThread()).isNotNull());
        assertThat(ofThread()).isNull();
        RequestAttributes other = new ServletRequestAttributes(new MockHttpServletRequest());
        RequestContextHolder.setRequestAttributes(other);
        scope.execute(() -> assertThat(ofThread()).isNotSameAs(other));
        assertThat(ofThread()).isSameAs(other);
    }

    /** The server may use its object for another one. */
    @Test
    void tasksDoNotHaveARequestThatHasEnded() {
        RouteFilters.limited(new ManualTicker(), "rate-limit.limits.any.rate=9/m")
                .run(context -> {
                    AtomicReference<Executor> scope = new AtomicReference<>();
                    RouteFilters.servlet(context, "any")
                            .doFilter(request, new MockHttpServletResponse(), (served, response) -> scope.set(scope()));
                    RequestContextHolder.resetRequestAttributes();
                    AtomicReference<RequestAttributes> found = new AtomicReference<>();
                    scope.get().execute(() -> found.set(ofThread()));
                    assertThat(found).hasNullValue();
                });
    }
}
