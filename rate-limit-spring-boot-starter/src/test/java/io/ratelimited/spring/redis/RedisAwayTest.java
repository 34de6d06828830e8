package io.ratelimited.spring.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.tuple;

import com.jayway.jsonpath.JsonPath;
import io.micrometer.core.instrument.MeterRegistry;
import io.ratelimited.core.Decision;
import io.ratelimited.core.Threads;
import io.ratelimited.redis.RedisBackend;
import io.ratelimited.redis.RedisHealth.State;
import io.ratelimited.redis.RedisProcess;
import io.ratelimited.redis.RedisUnavailableException;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.internals.web.RunningServer;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.http.HttpStatus;
import org.springframework.web.bind.annotation.ExceptionHandler;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.ResponseStatus;
import org.springframework.web.bind.annotation.RestController;

/** What callers and operators see of an application before, while and after its Redis is away. */
@ExtendWith(OutputCaptureExtension.class)
@Tag("once")
@Tag("slow")
class RedisAwayTest {

    private final HttpClient client = HttpClient.newHttpClient();
    private final RedisProcess server = RedisProcess.start();
    private ConfigurableApplicationContext context;

    private void startConnected() {
        start();
        Threads.until(() -> backend().health().state() == State.UP);
    }

    private void start(String... more) {
        context = new SpringApplicationBuilder(Application.class)
                .web(WebApplicationType.SERVLET)
                .properties(
                        "server.port=0",
                        "server.shutdown=immediate",
                        "spring.main.banner-mode=off",
                        "spring.autoconfigure.exclude=" + RunningServer.SECURITY,
                        "spring.data.redis.port=" + server.port(),
                        "management.endpoints.web.exposure.include=health,ratelimits",
                        "management.endpoint.health.show-details=always",
                        "management.health.redis.enabled=false",
                        "rate-limit.backend=redis",
                        // Redis is away where its port refuses connections, not where a busy machine holds up a reply.
                        "rate-limit.redis.timeout=20s",
                        "rate-limit.redis.expected-nodes=2",
                        "rate-limit.limits.search.rate=10/s",
                        "rate-limit.limits.search.max-overshoot=5%",
                        "rate-limit.limits.login.rate=5/h",
                        "rate-limit.limits.login.on-failure=deny",
                        "rate-limit.limits.news.rate=5/h",
                        "rate-limit.limits.news.on-failure=allow",
                        "rate-limit.limits.audit.rate=5/h",
                        "rate-limit.limits.audit.on-failure=throw")
                .properties(more)
                .run();
    }

    @AfterEach
    void close() {
        context.close();
        server.close();
    }

    @Test
    void theEndpointShowsAndChangesALimit() throws Exception {
        startConnected();
        limits().tryAcquire("login", null, 2);

        String shown = get("/actuator/ratelimits/login").body();
        assertThat(JsonPath.<Map<String, Object>>read(shown, "$"))
                .containsEntry("backend", "redis")
                .containsEntry("onFailure", "deny")
                .containsEntry("source", "redis")
                .containsEntry("remaining", 3);
        assertThat(JsonPath.<Map<String, Object>>read(
                        get("/actuator/ratelimits/search").body(), "$"))
                .containsEntry("onFailure", "local")
                .containsEntry("maxOvershoot", "5%");

        HttpResponse<String> changed = client.send(
                request("/actuator/ratelimits/login")
                        .header("Content-Type", "application/json")
                        .POST(BodyPublishers.ofString("{\"burst\": 50}"))
                        .build(),
                HttpResponse.BodyHandlers.ofString());
        assertThat(JsonPath.<Integer>read(changed.body(), "$.remaining")).isEqualTo(3);

        assertThat(delete("/actuator/ratelimits/login").statusCode()).isEqualTo(204);
        assertThat(delete("/actuator/ratelimits/unknown").statusCode()).isEqualTo(404);
        assertThat(limits().peek("login", null).remaining()).isEqualTo(50);
    }

