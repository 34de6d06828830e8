package io.ratelimited.spring.autoconfigure.web;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.internals.web.RunningServer;
import io.ratelimited.spring.internals.web.RunningServer.Kind;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.File;
import java.io.IOException;
import java.net.URL;
import java.net.URLClassLoader;
import java.net.http.HttpResponse;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.catalina.webresources.TomcatURLStreamHandlerFactory;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.boot.web.servlet.ServletRegistrationBean;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/** Plain servlets of an application that has no Spring MVC: in a class loader without its archives. */
@Tag("spring-boot")
@ExtendWith(OutputCaptureExtension.class)
@Tag("slow")
class WithoutMvcTest {

    private static final String ARCHIVES = "spring-(boot-)?(webmvc|webflux|graphql).*";
    private static final String PROBLEM =
            "\"title\":\"Request cannot be satisfied as assigned quota has been exceeded\"";

    @ParameterizedTest
    @ValueSource(strings = {"TOMCAT", "JETTY"})
    void servicesAndRoutesAreRejectedAsWithSpringMvc(String server, CapturedOutput output) throws Exception {
        Map<String, String> answers = answers(server);
        for (String path : List.of("/service", "/routed/a")) {
            String name = path.equals("/service") ? "service" : "routed";
            assertThat(answers.get(path + " admitted"))
                    .as(path)
                    .isEqualTo("200 text=sold policy=\"" + name + "\";q=1;w=60 limit=\"" + name
                            + "\";r=0;t=60 retry=null type=null");
            assertThat(answers.get(path + " rejected"))
                    .as(path)
                    .startsWith("429 ")
                    .contains(PROBLEM, "\"violated-policies\":[\"" + name + "\"]", "\"instance\":\"" + path + "\"")
                    .endsWith(" policy=\"" + name + "\";q=1;w=60 limit=\"" + name
                            + "\";r=0;t=60 retry=60 type=application/problem+json");
            assertThat(answers.get(path + " in a browser"))
                    .as(path)
                    .startsWith("429 ")
                    .contains(" retry=60 ");
        }
        assertThat(answers).containsEntry("/places/1", "200").containsEntry("/places/2", "200");
        assertThat(answers.get("/invalid")).startsWith("400 ").contains("\"status\":400");
        assertThat(output).contains("Rate limits of all methods /routed/**").doesNotContain("RL-214");
    }

    /** Calls an application that the class loader of the test could not start. */
    @SuppressWarnings("unchecked")
    private static Map<String, String> answers(String server) throws Exception {
        Thread thread = Thread.currentThread();
        ClassLoader before = thread.getContextClassLoader();
        String classPath = System.getProperty("surefire.test.class.path", System.getProperty("java.class.path"));
        List<URL> urls = new ArrayList<>();
        for (String entry : List.of(classPath.split(File.pathSeparator, -1))) {
            if (!Path.of(entry).getFileName().toString().matches(ARCHIVES)) {
                urls.add(Path.of(entry).toUri().toURL());
            }
        }
        try (URLClassLoader without =
                new URLClassLoader(urls.toArray(URL[]::new), ClassLoader.getPlatformClassLoader())) {
            assertThat(without.getResource("org/springframework/web/servlet/DispatcherServlet.class"))
                    .isNull();
            thread.setContextClassLoader(without);
            return (Map<String, String>) without.loadClass(Application.class.getName())
                    .getMethod("answers", String.class)
                    .invoke(null, server);
        } finally {
            thread.setContextClassLoader(before);
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    public static class Application {

        /** The answers to requests, by what they are. */
        public static Map<String, String> answers(String kind) {
            // A process has one factory, which belongs to the class loader of the other tests.
            TomcatURLStreamHandlerFactory.disable();
            Map<String, String> answers = new TreeMap<>();
            try (RunningServer server = Kind.valueOf(kind)
                    .start(
                            List.of(Application.class),
                            "rate-limit.limits.routed.rate=1/m",
                            "rate-limit.limits.places.algorithm=concurrency",
                            "rate-limit.limits.places.max-concurrent=1",
                            "rate-limit.routes[0].path=/routed/**",
                            "rate-limit.routes[0].limits=routed",
                            "rate-limit.routes[0].key=clientIp",
                            "rate-limit.routes[1].path=/places/*",
                            "rate-limit.routes[1].limits=places",
                            "rate-limit.routes[1].key=clientIp")) {
                for (String path : List.of("/service", "/routed/a")) {
                    answers.put(path + " admitted", described(server.get(path)));
                    answers.put(path + " rejected", described(server.get(path)));
                    answers.put(path + " in a browser", described(server.get(path, "Accept", "text/html")));
                }
                answers.put("/places/1", "" + server.get("/places/1").statusCode());
                answers.put("/places/2", "" + server.get("/places/2").statusCode());
                answers.put("/invalid", described(server.get("/invalid")));
            }
            return answers;
        }

        private static String described(HttpResponse<String> response) {
            return response.statusCode() + " text=" + response.body() + " policy="
                    + header(response, "RateLimit-Policy") + " limit=" + header(response, "RateLimit") + " retry="
                    + header(response, "Retry-After") + " type=" + header(response, "Content-Type");
        }

        private static @Nullable String header(HttpResponse<String> response, String name) {
            return response.headers().firstValue(name).orElse(null);
        }

        @Bean
        ManualTicker ticker() {
            return new ManualTicker();
        }

        @Bean
        Shop shop() {
            return new Shop();
        }

        @Bean
        ServletRegistrationBean<HttpServlet> service(Shop shop) {
            return serving("/service", shop::sell);
        }

        @Bean
        ServletRegistrationBean<HttpServlet> invalid(Shop shop) {
            return serving("/invalid", () -> shop.sellMany(-1));
        }

        @Bean
        ServletRegistrationBean<HttpServlet> routed() {
            return serving("/routed/*", () -> "sold");
        }

        @Bean
        ServletRegistrationBean<HttpServlet> places() {
            return serving("/places/*", () -> "sold");
        }

        private static ServletRegistrationBean<HttpServlet> serving(String path, Service service) {
            ServletRegistrationBean<HttpServlet> servlet = new ServletRegistrationBean<>(
                    new HttpServlet() {
                        @Override
                        protected void doGet(HttpServletRequest request, HttpServletResponse response)
                                throws IOException {
                            response.getOutputStream().print(service.serve());
                        }
                    },
                    path);
            servlet.setName(path.replaceAll("\\W", ""));
            return servlet;
        }

        private interface Service {

            String serve();
        }
    }

    static class Shop {

        @RateLimited(name = "service", rate = "1/m", key = "clientIp")
        public String sell() {
            return "sold";
        }

        @RateLimited(name = "many", algorithm = Algorithm.GCRA, rate = "5/m", permits = "#number")
        public String sellMany(int number) {
            return "sold " + number;
        }
    }
}
