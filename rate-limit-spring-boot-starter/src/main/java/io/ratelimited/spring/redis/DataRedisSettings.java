package io.ratelimited.spring.redis;

import io.lettuce.core.ClientOptions;
import io.lettuce.core.RedisCredentialsProvider;
import io.lettuce.core.RedisURI;
import io.lettuce.core.resource.ClientResources;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.springframework.data.redis.connection.RedisClusterConfiguration;
import org.springframework.data.redis.connection.RedisConfiguration;
import org.springframework.data.redis.connection.RedisConfiguration.WithAuthentication;
import org.springframework.data.redis.connection.RedisSentinelConfiguration;
import org.springframework.data.redis.connection.RedisSocketConfiguration;
import org.springframework.data.redis.connection.RedisStandaloneConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceClientConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.data.redis.connection.lettuce.LettuceConverters;
import org.springframework.util.StringUtils;

/** The settings that Spring Data has of the application's connection: servers, credentials, TLS, resources and options. */
record DataRedisSettings(LettuceClientConfiguration client) {

    /**
     * Returns a client for limits. The factory's own client does not serve: it is replaced when the factory is stopped and
     * started, and it repeats commands.
     */
    static LimitsClient client(LettuceConnectionFactory application) {
        return new DataRedisSettings(application.getClientConfiguration()).of(application);
    }

    private LimitsClient of(LettuceConnectionFactory application) {
        ClientOptions options = client.getClientOptions().orElseGet(ClientOptions::create);
        ClientResources resources = client.getClientResources().orElse(null);
        RedisClusterConfiguration cluster = application.getClusterConfiguration();
        RedisSentinelConfiguration sentinel = application.getSentinelConfiguration();
        RedisSocketConfiguration socket = application.getSocketConfiguration();
        if (cluster != null) {
            List<RedisURI> nodes = new ArrayList<>();
            cluster.getClusterNodes()
                    .forEach(node -> nodes.add(
                            uri(RedisURI.Builder.redis(node.getRequiredHost(), node.getRequiredPort()), cluster, 0)));
            return LimitsClient.ofCluster(resources, options, nodes);
        }
        if (sentinel != null) {
            return LimitsClient.ofServer(resources, options, uri(sentinel));
        }
        if (socket != null) {
            RedisURI.Builder uri = RedisURI.Builder.socket(socket.getSocket());
            return LimitsClient.ofServer(resources, options, uri(uri, socket, socket.getDatabase()));
        }
        RedisStandaloneConfiguration server = application.getStandaloneConfiguration();
        RedisURI.Builder uri = RedisURI.Builder.redis(server.getHostName(), server.getPort());
        return LimitsClient.ofServer(resources, options, uri(uri, server, server.getDatabase()));
    }

    private <C extends RedisConfiguration & WithAuthentication> RedisURI uri(
            RedisURI.Builder builder, C server, int database) {
        server.getPassword().toOptional().ifPresent(password -> authenticate(builder, server.getUsername(), password));
        RedisURI uri = builder.withDatabase(database).build();
        apply(uri);
        client.getRedisCredentialsProviderFactory()
                .ifPresent(factory -> uri.setCredentialsProvider(factory.createCredentialsProvider(server)));
        return uri;
    }

    private static void authenticate(RedisURI.Builder uri, @Nullable String username, char[] password) {
        if (StringUtils.hasText(username)) {
            uri.withAuthentication(username, password);
        } else {
            uri.withPassword(password);
        }
    }

    private RedisURI uri(RedisSentinelConfiguration sentinel) {
        RedisURI uri = LettuceConverters.sentinelConfigurationToRedisURI(sentinel);
        uri.setDatabase(sentinel.getDatabase());
        apply(uri);
        uri.getSentinels().forEach(this::apply);
        client.getRedisCredentialsProviderFactory().ifPresent(factory -> {
            uri.setCredentialsProvider(factory.createCredentialsProvider(sentinel));
            RedisCredentialsProvider ofSentinels = factory.createSentinelCredentialsProvider(sentinel);
            uri.getSentinels().forEach(one -> one.setCredentialsProvider(ofSentinels));
        });
        return uri;
    }

    private void apply(RedisURI uri) {
        client.getClientName().ifPresent(uri::setClientName);
        uri.setSsl(client.isUseSsl());
        uri.setVerifyPeer(client.getVerifyMode());
        uri.setStartTls(client.isStartTls());
    }
}
