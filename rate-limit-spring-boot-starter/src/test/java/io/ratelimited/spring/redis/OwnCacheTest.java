package io.ratelimited.spring.redis;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.redis.RedisProcess;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.autoconfigure.RateLimitAutoConfiguration;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.autoconfigure.aop.AopAutoConfiguration;
import org.springframework.boot.autoconfigure.ssl.SslAutoConfiguration;
import org.springframework.boot.cache.autoconfigure.CacheAutoConfiguration;
import org.springframework.boot.data.redis.autoconfigure.DataRedisAutoConfiguration;
import org.springframework.boot.test.context.FilteredClassLoader;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.cache.CacheManager;
import org.springframework.cache.annotation.Cacheable;
import org.springframework.cache.annotation.EnableCaching;
import org.springframework.cache.caffeine.CaffeineCacheManager;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.data.redis.cache.RedisCacheManager;

/** What becomes of an application's own cache when its limits move to Redis. */
class OwnCacheTest {

    private static RedisProcess server;

    /** The module rate-limit-redis and the property alone: there is no Spring Data. */
    private final ApplicationContextRunner lettuceAlone = new ApplicationContextRunner()
            .withClassLoader(new FilteredClassLoader("org.springframework.data", "org.springframework.boot.data"))
            .withUserConfiguration(Application.class)
            .withConfiguration(AutoConfigurations.of(
                    AopAutoConfiguration.class,
                    CacheAutoConfiguration.class,
                    RateLimitAutoConfiguration.class,
                    RedisRateLimitAutoConfiguration.class))
            .withPropertyValues(
                    "rate-limit.backend=redis",
                    "rate-limit.redis.url=redis://127.0.0.1:" + server.port(),
                    "rate-limit.redis.timeout=20s");

    private final ApplicationContextRunner springData = new ApplicationContextRunner()
            .withUserConfiguration(Application.class)
            .withConfiguration(AutoConfigurations.of(
                    SslAutoConfiguration.class, DataRedisAutoConfiguration.class, CacheAutoConfiguration.class));

    @BeforeAll
    static void start() {
        server = RedisProcess.start();
    }

    @AfterAll
    static void stop() {
        server.close();
    }

    @Test
    void withTheUrlOfLimitsAloneTheCacheStaysInMemoryAndTheLimitIsShared() {
        lettuceAlone.run(one -> lettuceAlone.run(other -> {
            assertThat(one).hasNotFailed();
            assertThat(one.getBean(CacheManager.class)).isInstanceOf(CaffeineCacheManager.class);
            assertThat(one.getBean(Prices.class).of("ACME")).isEqualTo(1);
            assertThat(one.getBean(Prices.class).of("ACME")).isEqualTo(1);

            int admitted = 0;
            for (int call = 0; call < 10; call++) {
                try {
                    (call % 2 == 0 ? one : other).getBean(Prices.class).order();
                    admitted++;
                } catch (RateLimitExceededException ex) {
                    assertThat(ex.limit()).isEqualTo("orders");
                }
            }
            assertThat(admitted).isEqualTo(5);
        }));
    }

    /** Not ours to change, but what the page warns of. */
    @Test
    void theStarterOfSpringDataMovesTheCacheUnlessItsTypeIsSet() {
        springData.run(
                context -> assertThat(context.getBean(CacheManager.class)).isInstanceOf(RedisCacheManager.class));
        springData
                .withPropertyValues("spring.cache.type=caffeine")
                .run(context ->
                        assertThat(context.getBean(CacheManager.class)).isInstanceOf(CaffeineCacheManager.class));
    }

    @Configuration(proxyBeanMethods = false)
    @EnableCaching
    static class Application {

        @Bean
        Prices prices() {
            return new Prices();
        }
    }

    public static class Prices {

        private final AtomicInteger calls = new AtomicInteger();

        @Cacheable("prices")
        public int of(String symbol) {
            return calls.incrementAndGet();
        }

        @RateLimited(name = "orders", rate = "5/h", key = "'all'")
        public void order() {}
    }
}
