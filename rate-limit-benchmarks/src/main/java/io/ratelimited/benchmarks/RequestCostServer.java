package io.ratelimited.benchmarks;

import io.ratelimited.spring.RateLimited;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.stream.IntStream;
import org.aspectj.lang.ProceedingJoinPoint;
import org.aspectj.lang.annotation.Around;
import org.aspectj.lang.annotation.Aspect;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Configuration;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.context.request.RequestContextHolder;
import org.springframework.web.context.request.ServletRequestAttributes;
import tools.jackson.databind.json.JsonMapper;

/**
 * The server of {@link RequestCost}: an application of each kind, Spring MVC on Tomcat, all in one process, whose handler
 * writes a list of people as JSON. Prints a port a line, and ends with its standard input.
 */
public final class RequestCostServer {

    /** How much work a request is. */
    private static final int PEOPLE = Integer.getInteger("people");

    private static final String STARTER = "io.ratelimited.spring.autoconfigure.RateLimitAutoConfiguration";
    private static final String AOP = "org.springframework.boot.autoconfigure.aop.AopAutoConfiguration";

    private static final JsonMapper JSON = new JsonMapper();

    private RequestCostServer() {}

    /** Takes the kinds, as {@link RequestCost} names them. */
    public static void main(String[] kinds) throws IOException {
        List<ConfigurableApplicationContext> started = new ArrayList<>();
        for (String kind : kinds) {
            ConfigurableApplicationContext context = start(kind);
            started.add(context);
            System.out.println(context.getEnvironment().getRequiredProperty("local.server.port"));
        }
        while (System.in.read() >= 0) {
            // Until the other process closes it.
        }
        started.forEach(ConfigurableApplicationContext::close);
    }

    private static ConfigurableApplicationContext start(String kind) {
        Class<?>[] sources = {Application.class, kind.equals("keyed") ? Keyed.class : Plain.class};
        String excluded = STARTER + "," + AOP;
        if (kind.equals("aspect")) {
            sources = new Class<?>[] {Application.class, Plain.class, Aspects.class};
            excluded = STARTER;
        } else if (kind.equals("idle") || kind.equals("keyed")) {
            excluded = "";
        }
        SpringApplication application = new SpringApplication(sources);
        application.setDefaultProperties(Map.of(
                "spring.autoconfigure.exclude", excluded,
                "bucket4j.enabled", "false",
                "spring.cloud.gateway.server.webflux.enabled", "false",
                "spring.main.banner-mode", "off",
                "logging.level.root", "error",
                "server.port", "0",
                "server.address", "127.0.0.1",
                "server.tomcat.max-keep-alive-requests", "-1"));
        return application.run();
    }

    private static String people() {
        List<Person> people = IntStream.range(0, PEOPLE)
                .mapToObj(i -> new Person(i, "First" + i, "Last" + i, List.of("one", "two")))
                .toList();
        return JSON.writeValueAsString(people);
    }

    private record Person(int id, String firstName, String lastName, List<String> skills) {}

    /** Without a limit. */
    @RestController
    static class Plain {

        @GetMapping(path = "/people", produces = "application/json")
        public String people() {
            return RequestCostServer.people();
        }
    }

    /** With a limit for each address, which refuses nobody. */
    @RestController
    static class Keyed {

        @RateLimited(name = "people", rate = "1000000000/s", key = "clientIp")
        @GetMapping(path = "/people", produces = "application/json")
        public String people() {
            return RequestCostServer.people();
        }
    }

    /** What every limit by annotation with header fields does, and nothing else. */
    @Aspect
    static class Aspects {

        @Around("within(io.ratelimited.benchmarks.RequestCostServer.Plain)")
        public Object proceed(ProceedingJoinPoint call) throws Throwable {
            HttpServletResponse response = Objects.requireNonNull(
                    ((ServletRequestAttributes) RequestContextHolder.currentRequestAttributes()).getResponse());
            response.setHeader("RateLimit-Policy", "\"people\";q=1000000000;w=1");
            response.setHeader("RateLimit", "\"people\";r=999999999;t=1");
            return call.proceed();
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    static class Application {}
}
