package io.ratelimited.spring.actuate;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.internals.web.RunningServer;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;
import tools.jackson.databind.json.JsonMapper;

/** The curl lines of the page are sent to a running server, which must answer what the page says. */
@Tag("spring-boot")
@Tag("slow")
class OperationsPageTest {

    private static final Pattern CALL = Pattern.compile(
            "(?m)^\\$ curl (?:-X (?<method>\\w+) )?(?:-H '[^']*' -d '(?<body>[^']*)' )?localhost:8080(?<path>\\S+)\\n(?<answer>[^$`]*)");

    @Test
    void theServerAnswersWhatThePageSays() throws Exception {
        String page = Files.readString(Path.of("..", "docs", "operations.md"));
        try (ConfigurableApplicationContext context = new SpringApplicationBuilder(
                        RateLimitsEndpointWebTest.Application.class)
                .properties(
                        "spring.autoconfigure.exclude=" + RunningServer.SECURITY,
                        "server.port=0",
                        "server.shutdown=immediate",
                        "management.endpoints.web.exposure.include=health, ratelimits",
                        "rate-limit.actuator.mask-keys=false",
                        "rate-limit.limits.search.rate=100/s",
                        "rate-limit.limits.search.burst=200",
                        "rate-limit.limits.search.key=#user")
                .run()) {
            RateLimits limits = context.getBean(RateLimits.class);
            assertThat(limits.tryAcquire("search", "alice", 200)).isTrue();
            for (int i = 0; i < 3; i++) {
                assertThat(limits.tryAcquire("search", "alice")).isFalse();
            }

            int calls = 0;
            for (Matcher call = CALL.matcher(page); call.find(); calls++) {
                String answer = send(context.getEnvironment().getProperty("local.server.port"), call);
                if (call.group("answer").isBlank()) {
                    assertThat(answer).isEmpty();
                } else {
                    assertThat(JsonMapper.shared().readTree(answer))
                            .as(call.group())
                            .isEqualTo(JsonMapper.shared().readTree(call.group("answer")));
                }
            }
            assertThat(calls).isEqualTo(page.split("\\$ curl", -1).length - 1).isPositive();
            assertThat(limits.peek("search", "alice").remaining()).isEqualTo(400);
        }
    }

    private static String send(String port, Matcher call) throws Exception {
        String body = call.group("body");
        String method = call.group("method") != null ? call.group("method") : body == null ? "GET" : "POST";
        HttpRequest request = HttpRequest.newBuilder(URI.create("http://localhost:" + port + call.group("path")))
                .header("Content-Type", "application/json")
                .method(method, body == null ? BodyPublishers.noBody() : BodyPublishers.ofString(body))
                .build();
        return HttpClient.newHttpClient()
                .send(request, HttpResponse.BodyHandlers.ofString())
                .body();
    }
}
