package io.ratelimited.sample;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.ratelimited.redis.RedisBackend;
import io.ratelimited.redis.RedisHealth;
import io.ratelimited.redis.RedisProcess;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;

/** Two instances of the sample with the profile redis, and a real Redis: what both admit together is the limit. */
@Tag("slow")
class TwoInstancesTest {

    private static RedisProcess server;
    private static ConfigurableApplicationContext one;
    private static ConfigurableApplicationContext two;

    @BeforeAll
    static void start() {
        server = RedisProcess.start();
        one = instance();
        two = instance();
    }

    @AfterAll
    static void stop() {
        one.close();
        two.close();
        server.close();
    }

    /** As the README starts it; a slow machine is no outage, and nothing is refilled while the test runs. */
    private static ConfigurableApplicationContext instance() {
        ConfigurableApplicationContext instance = new SpringApplicationBuilder(SampleApplication.class)
                .profiles("redis")
                .run(
                        "--server.port=0",
                        "--rate-limit.redis.url=redis://127.0.0.1:" + server.port(),
                        "--rate-limit.redis.timeout=20s",
                        "--rate-limit.limits.demo-token-bucket.rate=1/d",
                        "--rate-limit.limits.demo-sliding-log.rate=10/d");
        await().atMost(Duration.ofSeconds(60))
                .until(() -> instance.getBean(RedisBackend.class).health().state() == RedisHealth.State.UP);
        return instance;
    }

    @Test
    void whatBothAdmitTogetherIsTheLimit() {
        List<CompletableFuture<HttpResponse<String>>> answers = new ArrayList<>();
        for (int i = 0; i < 20; i++) {
            answers.add(http(one).getAsync("/demo/sliding-log?user=alice"));
            answers.add(http(two).getAsync("/demo/sliding-log?user=alice"));
        }

        assertThat(answers.stream().map(answer -> answer.join().statusCode()).sorted())
                .filteredOn(status -> status == 200)
                .hasSize(10);
        assertThat(answers.stream().map(answer -> answer.join().statusCode()).distinct())
                .containsExactlyInAnyOrder(200, 429);
        assertThat(metered("demo-sliding-log", "admitted")).isEqualTo(10);
        assertThat(metered("demo-sliding-log", "rejected")).isEqualTo(30);
    }

    /** The line of the page on the sample, sent as its shell would send it. */
    @Test
    void thePageShowsWhatIsSeen() throws Exception {
        Matcher printed = Pattern.compile("(?m)^(?:(?:8080|8081) \\d+ *)+$")
                .matcher(Files.readString(Path.of("..", "docs", "sample.md")));
        assertThat(printed.find()).isTrue();

        StringBuilder seen = new StringBuilder();
        for (int i = 0; i < 4; i++) {
            seen.append("8080 ")
                    .append(status(one))
                    .append("  8081 ")
                    .append(status(two))
                    .append("  ");
        }
        assertThat(seen.toString().strip()).isEqualTo(printed.group().strip());
    }

    @Test
    void whatTheOperatorSees() {
        assertThat(http(one).get("/actuator/ratelimits/login").body())
                .contains("\"backend\":\"redis\"", "\"onFailure\":\"deny\"", "\"source\":\"redis\"");
        assertThat(http(one).get("/actuator/ratelimits/search").body())
                .contains("\"maxOvershoot\":\"5%\"", "\"onFailure\":\"local\"");
        assertThat(http(one).get("/actuator/ratelimits/recommendations").body())
                .contains("\"backend\":\"memory\"", "\"source\":\"memory\"");
        assertThat(http(one).get("/actuator/health").body()).contains("\"status\":\"UP\"");
    }

    private static int status(ConfigurableApplicationContext instance) {
        return http(instance).get("/demo/token-bucket?user=carol").statusCode();
    }

    private static long metered(String limit, String outcome) {
        return http(one).metered(limit, outcome) + http(two).metered(limit, outcome);
    }

    private static Http http(ConfigurableApplicationContext instance) {
        return new Http(instance.getEnvironment().getRequiredProperty("local.server.port", Integer.class));
    }
}
