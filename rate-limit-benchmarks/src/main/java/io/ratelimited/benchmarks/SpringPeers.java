package io.ratelimited.benchmarks;

import com.alibaba.csp.sentinel.annotation.SentinelResource;
import com.alibaba.csp.sentinel.annotation.aspectj.SentinelResourceAspect;
import com.giffing.bucket4j.spring.boot.starter.config.aspect.RateLimitAspect;
import com.giffing.bucket4j.spring.boot.starter.config.cache.ProxyManagerWrapper;
import com.giffing.bucket4j.spring.boot.starter.context.RateLimitResult;
import com.giffing.bucket4j.spring.boot.starter.context.RateLimitResultWrapper;
import com.giffing.bucket4j.spring.boot.starter.context.RateLimiting;
import com.giffing.bucket4j.spring.boot.starter.context.properties.BandWidth;
import com.giffing.bucket4j.spring.boot.starter.context.properties.Bucket4JBootProperties;
import com.giffing.bucket4j.spring.boot.starter.context.properties.MethodProperties;
import com.giffing.bucket4j.spring.boot.starter.context.properties.RateLimit;
import com.giffing.bucket4j.spring.boot.starter.service.ExpressionService;
import com.giffing.bucket4j.spring.boot.starter.service.RateLimitService;
import io.github.bucket4j.Bucket;
import io.github.bucket4j.BucketConfiguration;
import io.github.bucket4j.ConsumptionProbe;
import io.github.bucket4j.local.LocalBucketBuilder;
import io.github.resilience4j.ratelimiter.RateLimiterConfig;
import io.github.resilience4j.ratelimiter.RateLimiterRegistry;
import io.github.resilience4j.ratelimiter.annotation.RateLimiter;
import io.github.resilience4j.spring6.fallback.FallbackDecorators;
import io.github.resilience4j.spring6.fallback.FallbackExecutor;
import io.github.resilience4j.spring6.ratelimiter.configure.RateLimiterAspect;
import io.github.resilience4j.spring6.ratelimiter.configure.RateLimiterConfigurationProperties;
import io.github.resilience4j.spring6.spelresolver.DefaultSpelResolver;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import java.time.Duration;
import java.time.temporal.ChronoUnit;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import org.aspectj.lang.ProceedingJoinPoint;
import org.aspectj.lang.annotation.Around;
import org.aspectj.lang.annotation.Aspect;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.config.ConfigurableBeanFactory;
import org.springframework.cache.annotation.Cacheable;
import org.springframework.cache.annotation.EnableCaching;
import org.springframework.cache.concurrent.ConcurrentMapCacheManager;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.DefaultParameterNameDiscoverer;
import org.springframework.expression.spel.standard.SpelExpressionParser;
import org.springframework.resilience.annotation.ConcurrencyLimit;
import org.springframework.resilience.annotation.EnableResilientMethods;

/** The aspects of other libraries, wired by hand where they are made for an older Spring, and methods that they limit. */
@Configuration(proxyBeanMethods = false)
@EnableCaching(proxyTargetClass = true)
@EnableResilientMethods(proxyTargetClass = true)
class SpringPeers {

    /** The methods. */
    static class Service {

        String around(String id) {
            return id;
        }

        String aroundCounting(String id) {
            return id;
        }

        @Marker("benchmark")
        String aroundBinding(String id) {
            return id;
        }

        @ConcurrencyLimit(1000)
        String concurrencyLimit(String id) {
            return id;
        }

        @Cacheable(cacheNames = "cache", key = "#id")
        String cacheable(String id) {
            return id;
        }

        @SentinelResource("benchmark")
        String sentinel(String id) {
            return id;
        }

        @RateLimiter(name = "benchmark")
        String resilience4j(String id) {
            return id;
        }

        @RateLimiting(name = "benchmark", cacheKey = "#id")
        String giffing(String id) {
            return id;
        }
    }

    /** An annotation as other libraries bind it. */
    @Target(ElementType.METHOD)
    @Retention(RetentionPolicy.RUNTIME)
    @interface Marker {

