package io.ratelimited.spring.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.mockito.Mockito.mock;

import io.lettuce.core.RedisURI;
import io.ratelimited.spring.InvalidRateLimitException;
import io.ratelimited.spring.autoconfigure.RateLimitAutoConfiguration;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Lazy;
import org.springframework.context.annotation.Primary;
import org.springframework.data.redis.connection.ReactiveRedisConnectionFactory;
import org.springframework.data.redis.connection.RedisConnectionFactory;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;

/** A factory of the application's own that is declared as an interface, and not made when a bean first asks a limit. */
@Tag("slow")
class DeclaredFactoryTest {

    private final ApplicationContextRunner runner = new ApplicationContextRunner()
            .withConfiguration(
                    AutoConfigurations.of(RateLimitAutoConfiguration.class, RedisRateLimitAutoConfiguration.class))
            .withPropertyValues("rate-limit.backend=redis");

    @ParameterizedTest
    @ValueSource(
            classes = {Blocking.class, Reactive.class, AsItIs.class, PrimaryAsInterface.class, PrimaryAsItIs.class})
    void isFound(Class<?> declaration) {
        runner.withUserConfiguration(declaration)
                .run(context -> assertThat(
                                context.getBean(LimitsClient.class).settings().uris())
                        .extracting(RedisURI::getHost)
                        .containsExactly("redis.example.org"));
    }

    /** Also where only one of them is declared as Lettuce's. */
    @ParameterizedTest
    @ValueSource(classes = {TwoInterfaces.class, OneInterface.class})
    void ofTwoWithoutAPrimaryIsNotGuessed(Class<?> declaration) {
        runner.withUserConfiguration(declaration)
                .run(context -> assertThatThrownBy(() -> context.getBean(LimitsClient.class))
                        .rootCause()
                        .isInstanceOfSatisfying(
                                InvalidRateLimitException.class,
                                problem -> assertThat(problem.remedy())
                                        .contains("@Primary", "rate-limit.redis.url", "RL-111"))
                        .hasMessage("A property sets backend: redis, but there is more than one connection factory:"
                                + " cacheConnectionFactory, redisConnectionFactory."));
    }

    @Test
    void isNotReplacedByAnotherWhereThePrimaryIsNotLettuces() {
        runner.withUserConfiguration(PrimaryOfAnotherClient.class)
                .run(context -> assertThatThrownBy(() -> context.getBean(LimitsClient.class))
                        .rootCause()
                        .isInstanceOf(InvalidRateLimitException.class)
                        .hasMessageContaining("there is no Lettuce connection factory, or it is not the primary one"));
    }

    private static LettuceConnectionFactory factory() {
        return new LettuceConnectionFactory("redis.example.org", 6379);
    }

    private static LettuceConnectionFactory other() {
        return new LettuceConnectionFactory("cache.example.org", 6379);
    }

    @Configuration(proxyBeanMethods = false)
    static class PrimaryAsInterface {

        @Bean
        @Lazy
        @Primary
        RedisConnectionFactory redisConnectionFactory() {
            return factory();
        }

        @Bean
        @Lazy
        LettuceConnectionFactory cacheConnectionFactory() {
            return other();
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class PrimaryAsItIs {

        @Bean
        @Lazy
        @Primary
        LettuceConnectionFactory redisConnectionFactory() {
            return factory();
        }

        @Bean
        @Lazy
        RedisConnectionFactory cacheConnectionFactory() {
            return other();
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class PrimaryOfAnotherClient {

        @Bean
        @Lazy
        @Primary
        RedisConnectionFactory redisConnectionFactory() {
            return mock(RedisConnectionFactory.class);
        }

        @Bean
        @Lazy
        LettuceConnectionFactory cacheConnectionFactory() {
            return other();
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class TwoInterfaces {

        @Bean
        @Lazy
        RedisConnectionFactory redisConnectionFactory() {
            return factory();
        }

        @Bean
        @Lazy
        RedisConnectionFactory cacheConnectionFactory() {
            return other();
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class OneInterface {

        @Bean
        @Lazy
        RedisConnectionFactory redisConnectionFactory() {
            return factory();
        }

        @Bean
        @Lazy
        LettuceConnectionFactory cacheConnectionFactory() {
            return other();
        }
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
