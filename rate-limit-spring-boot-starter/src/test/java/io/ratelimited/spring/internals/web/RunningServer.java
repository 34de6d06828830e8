package io.ratelimited.spring.internals.web;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.testing.ManualTicker;
import java.io.IOException;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.io.DefaultResourceLoader;
import org.springframework.security.crypto.password.PasswordEncoder;

/** An application on a server of one kind, on a port of its own, and a client of it. */
public final class RunningServer implements AutoCloseable {

    private static final String BOOT = "org.springframework.boot.";
    /** For applications that anybody may use, on a class path that has Spring Security. */
    public static final String SECURITY = Stream.of(
                    "SecurityAutoConfiguration",
                    "web.servlet.SecurityFilterAutoConfiguration",
                    "web.servlet.ServletWebSecurityAutoConfiguration",
                    "web.reactive.ReactiveWebSecurityAutoConfiguration",
                    "actuate.web.servlet.ManagementWebSecurityAutoConfiguration",
                    "actuate.web.reactive.ReactiveManagementWebSecurityAutoConfiguration",
                    "UserDetailsServiceAutoConfiguration",
                    "ReactiveUserDetailsServiceAutoConfiguration")
            .map((BOOT + "security.autoconfigure.")::concat)
            .collect(Collectors.joining(","));

    /** For applications whose properties do not say where Redis is: a part of the time of each start. */
    private static final String REDIS = Stream.of(
                    "DataRedisAutoConfiguration",
                    "DataRedisReactiveAutoConfiguration",
                    "health.DataRedisHealthContributorAutoConfiguration",
                    "health.DataRedisReactiveHealthContributorAutoConfiguration",
                    "observation.LettuceObservationAutoConfiguration")
            .map((BOOT + "data.redis.autoconfigure.")::concat)
            .collect(Collectors.joining(","));

    /** For applications on Tomcat. */
    public static final String WITHOUT_REDIS = Kind.TOMCAT.excluded + "," + REDIS;

    /** For applications on Tomcat that anybody may use. */
    public static final String WITHOUT = WITHOUT_REDIS + "," + SECURITY;

    public final ConfigurableApplicationContext context;
    private final int port;

    private RunningServer(ConfigurableApplicationContext context) {
        this.context = context;
        this.port = context.getEnvironment().getRequiredProperty("local.server.port", Integer.class);
    }

    /** Which server answers; the others are on the class path too. */
    public enum Kind {
        TOMCAT(
                WebApplicationType.SERVLET,
                "jetty.autoconfigure.servlet.JettyServletWebServerAutoConfiguration",
                "jetty.autoconfigure.actuate.web.server.JettyServletManagementContextAutoConfiguration"),
        JETTY(
                WebApplicationType.SERVLET,
                "tomcat.autoconfigure.servlet.TomcatServletWebServerAutoConfiguration",
                "tomcat.autoconfigure.actuate.web.server.TomcatServletManagementContextAutoConfiguration"),
        REACTOR_NETTY(
                WebApplicationType.REACTIVE,
                "tomcat.autoconfigure.reactive.TomcatReactiveWebServerAutoConfiguration",
                "tomcat.autoconfigure.actuate.web.server.TomcatReactiveManagementContextAutoConfiguration",
                "jetty.autoconfigure.reactive.JettyReactiveWebServerAutoConfiguration",
                "jetty.autoconfigure.actuate.web.server.JettyReactiveManagementContextAutoConfiguration");

        private final WebApplicationType type;
        private final String excluded;

        Kind(WebApplicationType type, String... excluded) {
            this.type = type;
            this.excluded = Stream.of(excluded).map(BOOT::concat).collect(Collectors.joining(","));
        }

        /** For anybody to use, without the actuator unless a property is about it. */
        public RunningServer start(List<Class<?>> sources, String... properties) {
            return start(isSet("management.", properties), excluded + "," + SECURITY, sources, properties);
        }

        /** With Spring Security as Spring Boot wires it; passwords of users are plain. */
        public RunningServer startSecured(List<Class<?>> sources, String... properties) {
            return startSecured(true, sources, properties);
        }

        /** @param actuator which brings a chain of Spring Security's filters that is a bean */
        public RunningServer startSecured(boolean actuator, List<Class<?>> sources, String... properties) {
            List<Class<?>> all = new ArrayList<>(sources);
            all.add(PlainPasswords.class);
            return start(actuator, excluded, all, properties);
        }

        private static boolean isSet(String prefix, String... properties) {
            return Stream.of(properties).anyMatch(property -> property.startsWith(prefix));
        }

        private RunningServer start(boolean actuator, String without, List<Class<?>> sources, String... properties) {
            List<String> all = new ArrayList<>(List.of(properties));
            all.add("server.port=0");
            all.add("spring.main.banner-mode=off");
            all.add("spring.reactor.netty.shutdown-quiet-period=0s");
            all.add("test.actuator=" + actuator);
            boolean redis = isSet("spring.data.redis.", properties);
            all.add("spring.autoconfigure.exclude=" + (redis ? without : without + "," + REDIS));
            return new RunningServer(new SpringApplicationBuilder(sources.toArray(Class<?>[]::new))
                    .web(type)
                    .resourceLoader(new DefaultResourceLoader(sources.get(0).getClassLoader()))
                    .properties(all.toArray(String[]::new))
                    .run());
        }
    }

    /** Spring Security's own encoder takes a tenth of a second of processor time for a password. */
    @Configuration(proxyBeanMethods = false)
    public static class PlainPasswords implements PasswordEncoder {

        @Override
        public String encode(@Nullable CharSequence password) {
            return String.valueOf(password);
        }

        @Override
        public boolean matches(@Nullable CharSequence password, @Nullable String encoded) {
            return encoded != null && encode(password).equals(encoded.replace("{noop}", ""));
        }
    }

    public ManualTicker ticker() {
        return context.getBean(ManualTicker.class);
    }

    public HttpResponse<String> get(String path, String... headers) {
        return send("GET", path, headers);
    }

    public HttpResponse<String> send(String method, String path, String... headers) {
        HttpRequest.Builder request =
                HttpRequest.newBuilder(uri(path)).method(method, HttpRequest.BodyPublishers.noBody());
        if (headers.length > 0) {
            request.headers(headers);
        }
        return client().sendAsync(request.build(), BodyHandlers.ofString())
                .orTimeout(20, TimeUnit.SECONDS)
                .join();
    }

    public CompletableFuture<HttpResponse<String>> getAsync(String path) {
        return client().sendAsync(HttpRequest.newBuilder(uri(path)).build(), BodyHandlers.ofString());
    }

    public Socket connect() throws IOException {
        return new Socket("localhost", port);
    }

    /** One for each request: a connection used before now and then gets no answer of Reactor Netty, limits or not. */
    public static HttpClient client() {
        return HttpClient.newHttpClient();
    }

    public int port() {
        return port;
    }

    public URI uri(String path) {
        return URI.create("http://localhost:" + port + path);
    }

    public static Map<String, Map<String, Object>> policies(HttpResponse<?> response) {
        return StructuredList.parse(only(response, "RateLimit-Policy"));
    }

    public static Map<String, Map<String, Object>> states(HttpResponse<?> response) {
        return StructuredList.parse(only(response, "RateLimit"));
    }

    private static String only(HttpResponse<?> response, String field) {
        assertThat(response.headers().allValues(field)).as(field).hasSize(1);
        return response.headers().firstValue(field).orElseThrow();
    }

    @Override
    public void close() {
        context.close();
    }
}
