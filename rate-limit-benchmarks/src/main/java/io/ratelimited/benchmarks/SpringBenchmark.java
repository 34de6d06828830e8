package io.ratelimited.benchmarks;

import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.autoconfigure.RateLimitAutoConfiguration;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.aopalliance.intercept.MethodInterceptor;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;
import org.springframework.aop.framework.ProxyFactory;
import org.springframework.boot.autoconfigure.ImportAutoConfiguration;
import org.springframework.boot.autoconfigure.aop.AopAutoConfiguration;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.core.env.MapPropertySource;

/** A bean method that returns at once, called through a CGLIB proxy with different advice. All calls are admitted. */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 8, time = 500, timeUnit = TimeUnit.MILLISECONDS)
@Measurement(iterations = 3, time = 500, timeUnit = TimeUnit.MILLISECONDS)
@Fork(
        value = 2,
        jvmArgsAppend = {"-Xms1g", "-Xmx1g", "-XX:+AlwaysPreTouch", "-XX:+UseTransparentHugePages"})
@State(Scope.Benchmark)
public class SpringBenchmark {

    private AnnotationConfigApplicationContext context = new AnnotationConfigApplicationContext();
    private Service service = new Service();
    private SpringPeers.Service peers = new SpringPeers.Service();
    private Service interceptorOnly = new Service();
    private final Caller caller = new Caller("caller-7");

    /** Starts the application. */
    @Setup(Level.Trial)
    public void setUp() {
        context = new AnnotationConfigApplicationContext();
        context.getEnvironment()
                .getPropertySources()
                .addLast(new MapPropertySource(
                        "tiers", Map.of("rate-limit.limits.tiered.tiers.gold.rate", Tenants.NUMBERS)));
        context.register(Application.class);
        context.refresh();
        service = context.getBean(Service.class);
        peers = context.getBean(SpringPeers.Service.class);
        ProxyFactory factory = new ProxyFactory(new Service());
        factory.setProxyTargetClass(true);
        factory.addAdvice((MethodInterceptor) call -> call.proceed());
        interceptorOnly = (Service) factory.getProxy();
    }

    /** Stops the application. */
    @TearDown(Level.Trial)
    public void tearDown() {
        context.close();
    }

    @Benchmark
    public String floorInterceptor() {
        return interceptorOnly.plain(caller.id());
    }

    @Benchmark
    public String floorAround() {
        return peers.around(caller.id());
    }

    @Benchmark
    public String floorAroundCounting() {
        return peers.aroundCounting(caller.id());
    }

    @Benchmark
    public String floorAroundBinding() {
        return peers.aroundBinding(caller.id());
    }

    @Benchmark
    public String ours() {
        return service.limited(caller.id());
    }

    @Benchmark
    public String oursByParameter() {
        return service.limitedByParameter(caller.id());
    }

    @Benchmark
    public String oursByProperty() {
        return service.limitedByProperty(caller);
    }

    @Benchmark
    public String oursByBean() {
        return service.limitedByBean(caller.id());
    }

    @Benchmark
    public String oursReservedAndCharged() {
        return service.reservedAndCharged(caller.id());
    }

    @Benchmark
    public String oursTwice() {
        return service.limitedTwice(caller.id());
    }

    @Benchmark
    public String oursTwiceByKeys() {
        return service.limitedTwiceByKeys(caller.id());
    }

    @Benchmark
    public String oursThreeTimes() {
        return service.limitedThreeTimes(caller.id());
    }

    /** A caller in a tier. */
    @Benchmark
    public String oursByTier() {
        return service.limitedByTier(caller.id());
    }

    /** A caller with its own numbers. */
    @Benchmark
    public String oursByNumbers() {
        return service.limitedByNumbers(caller.id());
    }

    @Benchmark
    public String peerConcurrencyLimit() {
        return peers.concurrencyLimit(caller.id());
    }

    @Benchmark
    public String peerCacheable() {
        return peers.cacheable(caller.id());
    }

    @Benchmark
    public String peerSentinel() {
        return peers.sentinel(caller.id());
    }

    @Benchmark
    public String peerResilience4j() {
        return peers.resilience4j(caller.id());
    }

    @Benchmark
    public String peerGiffing() {
        return peers.giffing(caller.id());
    }

    /** Names keys, and knows tiers and numbers. */
    public static class Tenants {

        static final String NUMBERS = "900000000/s";

        private final Map<String, String> tiers = Map.of("caller-7", "gold");
        private final Map<String, String> numbers = Map.of("caller-7", NUMBERS);

        public String tierOf(String id) {
            return tiers.getOrDefault(id, "");
        }

        public String numbersOf(String id) {
            return numbers.getOrDefault(id, "");
        }

        /** The tenant of a caller. */
        public String of(String id) {
            return id;
        }
    }

    /**
     * An argument with a property.
     *
     * @param id whose call it is
     */
    public record Caller(String id) {}

    /** The methods. */
    public static class Service {

        public String plain(String id) {
            return id;
        }

        @RateLimited(rate = "1000000000/s")
        public String limited(String id) {
            return id;
        }

        @RateLimited(rate = "1000000000/s", key = "#id")
        public String limitedByParameter(String id) {
            return id;
        }

        @RateLimited(rate = "1000000000/s", key = "#caller.id")
        public String limitedByProperty(Caller caller) {
            return caller.id();
        }

        @RateLimited(rate = "1000000000/s", key = "@tenants.of(#id)")
        public String limitedByBean(String id) {
            return id;
        }

        @RateLimited(name = "tiered", rate = "1000000000/s", key = "#id", tier = "@tenants.tierOf(#id)")
        public String limitedByTier(String id) {
            return id;
        }

        @RateLimited(name = "numbered", rate = "1000000000/s", key = "#id", tier = "@tenants.numbersOf(#id)")
        public String limitedByNumbers(String id) {
            return id;
        }

        @RateLimited(rate = "1000000000/s", key = "header('X-Api-Key')")
        public String limitedByHeader(String id) {
            return id;
        }

        @RateLimited(rate = "1000000000/s", key = "principal.name")
        public String limitedByPrincipal(String id) {
            return id;
        }

        @RateLimited(rate = "1000000000/s", key = "clientIp")
        public String limitedByClient(String id) {
            return id;
        }

        @RateLimited(rate = "1000000000/s", key = "#id")
        @RateLimited(rate = "500000000/s", key = "@tenants.of(#id)")
        public String limitedTwiceByKeys(String id) {
            return id;
        }

        @RateLimited(rate = "1000000000/s", key = "#id", permits = "2", charge = "#error == null ? 1 : 2")
        public String reservedAndCharged(String id) {
            return id;
        }

        @RateLimited(rate = "1000000000/s")
        @RateLimited(rate = "500000000/s")
        public String limitedTwice(String id) {
            return id;
        }

        @RateLimited(rate = "1000000000/s")
        @RateLimited(rate = "500000000/s")
        @RateLimited(rate = "400000000/s")
        public String limitedThreeTimes(String id) {
            return id;
        }
    }

    @Configuration(proxyBeanMethods = false)
    @ImportAutoConfiguration({AopAutoConfiguration.class, RateLimitAutoConfiguration.class})
    @Import(SpringPeers.class)
    static class Application {

        @Bean
        Service service() {
            return new Service();
        }

        @Bean
        Tenants tenants() {
            return new Tenants();
        }
    }
}