    @Test
    void theMetersSayWhoDecided() throws Exception {
        startConnected();
        assertThat(count("login", "admitted", "redis")).isZero();
        assertThat(count("login", "rejected", "redis")).isZero();
        // An alert on an outage sees the first decision of each limit as an increase.
        assertThat(count("login", "rejected", "unavailable")).isZero();
        assertThat(count("news", "admitted", "fallback")).isZero();
        assertThat(count("search", "admitted", "fallback")).isZero();
        assertThat(count("search", "rejected", "fallback")).isZero();

        for (int i = 0; i < 7; i++) {
            get("/login");
        }

        assertThat(count("login", "admitted", "redis")).isEqualTo(5);
        assertThat(count("login", "rejected", "redis")).isEqualTo(1);
        assertThat(count("login", "rejected", "deny-cache")).isEqualTo(1);
    }

    @Test
    void anOutageIsSeenAndEndsByItself(CapturedOutput output) throws Exception {
        startConnected();
        assertThat(get("/login").statusCode()).isEqualTo(200);
        assertHealth("UP", "UP", "redis");

        server.kill();
        callUntil(State.DOWN);

        assertHealth("DEGRADED", "DOWN", "fallback", "unavailable");
        assertThat(get("/actuator/health").statusCode()).isEqualTo(200);
        assertThat(JsonPath.<String>read(get("/actuator/health").body(), "$.status"))
                .isEqualTo("UP");

        HttpResponse<String> denied = get("/login");
        assertThat(denied.statusCode()).isEqualTo(503);
        assertThat(denied.headers().firstValue("Retry-After")).isEmpty();
        assertThat(get("/news").statusCode()).isEqualTo(200);
        assertThat(count("login", "rejected", "unavailable")).isPositive();
        assertThat(count("news", "admitted", "fallback")).isPositive();
        Threads.until(() -> get("/search").statusCode() == 200);
        assertThat(count("search", "admitted", "fallback")).isPositive();
        assertThat(get("/audit").statusCode()).isEqualTo(503);
        assertThatThrownBy(() -> limits().tryAcquire("audit", null)).isInstanceOf(RedisUnavailableException.class);

        assertThat(JsonPath.<String>read(get("/actuator/ratelimits/search").body(), "$.source"))
                .isEqualTo("fallback");
        HttpResponse<String> unknown = get("/actuator/ratelimits/audit");
        assertThat(unknown.statusCode()).isEqualTo(200);
        assertThat(JsonPath.<String>read(unknown.body(), "$.error"))
                .contains("limit 'audit' could not be decided by Redis: ");

        HttpResponse<String> kept = delete("/actuator/ratelimits/login");
        assertThat(kept.statusCode()).isEqualTo(503);
        assertThat(JsonPath.<String>read(kept.body(), "$.error"))
                .contains("limit 'login' could not be reset by Redis: ", "Try again");

        server.restart();
        Threads.until(() -> backend().health().state() == State.UP);

        assertThat(delete("/actuator/ratelimits/login").statusCode()).isEqualTo(204);
        assertThat(get("/login").statusCode()).isEqualTo(200);
        assertHealth("UP", "UP", "redis");
        assertThat(output.getAll().lines().filter(line -> line.contains("Redis is unavailable (")))
                .singleElement()
                .asString()
                .contains("WARN");
        assertThat(output.getAll().lines().filter(line -> line.contains("Redis is available again")))
                .hasSize(1);
    }

    @Test
    void theEndpointShowsCallsInFlightOnlyWhileRedisCountsThem() throws Exception {
        start(
                "rate-limit.limits.report.algorithm=concurrency",
                "rate-limit.limits.report.max-concurrent=100",
                "rate-limit.limits.export.algorithm=concurrency",
                "rate-limit.limits.export.max-concurrent=100",
                "rate-limit.limits.export.on-failure=deny");
        Threads.until(() -> backend().health().state() == State.UP);
        limits().reserve("report", null, 3);
        assertThat(JsonPath.<Integer>read(get("/actuator/ratelimits/report").body(), "$.inFlight"))
                .isEqualTo(3);

        server.kill();
        callUntil(State.DOWN);

        assertThat(JsonPath.<Map<String, Object>>read(
                        get("/actuator/ratelimits/report").body(), "$"))
                .containsEntry("source", "fallback")
                .doesNotContainKey("inFlight");
        assertThat(JsonPath.<Map<String, Object>>read(
                        get("/actuator/ratelimits/export").body(), "$"))
                .containsEntry("source", "unavailable")
                .doesNotContainKey("inFlight");
    }

