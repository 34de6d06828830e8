package io.ratelimited.sample.demo;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.sample.Http;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.context.SpringBootTest.WebEnvironment;
import org.springframework.boot.test.web.server.LocalServerPort;

/** Rates of one permit an hour make totals exact: nothing comes back while a test runs. */
@SpringBootTest(
        webEnvironment = WebEnvironment.RANDOM_PORT,
        properties = {
            "rate-limit.limits.demo-token-bucket.rate=1/h",
            "rate-limit.limits.demo-gcra.rate=1/h",
            "rate-limit.limits.demo-gcra.burst=2",
            "rate-limit.limits.demo-leaky-bucket.rate=5/s",
            "rate-limit.limits.demo-warm-up.rate=10/s",
            "rate-limit.limits.demo-warm-up.warmup=5s",
            "rate-limit.limits.demo-model.rate=100/h",
            "rate-limit.limits.demo-adaptive.min-concurrent=1",
            "rate-limit.limits.demo-adaptive.max-concurrent=1"
        })
@Tag("slow")
class DemoTest {

    @LocalServerPort
    int port;

    private Http http;

    @BeforeEach
    void connect() {
        http = new Http(port);
    }

    @Test
    void theTokenBucketAdmitsItsBurstAndThenAnswers429() {
        List<HttpResponse<String>> answers = Stream.generate(() -> http.get("/demo/token-bucket?user=alice"))
                .limit(8)
                .toList();
        assertThat(answers)
                .extracting(HttpResponse::statusCode)
                .containsExactly(200, 200, 200, 200, 200, 429, 429, 429);
        HttpResponse<String> refusal = answers.get(7);
        // An hour after the first call: of 3,600 seconds, those that the eight calls have taken are over.
        assertThat(Long.parseLong(refusal.headers().firstValue("Retry-After").orElseThrow()))
                .isBetween(3_000L, 3_600L);
        assertThat(refusal.headers().firstValue("Content-Type")).hasValue("application/problem+json");
        assertThat(refusal.headers().firstValue("RateLimit-Policy")).hasValue("\"demo-token-bucket\";q=5;w=18000");
        assertThat(refusal.body()).contains("\"violated-policies\":[\"demo-token-bucket\"]");
    }

    @Test
    void anotherUserIsUnaffected() {
        Stream.generate(() -> http.get("/demo/token-bucket?user=bob")).limit(8).forEach(answer -> {});
        HttpResponse<String> answer = http.get("/demo/token-bucket?user=carol");
        assertThat(answer.statusCode()).isEqualTo(200);
        assertThat(answer.headers().firstValue("RateLimit")).get().asString().startsWith("\"demo-token-bucket\";r=4;");
    }

    @Test
    void aPropertyReplacesTheBurstOfTheAnnotation() {
        assertThat(Stream.generate(() -> http.get("/demo/gcra?user=alice")).limit(4))
                .extracting(HttpResponse::statusCode)
                .containsExactly(200, 200, 429, 429);
    }

    /** Grants are 200 ms apart, so that six of them take at least a second, however fast or slow the machine is. */
    @Test
    void callsSentAtOnceLeaveTheLeakyBucketSpaced() {
        long start = System.nanoTime();
        List<CompletableFuture<HttpResponse<String>>> calls = IntStream.range(0, 6)
                .mapToObj(i -> http.getAsync("/demo/leaky-bucket?user=alice"))
                .toList();
        assertThat(calls.stream().map(CompletableFuture::join))
                .extracting(HttpResponse::statusCode)
                .containsOnly(200);
        assertThat(Duration.ofNanos(System.nanoTime() - start)).isGreaterThanOrEqualTo(Duration.ofSeconds(1));
        assertThat(http.metered("demo-leaky-bucket", "delayed")).isPositive();
    }

    /** Warm it would go 100 ms apart; of a cold one's first 25 permits no interval is shorter than 100 ms, and their mean is 200 ms. */
    @Test
    void aColdWarmUpAdmitsLessThanHalfItsRate() {
        long start = System.nanoTime();
        long admitted = 0;
        while (admitted < 2
                || System.nanoTime() - start < Duration.ofMillis(1500).toNanos()) {
            admitted += http.get("/demo/warm-up?user=alice").statusCode() == 200 ? 1 : 0;
        }
        double seconds = (System.nanoTime() - start) / 1e9;
        assertThat((double) admitted).isBetween(2.0, 1 + seconds / 0.2);
    }

