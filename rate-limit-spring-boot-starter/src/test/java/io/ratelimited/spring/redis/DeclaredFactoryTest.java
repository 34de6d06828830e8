package io.ratelimited.spring.redis;

import static org.assertj.core.api.Assertions.assertThat;

import io.lettuce.core.RedisURI;
import io.ratelimited.spring.autoconfigure.RateLimitAutoConfiguration;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Lazy;
import org.springframework.data.redis.connection.ReactiveRedisConnectionFactory;
import org.springframework.data.redis.connection.RedisConnectionFactory;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;

/** A factory of the application's own that is declared as an interface, and not made when a bean first asks a limit. */
class DeclaredFactoryTest {

    private final ApplicationContextRunner runner = new ApplicationContextRunner()
            .withConfiguration(
                    AutoConfigurations.of(RateLimitAutoConfiguration.class, RedisRateLimitAutoConfiguration.class))
            .withPropertyValues("rate-limit.backend=redis");

    @ParameterizedTest
    @ValueSource(classes = {Blocking.class, Reactive.class, AsItIs.class})
    void isFound(Class<?> declaration) {
        runner.withUserConfiguration(declaration)
                .run(context -> assertThat(
                                context.getBean(LimitsClient.class).settings().uris())
                        .extracting(RedisURI::getHost)
                        .containsExactly("redis.example.org"));
    }

    private static LettuceConnectionFactory factory() {
        return new LettuceConnectionFactory("redis.example.org", 6379);
    }

    @Configuration(proxyBeanMethods = false)
    static class Blocking {

        @Bean
        @Lazy
        RedisConnectionFactory redisConnectionFactory() {
            return factory();
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class Reactive {

        @Bean
        @Lazy
        ReactiveRedisConnectionFactory redisConnectionFactory() {
            return factory();
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class AsItIs {

        @Bean
        @Lazy
        LettuceConnectionFactory redisConnectionFactory() {
            return factory();
        }
    }
}
