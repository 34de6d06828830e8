package io.ratelimited.benchmarks.real;

import io.ratelimited.spring.RateLimited;
import java.io.IOException;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.Semaphore;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

/**
 * An application whose requests need a connection of a pool for some time. Prints its port, and ends with its standard
 * input. Takes the limit ({@code none}, {@code adaptive} or the number of a fixed one) and whether threads are virtual.
 */
public final class OverloadServer {

    /** Connections of the pool. */
    static final int CONNECTIONS = 5;

    /** The time in milliseconds for which a request needs one. */
    static final int BUSY_MILLIS = 50;

    private OverloadServer() {}

    /** Runs until its input ends. */
    public static void main(String[] args) throws IOException {
        String limit = args[0];
        Map<String, Object> properties = new HashMap<>(Map.of(
                "spring.threads.virtual.enabled", args[1],
                "bucket4j.enabled", "false",
                "spring.cloud.gateway.server.webflux.enabled", "false",
                "spring.main.banner-mode", "off",
                "logging.level.root", "error",
                "server.port", "0",
                "server.address", "127.0.0.1"));
        switch (limit) {
            case "none" -> properties.put("rate-limit.enabled", "false");
            case "adaptive" -> {
                properties.put("rate-limit.limits.report.algorithm", "adaptive");
                properties.put("rate-limit.limits.report.late-after", OverloadLoad.DEADLINE_MILLIS + "ms");
            }
            default -> {
                properties.put("rate-limit.limits.report.algorithm", "concurrency");
                properties.put("rate-limit.limits.report.max-concurrent", limit);
            }
        }
        SpringApplication application = new SpringApplication(Application.class);
        application.setDefaultProperties(properties);
        try (ConfigurableApplicationContext context = application.run()) {
            System.out.println(context.getEnvironment().getRequiredProperty("local.server.port"));
            while (System.in.read() >= 0) {
                // Until the other process closes it.
            }
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @Import(Reports.class)
    static class Application {}

    @RestController
    static class Reports {

        private final Semaphore connections = new Semaphore(CONNECTIONS, true);

        @GetMapping("/report")
        @RateLimited("report")
        public String report() throws InterruptedException {
            connections.acquire();
            try {
                Thread.sleep(BUSY_MILLIS);
            } finally {
                connections.release();
            }
            return "report";
        }
    }
}
