package io.ratelimited.spring.internals.web;

import static io.ratelimited.spring.internals.web.RunningServer.policies;
import static io.ratelimited.spring.internals.web.RunningServer.states;
import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.spring.RateLimited;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.ServletResponseWrapper;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.net.http.HttpResponse;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.web.error.ErrorPage;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.boot.web.servlet.support.ErrorPageFilter;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.web.bind.annotation.ExceptionHandler;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

/** The fields of limits on responses that are reset after limits have decided. */
@Tag("slow")
class ResetResponseTest {

    @ParameterizedTest
    @EnumSource(names = {"TOMCAT", "JETTY"})
    void aResponseThatTheApplicationResetsHasItsFields(RunningServer.Kind kind) {
        try (RunningServer server = kind.start(List.of(App.class))) {
            HttpResponse<String> admitted = server.get("/reset");
            assertThat(admitted.body()).isEqualTo("done");
            assertThat(admitted.headers().firstValue("Old")).isEmpty();
            assertThat(policies(admitted)).containsKey("reset");
            assertThat(states(admitted)).containsKey("reset");

            HttpResponse<String> refused = server.get("/reset");
            assertThat(refused.statusCode()).isEqualTo(418);
            assertThat(states(refused)).containsKey("reset");
            assertThat(refused.headers().allValues("Retry-After")).containsExactly("60");
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"TOMCAT", "JETTY"})
    void anErrorPageBehindAResetHasTheFields(RunningServer.Kind kind) {
        try (RunningServer server = kind.start(List.of(App.class))) {
            HttpResponse<String> page = server.get("/container");
            assertThat(page.statusCode()).isEqualTo(502);
            assertThat(states(page)).containsKey("container");
            assertThat(policies(page)).containsKey("container");
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"TOMCAT", "JETTY"})
    void theErrorPageOfAWarHasTheFields(RunningServer.Kind kind) {
        try (RunningServer server = kind.start(List.of(App.class, War.class))) {
            HttpResponse<String> page = server.get("/fails");
            assertThat(page.statusCode()).isEqualTo(500);
            assertThat(page.body()).contains("\"path\":\"/fails\"");
            assertThat(states(page)).containsKey("fails");

            HttpResponse<String> refused = server.get("/fails", "Accept", "text/html");
            assertThat(refused.statusCode()).isEqualTo(429);
            assertThat(refused.headers().allValues("Retry-After")).containsExactly("60");
            assertThat(states(refused)).containsKey("fails");
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @Import({SharedBeans.class, Controller.class, Resetting.class})
    static class App {}

    /** Spring Boot's own filter for error pages, as in a container whose pages it cannot set. */
    @Configuration(proxyBeanMethods = false)
    static class War {

        @Bean
        FilterRegistrationBean<ErrorPageFilter> errorPageFilter() {
            ErrorPageFilter pages = new ErrorPageFilter();
            pages.addErrorPages(new ErrorPage("/error"));
            FilterRegistrationBean<ErrorPageFilter> filter = new FilterRegistrationBean<>(pages);
            filter.setOrder(pages.getOrder());
            filter.setDispatcherTypes(DispatcherType.REQUEST, DispatcherType.ASYNC);
            return filter;
        }
    }

    @RestController
    static class Resetting {

        @GetMapping("/reset")
        @RateLimited(name = "reset", rate = "1/m")
        void reset(HttpServletResponse response) throws IOException {
            response.setHeader("Old", "gone");
            response.reset();
            response.getWriter().write("done");
        }

        @ExceptionHandler
        void refused(RateLimitExceededException refusal, HttpServletResponse response) throws IOException {
            response.reset();
            response.setStatus(418);
            response.getWriter().write("later");
        }
    }

    @RestController
    static class Controller {

        /** As containers do before they dispatch to an error page. */
        @GetMapping("/container")
        @RateLimited(name = "container", rate = "1/m")
        void failInContainer(HttpServletResponse response) throws IOException {
            ServletResponse own = response;
            while (own instanceof ServletResponseWrapper wrapper) {
                own = wrapper.getResponse();
            }
            own.reset();
            response.sendError(502);
        }

        @GetMapping("/fails")
        @RateLimited(name = "fails", rate = "1/m")
        String fails() {
            throw new IllegalStateException("fails");
        }
    }
}
