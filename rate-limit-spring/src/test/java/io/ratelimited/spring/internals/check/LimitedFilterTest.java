package io.ratelimited.spring.internals.check;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.spring.ContextRunner;
import io.ratelimited.spring.Explanation;
import io.ratelimited.spring.RateLimited;
import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import java.io.IOException;
import org.junit.jupiter.api.Test;
import org.springframework.aop.support.AopUtils;
import org.springframework.context.annotation.ProxyType;
import org.springframework.context.annotation.Proxyable;
import org.springframework.web.filter.GenericFilterBean;

/** Filters whose container calls final methods on the proxy, which has none of the fields of the filter. */
final class LimitedFilterTest {

    @Test
    void aLimitOnASpringFilterFailsStartupAndNamesTheAnnotation() {
        ContextRunner.limited().withBean(Guarded.class).run(context -> {
            assertThat(context).hasFailed();
            assertThat(Explanation.of(context.getStartupFailure()).getDescription())
                    .contains(
                            "@RateLimited on io.ratelimited.spring.internals.check.LimitedFilterTest$Guarded.doFilter",
                            "GenericFilterBean.init");
            assertThat(Explanation.of(context.getStartupFailure()).getAction())
                    .contains("rate-limit.routes", "@Proxyable(ProxyType.INTERFACES)", "[RL-108]");
        });
    }

    @Test
    void withoutFinalMethodsAFilterCanBeLimited() {
        ContextRunner.limited()
                .withBean(Plain.class)
                .run(context -> assertThat(context).hasNotFailed());
    }

    @Test
    void aProxyOfItsInterfacesCanBeLimited() {
        ContextRunner.limited().withBean(ByInterface.class).run(context -> {
            assertThat(context).hasNotFailed();
            Filter filter = context.getBean(Filter.class);
            assertThat(AopUtils.isJdkDynamicProxy(filter)).isTrue();
            filter.init(new org.springframework.mock.web.MockFilterConfig());
        });
    }

    static class Guarded extends GenericFilterBean {

        @Override
        @RateLimited(rate = "5/m")
        public void doFilter(ServletRequest request, ServletResponse response, FilterChain chain)
                throws IOException, ServletException {
            chain.doFilter(request, response);
        }
    }

    @Proxyable(ProxyType.INTERFACES)
    static class ByInterface extends Guarded {}

    static class Plain implements Filter {

        @Override
        @RateLimited(rate = "5/m")
        public void doFilter(ServletRequest request, ServletResponse response, FilterChain chain)
                throws IOException, ServletException {
            chain.doFilter(request, response);
        }
    }
}
