package io.ratelimited.spring.redis;

import io.lettuce.core.AbstractRedisClient;
import java.util.Objects;
import java.util.stream.Stream;
import org.springframework.data.redis.connection.RedisConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;

/** A client of the limits' own, made from the settings that Spring Data has of the application's. */
final class DataRedisClient {

    private DataRedisClient() {}

    /**
     * Makes a client with the servers, credentials, TLS, resources and options of a connection factory. The factory's own
     * client would do, but it is another one after the factory was stopped and started, and it repeats commands.
     */
    static LimitsClient like(LettuceConnectionFactory application) {
        LettuceConnectionFactory own =
                new LettuceConnectionFactory(servers(application), application.getClientConfiguration());
        own.afterPropertiesSet();
        own.start();
        AbstractRedisClient client = own.getRequiredNativeClient();
        RedisUrlClient.atMostOnce(client);
        return new LimitsClient(client, own::destroy);
    }

    private static RedisConfiguration servers(LettuceConnectionFactory application) {
        return Stream.of(
                        application.getClusterConfiguration(),
                        application.getSentinelConfiguration(),
                        application.getSocketConfiguration(),
                        application.getStandaloneConfiguration())
                .filter(Objects::nonNull)
                .findFirst()
                .orElseThrow();
    }
}
