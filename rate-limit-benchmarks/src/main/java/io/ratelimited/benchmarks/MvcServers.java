package io.ratelimited.benchmarks;

import com.google.common.collect.ImmutableList;
import io.github.bucket4j.Bucket;
import io.github.bucket4j.BucketConfiguration;
import io.github.bucket4j.ConsumptionProbe;
import io.github.bucket4j.distributed.ExpirationAfterWriteStrategy;
import io.github.bucket4j.distributed.proxy.ProxyManager;
import io.github.bucket4j.redis.lettuce.Bucket4jLettuce;
import io.github.resilience4j.ratelimiter.RateLimiter;
import io.github.resilience4j.ratelimiter.RateLimiterConfig;
import io.github.resilience4j.ratelimiter.RequestNotPermitted;
import io.lettuce.core.RedisClient;
import io.lettuce.core.codec.ByteArrayCodec;
import io.lettuce.core.codec.RedisCodec;
import io.lettuce.core.codec.StringCodec;
import io.ratelimited.spring.RateLimited;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Function;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.http.HttpStatus;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.ExceptionHandler;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RequestHeader;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.filter.OncePerRequestFilter;

/**
 * Applications of Spring MVC on Tomcat for {@link HttpCost}, all in one process: an endpoint that returns a word, without a
 * limit, under one of ours, and behind those of other libraries. The limits are by a header of the request.
 */
final class MvcServers implements AutoCloseable {

    private static final int RATE = 1_000_000_000;
    private static final String STARTER = "io.ratelimited.spring.autoconfigure.RateLimitAutoConfiguration,"
            + "org.springframework.boot.autoconfigure.aop.AopAutoConfiguration,";
    private static final String OTHERS = "org.springframework.cloud.gateway.config.GatewayRedisAutoConfiguration";

    private final List<ConfigurableApplicationContext> started = new ArrayList<>();

    /** How the endpoint is limited. */
    enum Kind {
        floor(Plain.class),
        ours(Annotated.class),
        resilience4j(PermittedByResilience4j.class),
        bucket4j(Plain.class, BucketsInMemory.class),
        bucket4jOnRedis(Plain.class, BucketsOnRedis.class);

        private final ImmutableList<Class<?>> sources;

        Kind(Class<?>... sources) {
            this.sources = ImmutableList.copyOf(sources);
        }
    }

    /**
     * Starts an application.
     *
     * @param others properties beside those of the kind; {@code admitted} is how many calls of a caller a peer admits at once
     * @return its port
     */
    int start(Kind kind, Map<String, Object> others) {
        SpringApplication application = new SpringApplication(kind.sources.toArray(new Class<?>[0]));
        application.addPrimarySources(List.of(Application.class));
        Map<String, Object> properties = new LinkedHashMap<>(Map.of(
                "spring.autoconfigure.exclude", kind == Kind.ours ? OTHERS : STARTER + OTHERS,
                "admitted", RATE,
                "bucket4j.enabled", "false",
                "spring.cloud.gateway.server.webflux.enabled", "false",
                "spring.main.web-application-type", "servlet",
                "spring.main.banner-mode", "off",
                "logging.level.root", "error",
                "server.port", "0",
                "server.address", "127.0.0.1",
                "server.tomcat.max-keep-alive-requests", "-1"));
        properties.putAll(others);
        application.setDefaultProperties(properties);
        ConfigurableApplicationContext context = application.run();
        started.add(context);
        return context.getEnvironment().getRequiredProperty("local.server.port", Integer.class);
    }

    @Override
    public void close() {
        started.forEach(ConfigurableApplicationContext::close);
    }

    /** Without an annotation. */
    @RestController
    static class Plain {

        @GetMapping("/people")
        public String people() {
            return WebFluxServers.BODY;
        }
    }

    /** With a limit for each caller. */
    @RestController
    static class Annotated {

        @RateLimited(name = "people", rate = RATE + "/s", key = "header('" + WebFluxServers.CALLER + "')")
        @GetMapping("/people")
        public String people() {
            return WebFluxServers.BODY;
        }
    }

