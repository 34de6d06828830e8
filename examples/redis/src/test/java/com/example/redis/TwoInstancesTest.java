package com.example.redis;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.net.ServerSocket;
import org.junit.jupiter.api.Test;
import org.springframework.boot.SpringApplication;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.test.web.servlet.client.RestTestClient;
import redis.embedded.RedisServer;

class TwoInstancesTest {

    @Test
    void theSixthCallIsRejectedByWhicheverInstanceItReaches() throws IOException {
        RedisServer redis = startRedis();
        int redisPort = redis.ports().get(0);
        try (ConfigurableApplicationContext first = start(redisPort);
                ConfigurableApplicationContext second = start(redisPort)) {
            assertThat(status(first)).isEqualTo(200);
            assertThat(status(second)).isEqualTo(200);
            assertThat(status(first)).isEqualTo(200);
            assertThat(status(second)).isEqualTo(200);
            assertThat(status(first)).isEqualTo(200);
            assertThat(status(second)).isEqualTo(429);
            assertThat(status(first)).isEqualTo(429);
        } finally {
            redis.stop();
        }
    }

    private static ConfigurableApplicationContext start(int redisPort) {
        return SpringApplication.run(
                RedisApplication.class,
                "--server.port=0",
                "--rate-limit.redis.url=redis://localhost:" + redisPort,
                // No permit is refilled during the test, however slow the machine is.
                "--rate-limit.limits.quotes.rate=5/d");
    }

    private static int status(ConfigurableApplicationContext instance) {
        String port = instance.getEnvironment().getProperty("local.server.port");
        return RestTestClient.bindToServer()
                .baseUrl("http://localhost:" + port)
                .build()
                .get()
                .uri("/quotes/ACME")
                .exchange()
                .returnResult()
                .getStatus()
                .value();
    }

    /** Another process can take the free port first: then Redis does not start, and gets another port. */
    private static RedisServer startRedis() throws IOException {
        for (int attempt = 1; ; attempt++) {
            RedisServer redis = RedisServer.newRedisServer()
                    .port(freePort())
                    .setting("save \"\"")
                    .build();
            try {
                redis.start();
                return redis;
            } catch (IOException ex) {
                if (attempt == 10) {
                    throw ex;
                }
            }
        }
    }

    private static int freePort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0)) {
            return socket.getLocalPort();
        }
    }
}