        /** Any name. */
        String value();
    }

    /** The floors: advice that does nothing, or no more than a clock and one word for all threads. */
    @Aspect
    static class Proceeding {

        private final AtomicLong last = new AtomicLong();

        @Around("execution(* io.ratelimited.benchmarks.SpringPeers.Service.around(..))")
        public @Nullable Object around(ProceedingJoinPoint call) throws Throwable {
            return call.proceed();
        }

        @Around("execution(* io.ratelimited.benchmarks.SpringPeers.Service.aroundCounting(..))")
        public @Nullable Object counting(ProceedingJoinPoint call) throws Throwable {
            long now = System.nanoTime();
            for (long seen = last.get(); !last.compareAndSet(seen, now); ) {
                seen = last.get();
            }
            return call.proceed();
        }

        @Around("@annotation(marker)")
        public @Nullable Object binding(ProceedingJoinPoint call, Marker marker) throws Throwable {
            return call.proceed();
        }
    }

    @Bean
    Service peerService() {
        return new Service();
    }

    @Bean
    Proceeding proceeding() {
        return new Proceeding();
    }

    @Bean
    ConcurrentMapCacheManager cacheManager() {
        return new ConcurrentMapCacheManager();
    }

    @Bean
    SentinelResourceAspect sentinelResourceAspect() {
        Peers.sentinel(1e9);
        return new SentinelResourceAspect();
    }

    @Bean
    RateLimiterAspect resilience4jAspect(ConfigurableBeanFactory beanFactory) {
        RateLimiterConfig config = RateLimiterConfig.custom()
                .limitForPeriod(1_000_000_000)
                .limitRefreshPeriod(Duration.ofSeconds(1))
                .timeoutDuration(Duration.ZERO)
                .build();
        DefaultSpelResolver expressions =
                new DefaultSpelResolver(new SpelExpressionParser(), new DefaultParameterNameDiscoverer(), beanFactory);
        return new RateLimiterAspect(
                RateLimiterRegistry.of(config),
                new RateLimiterConfigurationProperties(),
                List.of(),
                new FallbackExecutor(expressions, new FallbackDecorators(List.of())),
                expressions);
    }

    @Bean
    RateLimitAspect giffingAspect(ConfigurableBeanFactory beanFactory) {
        BandWidth bandwidth = new BandWidth();
        bandwidth.setCapacity(1_000_000_000);
        bandwidth.setTime(1);
        bandwidth.setUnit(ChronoUnit.SECONDS);
        RateLimit limit = new RateLimit();
        limit.setBandwidths(List.of(bandwidth));
        MethodProperties method = new MethodProperties();
        method.setName("benchmark");
        method.setCacheName("buckets");
        method.setRateLimit(limit);
        Bucket4JBootProperties properties = new Bucket4JBootProperties();
        properties.setMethods(List.of(method));
        ExpressionService expressions = new ExpressionService(new SpelExpressionParser(), beanFactory);
        return new RateLimitAspect(new RateLimitService(expressions), properties, cache -> buckets(), List.of());
    }

    /** The cheapest store there could be: a map of local buckets. */
    private static ProxyManagerWrapper buckets() {
        Map<String, Bucket> buckets = new ConcurrentHashMap<>();
        return (key, permits, estimate, configuration, listener, version, inheritance) -> {
            Bucket bucket = buckets.computeIfAbsent(key, k -> bucket(configuration));
            ConsumptionProbe probe = bucket.tryConsumeAndReturnRemaining(permits);
            return new RateLimitResultWrapper(RateLimitResult.builder()
                    .consumed(probe.isConsumed())
                    .remainingTokens(probe.getRemainingTokens())
                    .nanosToWaitForRefill(probe.getNanosToWaitForRefill())
                    .build());
        };
    }

    private static Bucket bucket(BucketConfiguration configuration) {
        LocalBucketBuilder builder = Bucket.builder();
        for (var bandwidth : configuration.getBandwidths()) {
            builder.addLimit(bandwidth);
        }
        return builder.build();
    }
}
