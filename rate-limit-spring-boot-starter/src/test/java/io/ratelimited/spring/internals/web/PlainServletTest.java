package io.ratelimited.spring.internals.web;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.internals.web.RunningServer.Kind;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.web.servlet.ServletRegistrationBean;
import org.springframework.boot.webmvc.autoconfigure.WebMvcAutoConfiguration;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;

/** Rejections of services that other servlets than the dispatcher servlet call. */
@Tag("spring-boot")
@Tag("slow")
class PlainServletTest {

    @ParameterizedTest
    @CsvSource({"TOMCAT, true", "TOMCAT, false", "JETTY, true", "JETTY, false"})
    void aServiceBelowAPlainServletIsRejectedAsBelowAController(Kind kind, boolean mvc) {
        try (RunningServer server = kind.start(List.of(mvc ? WithMvc.class : WithoutMvc.class))) {
            for (String path : List.of("plain", "address", "future", "written", "writer", "async")) {
                server.get("/" + path + "/x");
                if (path.equals("writer")) {
                    assertThat(server.get("/writer/x").statusCode()).isEqualTo(429);
                    assertThat(server.get("/writer/x").body()).contains("\"status\":429");
                } else {
                    RejectionAttacksTest.requireProblem(server.get("/" + path + "/x"), 429);
                }
                assertThat(server.get("/" + path + "/x", "Accept", "text/html").statusCode())
                        .as(path)
                        .isEqualTo(429);
            }
        }
    }

    static class Shop {

        @RateLimited(name = "plain", rate = "1/m")
        public void plain() {}

        @RateLimited(name = "address", rate = "1/m", key = "clientIp")
        public void ofAddress() {}

        @RateLimited(name = "future", rate = "1/m")
        public CompletableFuture<String> future() {
            return CompletableFuture.completedFuture("bought");
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @Import(Servlets.class)
    static class WithMvc {}

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration(exclude = WebMvcAutoConfiguration.class)
    @Import(Servlets.class)
    static class WithoutMvc {}

    @Configuration(proxyBeanMethods = false)
    static class Servlets {

        @Bean
        ManualTicker ticker() {
            return new ManualTicker();
        }

        @Bean
        Shop shop() {
            return new Shop();
        }

        @Bean
        ServletRegistrationBean<HttpServlet> plain(Shop shop) {
            return serving("plain", (request, response) -> shop.plain());
        }

        @Bean
        ServletRegistrationBean<HttpServlet> address(Shop shop) {
            return serving("address", (request, response) -> shop.ofAddress());
        }

        @Bean
        ServletRegistrationBean<HttpServlet> future(Shop shop) {
            return serving("future", (request, response) -> shop.future().join());
        }

        @Bean
        ServletRegistrationBean<HttpServlet> written(Shop shop) {
            return serving("written", (request, response) -> {
                response.setContentType("text/plain");
                response.getOutputStream().print("bought");
                shop.plain();
            });
        }

        /** The encoding of a writer is fixed: Jetty lets nobody remove the content type then. */
        @Bean
        ServletRegistrationBean<HttpServlet> writer(Shop shop) {
            return serving("writer", (request, response) -> {
                response.setContentType("text/plain;charset=utf-8");
                response.getWriter().print("bought");
                shop.plain();
            });
        }

        @Bean
        ServletRegistrationBean<HttpServlet> async(Shop shop) {
            return serving("async", (request, response) -> {
                if (request.getAttribute("again") == null) {
                    request.setAttribute("again", "yes");
                    request.startAsync().dispatch();
                } else {
                    shop.plain();
                }
            });
        }

        private static ServletRegistrationBean<HttpServlet> serving(String name, Service service) {
            ServletRegistrationBean<HttpServlet> servlet = new ServletRegistrationBean<>(
                    new HttpServlet() {
                        @Override
                        protected void doGet(HttpServletRequest request, HttpServletResponse response)
                                throws IOException {
                            service.serve(request, response);
                        }
                    },
                    "/" + name + "/*");
            servlet.setName(name);
            return servlet;
        }

        private interface Service {

            void serve(HttpServletRequest request, HttpServletResponse response) throws IOException;
        }
    }
}