    /** The answer is charged before it is sent, so that its field has what is left afterwards. */
    @Test
    void anAnswerOfTheModelIsChargedWithTheTokensThatItUsed() {
        HttpResponse<String> answer = http.get("/demo/model?user=alice&maxTokens=20");
        Matcher body = Pattern.compile("\"reserved\":20,\"usage\":\\{\"totalTokens\":(\\d+)}")
                .matcher(answer.body());
        assertThat(body.find()).isTrue();
        assertThat(answer.headers().firstValue("RateLimit"))
                .get()
                .asString()
                .startsWith("\"demo-model\";r=" + (100 - Integer.parseInt(body.group(1))) + ";");
        HttpResponse<String> never = http.get("/demo/model?user=alice&maxTokens=101");
        assertThat(never.statusCode()).isEqualTo(429);
        assertThat(never.headers().firstValue("Retry-After")).isEmpty();
    }

    /** Each call holds its place for 200 ms, so that of twenty at once some find it taken. */
    @Test
    void aCallThatThePoolHasNoRoomForIsAnswered503WhoeverMakesIt() {
        List<CompletableFuture<HttpResponse<String>>> calls = IntStream.range(0, 20)
                .mapToObj(i -> http.getAsync("/demo/adaptive?user=user" + i))
                .toList();
        List<HttpResponse<String>> answers =
                calls.stream().map(CompletableFuture::join).toList();
        assertThat(answers).extracting(HttpResponse::statusCode).containsOnly(200, 503);
        HttpResponse<String> refusal = answers.stream()
                .filter(answer -> answer.statusCode() == 503)
                .findAny()
                .orElseThrow();
        assertThat(refusal.body()).contains("#temporary-reduced-capacity");
        assertThat(refusal.headers().firstValue("Retry-After")).get().asString().matches("[123]");
        assertThat(refusal.headers().firstValue("RateLimit-Policy")).isEmpty();
    }

    @Test
    void tokensThatNobodyCanAskForAreABadRequest() {
        HttpResponse<String> answer = http.get("/demo/model?user=alice&maxTokens=-5");
        assertThat(answer.statusCode()).isEqualTo(400);
        assertThat(answer.headers().firstValue("Content-Type")).contains("application/problem+json");
        assertThat(answer.body()).contains("\"status\":400").hasSizeLessThan(200);
    }

    @Test
    void theAnswerSaysWhatTheMetersCount() {
        long before = http.metered("demo-sliding-log", "admitted");
        assertThat(http.get("/demo/sliding-log?user=alice").body())
                .isEqualTo(
                        "{\"algorithm\":\"sliding-log\",\"user\":\"alice\",\"outcome\":\"admitted\",\"waitedMillis\":0}");
        assertThat(http.metered("demo-sliding-log", "admitted")).isEqualTo(before + 1);
    }

    @Test
    void aCallerSeesWhatIsLeftOfEachLimitOfTheDemoAndAskingTakesNothing() {
        http.get("/demo/token-bucket?user=gina");
        http.get("/demo/gcra?user=gina");
        String first = http.get("/quota?user=gina").body();
        assertThat(first)
                .contains("{\"limit\":\"demo-token-bucket\",\"remaining\":4,\"reset\":3")
                .contains("{\"limit\":\"demo-gcra\",\"remaining\":1,")
                .contains("{\"limit\":\"demo-concurrency\",\"remaining\":2,\"reset\":0}")
                .doesNotContain("search", "orders", "login");
        assertThat(first.split("\"limit\"", -1)).hasSize(11);
        assertThat(http.get("/quota?user=gina").body()).contains("\"demo-token-bucket\",\"remaining\":4,");
        assertThat(http.get("/quota?user=hans").body()).contains("\"demo-token-bucket\",\"remaining\":5,");
    }

    @Test
    void anotherHostOfThisMachineMayCallAndReadTheHeaders() {
        HttpResponse<String> answer = http.get("/demo/gcra?user=dave", "Origin", "http://localhost:8080");
        assertThat(answer.headers().firstValue("Access-Control-Allow-Origin")).hasValue("http://localhost:8080");
        assertThat(answer.headers().firstValue("Access-Control-Expose-Headers"))
                .hasValue("RateLimit, RateLimit-Policy, Retry-After");
        assertThat(http.get("/demo/gcra?user=erin", "Origin", "http://example.org")
                        .statusCode())
                .isEqualTo(403);
    }
}
