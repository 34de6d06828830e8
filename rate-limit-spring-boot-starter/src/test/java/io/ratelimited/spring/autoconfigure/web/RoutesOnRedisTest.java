package io.ratelimited.spring.autoconfigure.web;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.redis.RedisProcess;
import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.internals.web.RunningServer;
import java.util.List;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RestController;

/**
 * Handlers behind the limit of a route on Redis that block. The reply of Redis lets the request go on, and is read by a
 * thread for all limits.
 */
@ExtendWith(OutputCaptureExtension.class)
@Tag("spring-boot")
@Tag("slow")
class RoutesOnRedisTest {

    /** A reply may be there before anybody waits for it; not so many times in a row. */
    private static final int REQUESTS = 8;

    private static final String LETTUCE = "lettuce";

    private static RedisProcess redis;

    @BeforeAll
    static void startRedis() {
        redis = RedisProcess.start();
    }

    @AfterAll
    static void stopRedis() {
        redis.close();
    }

    private static RunningServer start(RunningServer.Kind kind) {
        return kind.start(
                List.of(App.class),
                "rate-limit.backend=redis",
                "rate-limit.redis.timeout=10s",
                "spring.data.redis.port=" + redis.port(),
                "rate-limit.limits.routed.rate=100000/m",
                "rate-limit.limits.inside.rate=100000/m",
                "rate-limit.routes[0].path=/**",
                "rate-limit.routes[0].limits=routed");
    }

    @ParameterizedTest
    @EnumSource(names = {"REACTOR_NETTY", "TOMCAT"})
    void aHandlerThatReturnsAPlainValueMayBlock(RunningServer.Kind kind, CapturedOutput output) {
        try (RunningServer server = start(kind)) {
            for (int i = 0; i < REQUESTS; i++) {
                assertThat(server.get("/plain").body()).doesNotContain(LETTUCE);
                assertThat(server.send("POST", "/plain/body").body()).doesNotContain(LETTUCE);
                // Waits for a reply that the thread which it must not run on would have to read.
                assertThat(server.get("/plain/limited").body()).isEqualTo("inside");
            }
        }
        assertThat(output).doesNotContain("that reads the replies", "which reads the replies");
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @Import(Api.class)
    static class App {}

    @RestController
    static class Api {

        private final RateLimits limits;

        Api(RateLimits limits) {
            this.limits = limits;
        }

        @GetMapping("/plain")
        String plain() {
            return Thread.currentThread().getName();
        }

        @PostMapping("/plain/body")
        String plainWithBody(@RequestBody(required = false) String body) {
            return Thread.currentThread().getName();
        }

        @GetMapping("/plain/limited")
        String plainThatWaits() {
            return limits.execute("inside", null, () -> "inside");
        }
    }
}
