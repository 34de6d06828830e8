package io.ratelimited.benchmarks;

import io.lettuce.core.RedisClient;
import io.lettuce.core.ScriptOutputType;
import io.lettuce.core.api.StatefulRedisConnection;
import io.ratelimited.spring.RateLimited;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicReference;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.reactor.netty.NettyReactiveWebServerFactory;
import org.springframework.cloud.gateway.filter.GatewayFilter;
import org.springframework.cloud.gateway.filter.factory.RequestRateLimiterGatewayFilterFactory;
import org.springframework.cloud.gateway.filter.ratelimit.RedisRateLimiter;
import org.springframework.cloud.gateway.support.ConfigurationService;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.support.GenericApplicationContext;
import org.springframework.core.convert.ConversionService;
import org.springframework.core.io.ClassPathResource;
import org.springframework.data.redis.core.ReactiveStringRedisTemplate;
import org.springframework.data.redis.core.script.RedisScript;
import org.springframework.http.server.reactive.ServerHttpRequestDecorator;
import org.springframework.validation.Validator;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.server.WebFilter;
import reactor.core.publisher.Mono;
import reactor.netty.http.server.HttpServerRequest;

/**
 * The servers of {@link WebFluxTurns}: an application of each kind, WebFlux on Reactor Netty, all in one process and on one
 * Redis. Their endpoint returns a word, and their limits, by a header of the request, admit every call and tell what is left.
 */
final class WebFluxServers implements AutoCloseable {

    /** What the endpoint returns. */
    static final String BODY = "hello";

    /** The header that names the caller. */
    static final String CALLER = "X-Caller";

    private static final int RATE = 1_000_000_000;

    /** Spring Cloud Gateway's is excluded, since its filter stands here before an endpoint: a route of it would be a proxy. */
    private static final String GATEWAY = "org.springframework.cloud.gateway.config.GatewayRedisAutoConfiguration";

    private static final String OURS = "io.ratelimited.spring.autoconfigure.RateLimitAutoConfiguration,"
            + "org.springframework.boot.autoconfigure.aop.AopAutoConfiguration";

    private final List<ConfigurableApplicationContext> started = new ArrayList<>();
    private final int redis;
    private final Work work;

    /**
     * @param redis the port of Redis
     * @param work what the endpoint does
     */
    WebFluxServers(int redis, Work work) {
        this.redis = redis;
        this.work = work;
    }

    /**
     * Starts an application.
     *
     * @param others properties beside those of the kind
     * @return its port
     */
    int start(WebFluxTurns.Kind kind, Map<String, Object> others) {
        SpringApplication application = new SpringApplication(
                switch (kind) {
                    case floor -> new Class<?>[] {Application.class, Plain.class};
                    case annotation -> new Class<?>[] {Application.class, Annotated.class};
                    case route -> new Class<?>[] {Application.class, Plain.class};
                    case script -> new Class<?>[] {Application.class, Plain.class, Script.class};
                    case gateway -> new Class<?>[] {Application.class, Plain.class, Gateway.class};
                });
        boolean starter = kind == WebFluxTurns.Kind.annotation || kind == WebFluxTurns.Kind.route;
        Map<String, Object> properties = new LinkedHashMap<>(Map.of(
                "spring.autoconfigure.exclude", starter ? GATEWAY : GATEWAY + "," + OURS,
                "bucket4j.enabled", "false",
                "spring.cloud.gateway.server.webflux.enabled", "false",
                "spring.main.web-application-type", "reactive",
                "spring.main.banner-mode", "off",
                "logging.level.root", "error",
                "server.port", "0",
                "server.address", "127.0.0.1",
                "spring.data.redis.host", "127.0.0.1",
                "spring.data.redis.port", redis));
        if (starter) {
            // A call that Redis does not decide is refused, which ends the run.
            properties.putAll(Map.of(
                    "rate-limit.backend", "redis",
                    "rate-limit.redis.expected-nodes", "1",
                    "rate-limit.redis.timeout", "10s",
                    "rate-limit.redis.on-failure", "deny"));
        }
        if (kind == WebFluxTurns.Kind.route) {
            properties.putAll(Map.of(
                    "rate-limit.limits.people.rate",
                    RATE + "/s",
                    "rate-limit.routes[0].path",
                    "/people",
                    "rate-limit.routes[0].limits",
                    "people",
                    "rate-limit.routes[0].key",
                    "header('" + CALLER + "')"));
        }
        properties.putAll(others);
        application.setDefaultProperties(properties);
        application.addInitializers(
                context -> ((GenericApplicationContext) context).registerBean(Work.class, () -> work));
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

        private final Work work;

        Plain(Work work) {
            this.work = work;
        }

        @GetMapping("/people")
        public Mono<String> people() {
            return work.thenReturn(BODY);
        }
    }

