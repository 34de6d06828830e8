package io.ratelimited.benchmarks.real;

import io.ratelimited.spring.internals.limit.LimitRegistry;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Random;
import java.util.concurrent.Phaser;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.locks.LockSupport;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Configuration;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.RestController;
import reactor.core.publisher.Mono;

/**
 * A load that harms nobody, on real servers with {@code ADAPTIVE} on all routes: how many requests are rejected? Quick requests,
 * slower ones and reports share a limit; a page loads many things at once, and the service is quiet for a while. Prints a line
 * for Tomcat and one for Reactor Netty. Takes the seconds of a phase.
 */
public final class RealHarmless {

    /** Of the libraries that are there for other benchmarks. */
    private static final String WITHOUT = "org.springframework.boot.tomcat.autoconfigure.reactive."
            + "TomcatReactiveWebServerAutoConfiguration,"
            + "org.springframework.cloud.gateway.config.GatewayRedisAutoConfiguration";

    private final HttpClient client =
            HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    private final Random random = new Random(1);
    private final Phaser open = new Phaser(1);
    private final int port;
    private final long begun = System.nanoTime();
    private final AtomicIntegerArray offered = new AtomicIntegerArray(1000);
    private final AtomicIntegerArray rejected = new AtomicIntegerArray(1000);
    private final AtomicIntegerArray failed = new AtomicIntegerArray(1000);

    private RealHarmless(int port) {
        this.port = port;
    }

    /** Runs both servers one after the other. */
    public static void main(String[] args) {
        int seconds = Integer.parseInt(args[0]);
        System.out.println(
                "| server | requests | rejected | most rejected in ten seconds | failed | limit in the end |");
        System.out.println("|---|---:|---:|---:|---:|---:|");
        for (boolean reactive : List.of(false, true)) {
            try (ConfigurableApplicationContext context = start(reactive)) {
                int port = context.getEnvironment().getRequiredProperty("local.server.port", Integer.class);
                RealHarmless load = new RealHarmless(port);
                load.run(seconds);
                int limit = Objects.requireNonNull(context.getBean(LimitRegistry.class)
                                .get("all")
                                .limiter()
                                .foundLimit())
                        .limit();
                System.out.println((reactive ? "| Reactor Netty | " : "| Tomcat | ") + load.cells() + limit + " |");
            }
        }
        // The client has threads that would keep the process.
        System.exit(0);
    }

    private static ConfigurableApplicationContext start(boolean reactive) {
        SpringApplication application =
                new SpringApplication(Application.class, reactive ? Reactive.class : Blocking.class);
        application.setWebApplicationType(reactive ? WebApplicationType.REACTIVE : WebApplicationType.SERVLET);
        Map<String, Object> properties = new HashMap<>(Map.of(
                "spring.autoconfigure.exclude", WITHOUT,
                "bucket4j.enabled", "false",
                "spring.cloud.gateway.server.webflux.enabled", "false",
                "spring.main.banner-mode", "off",
                "logging.level.root", "error",
                "server.port", "0",
                "server.address", "127.0.0.1"));
        properties.put("rate-limit.limits.all.algorithm", "adaptive");
        properties.put("rate-limit.routes[0].path", "/**");
        properties.put("rate-limit.routes[0].limits", "all");
        application.setDefaultProperties(properties);
        return application.run();
    }

    /** Each phase begins with a page that loads sixty things. */
    private void run(int seconds) {
        phase(seconds, 50, 0, 0);
        phase(seconds, 0, 60, 0);
        phase(seconds, 100, 30, 4);
        phase(seconds, 1, 0, 0);
        phase(seconds, 150, 60, 8);
        open.arriveAndAwaitAdvance();
    }

    /** Requests a second of 5 ms, of 100 ms and of one second, at random times. */
    private void phase(int seconds, double quick, double slow, double reports) {
        for (int i = 0; i < 60; i++) {
            send(50);
        }
        double rate = quick + slow + reports;
        long due = System.nanoTime();
        long end = due + TimeUnit.SECONDS.toNanos(seconds);
        while (due - end < 0) {
            for (long left = due - System.nanoTime(); left > 0; left = due - System.nanoTime()) {
                LockSupport.parkNanos(left);
            }
            double drawn = random.nextDouble() * rate;
            send(drawn < quick ? 5 : drawn < quick + slow ? 100 : 1000);
            due += (long) (-Math.log(1 - random.nextDouble()) / rate * 1e9);
        }
    }

    private void send(int millis) {
        int tens = (int) ((System.nanoTime() - begun) / 10_000_000_000L);
        HttpRequest request = HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + "/wait/" + millis))
                .timeout(Duration.ofSeconds(30))
                .build();
        open.register();
        offered.incrementAndGet(tens);
        client.sendAsync(request, BodyHandlers.discarding()).whenComplete((response, failure) -> {
            if (response != null && response.statusCode() == 503) {
                rejected.incrementAndGet(tens);
            } else if (response == null || response.statusCode() != 200) {
                failed.incrementAndGet(tens);
            }
            open.arriveAndDeregister();
        });
    }

    private String cells() {
        int all = 0;
        int refusals = 0;
        int failures = 0;
        List<Double> shares = new ArrayList<>(List.of(0.0));
        for (int tens = 0; tens < offered.length(); tens++) {
            all += offered.get(tens);
            refusals += rejected.get(tens);
            failures += failed.get(tens);
            if (offered.get(tens) > 0) {
                shares.add((double) rejected.get(tens) / offered.get(tens));
            }
        }
        return String.format(
                Locale.ROOT,
                "%d | %d (%.2f %%) | %.2f %% | %d | ",
                all,
                refusals,
                100.0 * refusals / all,
                100 * shares.stream().mapToDouble(Double::doubleValue).max().orElse(0),
                failures);
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    static class Application {}

    @RestController
    static class Blocking {

        @GetMapping("/wait/{millis}")
        public String waits(@PathVariable("millis") int millis) throws InterruptedException {
            Thread.sleep(millis);
            return "done";
        }
    }

    @RestController
    static class Reactive {

        @GetMapping("/wait/{millis}")
        public Mono<String> waits(@PathVariable("millis") int millis) {
            return Mono.delay(Duration.ofMillis(millis)).thenReturn("done");
        }
    }
}
