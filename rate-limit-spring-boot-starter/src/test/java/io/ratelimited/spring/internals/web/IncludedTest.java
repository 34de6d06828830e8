package io.ratelimited.spring.internals.web;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.internals.web.RunningServer.Kind;
import jakarta.servlet.RequestDispatcher;
import jakarta.servlet.ServletException;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.web.servlet.ServletRegistrationBean;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

/** Pages that include what is limited: servers ignore the status and the headers of an included response. */
@Tag("spring-boot")
@Tag("slow")
class IncludedTest {

    private static final String POLICY = "\"part\";q=2;w=120";

    @ParameterizedTest
    @EnumSource(
            value = Kind.class,
            names = {"TOMCAT", "JETTY"})
    void aPageThatIncludesWhatIsLimitedHasItsFieldsAndIsRejectedWithIt(Kind kind) {
        try (RunningServer server = kind.start(List.of(App.class))) {
            for (String path : List.of(
                    "/page?of=/part",
                    "/page?of=/handler",
                    "/page?of=/nested",
                    "/page?named=part",
                    "/controller?of=/part",
                    "/controller?of=/handler")) {
                server.ticker().advance(Duration.ofDays(1));
                for (int left = 1; left >= 0; left--) {
                    HttpResponse<String> admitted = server.get(path);
                    assertThat(admitted.statusCode()).as(path).isEqualTo(200);
                    assertThat(admitted.body())
                            .as(path)
                            .startsWith("[")
                            .contains("sold")
                            .endsWith("]");
                    requireFields(path, admitted, "\"part\";r=" + left + ";t=" + (2 - left) * 60);
                }
                HttpResponse<String> rejected = server.get(path);
                assertThat(rejected.statusCode()).as(path).isEqualTo(429);
                // Jetty keeps the encoding of the writer of the page.
                assertThat(rejected.headers().firstValue("Content-Type").orElse(""))
                        .as(path)
                        .startsWith("application/problem+json");
                assertThat(rejected.headers().allValues("Retry-After")).as(path).containsExactly("60");
                assertThat(rejected.body()).as(path).startsWith("{").contains("\"status\":429");
                requireFields(path, rejected, "\"part\";r=0;t=60");
                HttpResponse<String> caught = server.get(path + "&catching=yes");
                assertThat(caught.statusCode()).as(path).isEqualTo(200);
                // What was written before is lost: Spring resets the buffer when a handler fails.
                assertThat(caught.body()).as(path).endsWith("sold out]");
                requireFields(path, caught, "\"part\";r=0;t=60");
                assertThat(server.get(path, "Accept", "text/html").statusCode())
                        .as(path)
                        .isEqualTo(429);
            }
        }
    }

    private static void requireFields(String path, HttpResponse<String> response, String limit) {
        assertThat(response.headers().allValues("RateLimit-Policy")).as(path).containsExactly(POLICY);
        assertThat(response.headers().allValues("RateLimit")).as(path).containsExactly(limit);
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @Import({Shop.class, Controllers.class})
    static class App {

        @Bean
        ManualTicker ticker() {
            return new ManualTicker();
        }

        @Bean
        ServletRegistrationBean<HttpServlet> page() {
            return serving("page", IncludedTest::include);
        }

        @Bean
        ServletRegistrationBean<HttpServlet> nested() {
            return serving("nested", (request, response) -> {
                response.getWriter().print("(");
                request.getRequestDispatcher("/handler").include(request, response);
                response.getWriter().print(")");
            });
        }

        @Bean
        ServletRegistrationBean<HttpServlet> part(Shop shop) {
            return serving("part", (request, response) -> response.getWriter().print(shop.sell()));
        }

        private static ServletRegistrationBean<HttpServlet> serving(String name, Service service) {
            ServletRegistrationBean<HttpServlet> servlet = new ServletRegistrationBean<>(
                    new HttpServlet() {
                        @Override
                        protected void doGet(HttpServletRequest request, HttpServletResponse response)
                                throws ServletException, IOException {
                            service.serve(request, response);
                        }
                    },
                    "/" + name);
            servlet.setName(name);
            return servlet;
        }

        private interface Service {

            void serve(HttpServletRequest request, HttpServletResponse response) throws ServletException, IOException;
        }
    }

    static void include(HttpServletRequest request, HttpServletResponse response) throws ServletException, IOException {
        String name = request.getParameter("named");
        RequestDispatcher included = name == null
                ? request.getRequestDispatcher(request.getParameter("of"))
                : request.getServletContext().getNamedDispatcher(name);
        response.getWriter().print("[");
        try {
            included.include(request, response);
        } catch (ServletException | RuntimeException failure) {
            if (request.getParameter("catching") == null) {
                throw failure;
            }
            Throwable cause = failure instanceof ServletException ? failure.getCause() : failure;
            assertThat(cause).isInstanceOf(RateLimitExceededException.class);
            response.getWriter().print("sold out");
        }
        response.getWriter().print("]");
    }

    @RestController
    static class Controllers {

        private final Shop shop;

        Controllers(Shop shop) {
            this.shop = shop;
        }

        @GetMapping("/controller")
        void controller(HttpServletRequest request, HttpServletResponse response) throws ServletException, IOException {
            include(request, response);
        }

        @GetMapping("/handler")
        void handler(HttpServletResponse response) throws IOException {
            response.getWriter().print(shop.sell());
        }
    }

    static class Shop {

        @RateLimited(name = "part", rate = "1/m", burst = 2, key = "clientIp")
        public String sell() {
            return "sold";
        }
    }
}