    /** With a limiter of Resilience4j for each caller, asked by hand, because its annotation has one for all. */
    @RestController
    static class PermittedByResilience4j {

        private final Map<String, RateLimiter> limiters = new ConcurrentHashMap<>();
        private final RateLimiterConfig config;

        PermittedByResilience4j(@Value("${admitted}") int admitted) {
            config = RateLimiterConfig.custom()
                    .limitForPeriod(admitted)
                    .limitRefreshPeriod(admitted == 1 ? Duration.ofHours(1) : Duration.ofSeconds(1))
                    .timeoutDuration(Duration.ZERO)
                    .build();
        }

        @GetMapping("/people")
        public String people(@RequestHeader(WebFluxServers.CALLER) String caller) {
            RateLimiter.waitForPermission(limiters.computeIfAbsent(caller, name -> RateLimiter.of(name, config)));
            return WebFluxServers.BODY;
        }

        @ExceptionHandler
        ResponseEntity<String> rejected(RequestNotPermitted rejection) {
            return ResponseEntity.status(HttpStatus.TOO_MANY_REQUESTS).body(rejection.getMessage());
        }
    }

    /** A filter with a bucket of Bucket4j for each caller, as its guides show it. */
    static class Buckets extends OncePerRequestFilter {

        private final Function<String, ? extends Bucket> buckets;

        Buckets(Function<String, ? extends Bucket> buckets) {
            this.buckets = buckets;
        }

        @Override
        protected void doFilterInternal(HttpServletRequest request, HttpServletResponse response, FilterChain chain)
                throws ServletException, IOException {
            ConsumptionProbe probe =
                    buckets.apply(request.getHeader(WebFluxServers.CALLER)).tryConsumeAndReturnRemaining(1);
            if (probe.isConsumed()) {
                response.setHeader("X-Rate-Limit-Remaining", Long.toString(probe.getRemainingTokens()));
                chain.doFilter(request, response);
            } else {
                response.setHeader(
                        "X-Rate-Limit-Retry-After-Seconds",
                        Long.toString(probe.getNanosToWaitForRefill() / 1_000_000_000));
                response.setStatus(HttpStatus.TOO_MANY_REQUESTS.value());
                response.setContentType("text/plain");
                response.getWriter().write("Too many requests");
            }
        }
    }

    /** Buckets in a map. */
    @Configuration(proxyBeanMethods = false)
    static class BucketsInMemory {

        @Bean
        Buckets buckets(@Value("${admitted}") int admitted) {
            Map<String, Bucket> known = new ConcurrentHashMap<>();
            return new Buckets(caller -> known.computeIfAbsent(
                    caller,
                    name -> Bucket.builder()
                            .addLimit(limit -> limit.capacity(admitted)
                                    .refillGreedy(
                                            admitted, admitted == 1 ? Duration.ofHours(1) : Duration.ofSeconds(1)))
                            .build()));
        }
    }

    /** Buckets on Redis, by compare-and-swap. */
    @Configuration(proxyBeanMethods = false)
    static class BucketsOnRedis {

        @Bean(destroyMethod = "shutdown")
        RedisClient client(@Value("${spring.data.redis.port}") int port) {
            return RedisClient.create("redis://127.0.0.1:" + port);
        }

        @Bean
        Buckets buckets(RedisClient client) {
            ProxyManager<String> buckets = Bucket4jLettuce.casBasedBuilder(
                            client.connect(RedisCodec.of(StringCodec.UTF8, ByteArrayCodec.INSTANCE)))
                    .expirationAfterWrite(
                            ExpirationAfterWriteStrategy.basedOnTimeForRefillingBucketUpToMax(Duration.ofSeconds(60)))
                    .build();
            BucketConfiguration configuration = BucketConfiguration.builder()
                    .addLimit(limit -> limit.capacity(RATE).refillGreedy(RATE, Duration.ofSeconds(1)))
                    .build();
            return new Buckets(caller -> buckets.builder().build(caller, () -> configuration));
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    static class Application {}
}