    @Test
    void theFirstRequestOfEachCallerGoesThoughRedisHasNeverBeenThere() {
        server.kill();
        start("rate-limit.redis.expected-nodes=3", "rate-limit.limits.welcome.rate=5/h");

        assertThat(limits().tryAcquire("welcome", "alice")).isTrue();
        assertThat(limits().tryAcquire("welcome", "alice")).isFalse();
        assertThat(limits().tryAcquire("welcome", "bob")).isTrue();
    }

    @Test
    void aQuotaSaysWhatIsLeftWithoutRedis() {
        server.kill();
        start(
                "rate-limit.limits.search.key='all'",
                "rate-limit.limits.login.key='all'",
                "rate-limit.limits.news.key='all'");

        assertThat(limits().remaining("ann"))
                .extracting(Decision::limit, Decision::admitted, Decision::remaining, Decision::source)
                .containsExactly(
                        tuple("login", false, 0L, Decision.Source.UNAVAILABLE),
                        tuple("news", true, 1L, Decision.Source.FALLBACK),
                        tuple("search", true, 5L, Decision.Source.FALLBACK));

        context.close();
        start("rate-limit.limits.audit.key='all'");
        assertThatThrownBy(() -> limits().remaining("ann")).isInstanceOf(RedisUnavailableException.class);
    }

    @Test
    void anApplicationStartsWithoutItsRedis() throws Exception {
        server.kill();

        // As the page on operations tells to make it count.
        start(
                "management.endpoint.health.status.order=down, out-of-service, degraded, up, unknown",
                "management.endpoint.health.status.http-mapping.degraded=503");

        assertThat(get("/actuator/health").statusCode()).isEqualTo(503);
        assertThat(JsonPath.<String>read(get("/actuator/health").body(), "$.status"))
                .isEqualTo("DEGRADED");
        assertThat(get("/login").statusCode()).isEqualTo(503);
        assertThat(get("/news").statusCode()).isEqualTo(200);

        server.restart();
        Threads.until(() -> backend().health().state() == State.UP);
        assertThat(get("/login").statusCode()).isEqualTo(200);
    }

    /** Calls, as long as it takes for the circuit breaker to open. */
    private void callUntil(State state) {
        Threads.until(() -> {
            limits().tryAcquire("news", null);
            return backend().health().state() == state;
        });
    }

    private void assertHealth(String status, String redis, String... sources) throws Exception {
        HttpResponse<String> health = get("/actuator/health/rateLimit");
        assertThat(health.statusCode()).isEqualTo(200);
        assertThat(JsonPath.<String>read(health.body(), "$.status")).isEqualTo(status);
        assertThat(JsonPath.<Map<String, Object>>read(health.body(), "$.details"))
                .containsEntry("redis", redis)
                .containsEntry("nodes", 2)
                .containsKeys("since", "calls", "timeouts", "errors");
        assertThat(JsonPath.<List<String>>read(health.body(), "$.details.source"))
                .containsExactly(sources);
    }

    private double count(String limit, String outcome, String source) {
        return context.getBean(MeterRegistry.class)
                .get("rate.limit.decisions")
                .tags("limit", limit, "outcome", outcome, "source", source)
                .counter()
                .count();
    }

    private RateLimits limits() {
        return context.getBean(RateLimits.class);
    }

    private RedisBackend backend() {
        return context.getBean(RedisBackend.class);
    }

    private HttpResponse<String> get(String path) throws Exception {
        return client.send(request(path).build(), HttpResponse.BodyHandlers.ofString());
    }

    private HttpResponse<String> delete(String path) throws Exception {
        return client.send(request(path).DELETE().build(), HttpResponse.BodyHandlers.ofString());
    }

    private HttpRequest.Builder request(String path) {
        return HttpRequest.newBuilder(
                URI.create("http://localhost:" + context.getEnvironment().getProperty("local.server.port") + path));
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @Import(Shop.class)
    static class Application {}

    @RestController
    static class Shop {

        @GetMapping("/search")
        @RateLimited("search")
        public String search() {
            return "found";
        }

        @GetMapping("/login")
        @RateLimited("login")
        public String login() {
            return "in";
        }

        @GetMapping("/audit")
        @RateLimited("audit")
        public String audit() {
            return "fine";
        }

        @ExceptionHandler
        @ResponseStatus(HttpStatus.SERVICE_UNAVAILABLE)
        void redisIsAway(RedisUnavailableException ex) {}

        @GetMapping("/news")
        @RateLimited("news")
        public String news() {
            return "none";
        }
    }
}