    /** With a limit for each caller. */
    @RestController
    static class Annotated {

        private final Work work;

        Annotated(Work work) {
            this.work = work;
        }

        @RateLimited(name = "people", rate = RATE + "/s", key = "header('" + CALLER + "')")
        @GetMapping("/people")
        public Mono<String> people() {
            return work.thenReturn(BODY);
        }
    }

    /** The least that a limit on Redis can cost: one command for each request, and no thread that is not needed. */
    @Configuration(proxyBeanMethods = false)
    static class Script {

        @Bean(destroyMethod = "shutdown")
        RedisClient client(@Value("${spring.data.redis.port}") int port) {
            return RedisClient.create("redis://127.0.0.1:" + port);
        }

        @Bean
        WebFilter script(RedisClient client) {
            StatefulRedisConnection<String, String> connection = client.connect();
            String digest = connection.sync().scriptLoad("return {1, 100}");
            return (exchange, chain) -> {
                AtomicReference<Executor> loop = new AtomicReference<>();
                HttpServerRequest request = ServerHttpRequestDecorator.getNativeRequest(exchange.getRequest());
                request.withConnection(channel -> loop.set(channel.channel().eventLoop()));
                String key = "people:" + exchange.getRequest().getHeaders().getFirst(CALLER);
                return Mono.<List<Object>>create(sink -> connection
                                .async()
                                .<List<Object>>evalsha(digest, ScriptOutputType.MULTI, key)
                                .whenCompleteAsync(
                                        (reply, failure) -> {
                                            if (failure == null) {
                                                sink.success(reply);
                                            } else {
                                                sink.error(failure);
                                            }
                                        },
                                        loop.get()))
                        .flatMap(reply -> {
                            exchange.getResponse()
                                    .getHeaders()
                                    .set("X-RateLimit-Remaining", String.valueOf(reply.get(1)));
                            return chain.filter(exchange);
                        });
            };
        }
    }

    /** The filter {@code RequestRateLimiter} of Spring Cloud Gateway, with its limiter and its script. */
    @Configuration(proxyBeanMethods = false)
    static class Gateway {

        @Bean
        WebFilter requestRateLimiter(ReactiveStringRedisTemplate redis, ConfigurableApplicationContext context) {
            ObjectProvider<ConversionService> conversions = context.getBeanProvider(ConversionService.class);
            ObjectProvider<Validator> validators = context.getBeanProvider(Validator.class);
            RedisRateLimiter limiter =
                    new AskingRedis(redis, new ConfigurationService(context, conversions, validators));
            limiter.getConfig()
                    .put(
                            "people",
                            new RedisRateLimiter.Config().setReplenishRate(RATE).setBurstCapacity(RATE));
            RequestRateLimiterGatewayFilterFactory.Config config = new RequestRateLimiterGatewayFilterFactory.Config();
            config.setRouteId("people");
            GatewayFilter filter = new RequestRateLimiterGatewayFilterFactory(
                            limiter,
                            exchange -> Mono.justOrEmpty(
                                    exchange.getRequest().getHeaders().getFirst(CALLER)))
                    .apply(config);
            return (exchange, chain) -> filter.filter(exchange, chain::filter);
        }
    }

    /** Admits nothing when Redis fails, of which the limiter makes -1 tokens left. */
    private static final class AskingRedis extends RedisRateLimiter {

        @SuppressWarnings({"rawtypes", "unchecked"}) // as Spring Cloud Gateway declares its script
        private AskingRedis(ReactiveStringRedisTemplate redis, ConfigurationService configuration) {
            super(
                    redis,
                    (RedisScript) RedisScript.of(
                            new ClassPathResource("META-INF/scripts/request_rate_limiter.lua"), List.class),
                    configuration);
        }

        @Override
        public Map<String, String> getHeaders(Config config, Long tokensLeft) {
            if (tokensLeft < 0) {
                throw new IllegalStateException("Redis has failed");
            }
            return super.getHeaders(config, tokensLeft);
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    static class Application {

        /** Tomcat is there too, for other benchmarks. */
        @Bean
        NettyReactiveWebServerFactory server() {
            return new NettyReactiveWebServerFactory();
        }
    }
}
