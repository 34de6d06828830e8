package io.ratelimited.spring.test;

import static io.ratelimited.spring.test.RateLimitAssertions.assertThat;
import static io.ratelimited.spring.test.RateLimitAssertions.assertThatCall;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.Decision;
import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.spring.internals.web.Rejection;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletionException;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.springframework.http.HttpStatus;
import org.springframework.http.MediaType;
import org.springframework.http.ProblemDetail;
import org.springframework.http.ResponseEntity;
import org.springframework.test.web.reactive.server.WebTestClient;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;
import reactor.core.publisher.Flux;

/** What assertions accept, and what they say of the rest. */
class RateLimitAssertionsTest {

    private static final Duration MINUTE = Duration.ofMinutes(1);

    private static final Decision ADMITTED =
            new Decision("login", true, Duration.ofMillis(100), null, false, 4, MINUTE, Decision.Source.MEMORY);
    private static final Decision REFUSED =
            new Decision("login", false, Duration.ZERO, MINUTE, false, 0, MINUTE, Decision.Source.MEMORY);
    private static final Decision NEVER =
            new Decision("login", false, Duration.ZERO, null, true, 0, MINUTE, Decision.Source.MEMORY);

    private static void fails(ThrowingCallable assertion, String... parts) {
        assertThatThrownBy(assertion).isInstanceOf(AssertionError.class).hasMessageContainingAll(parts);
    }

    @Test
    void ofDecisions() {
        assertThat(ADMITTED).isNotRateLimited().by("login").remaining(4).waits(Duration.ofMillis(100));
        assertThat(REFUSED).isRateLimited().by("login").remaining(0).retryAfter(MINUTE);
        assertThat(NEVER).isRateLimited().never();

        fails(
                () -> assertThat(ADMITTED).isRateLimited(),
                "Expected a rejection, but the call was admitted",
                "limit=login");
        fails(() -> assertThat(REFUSED).isNotRateLimited(), "it was rejected");
        fails(() -> assertThat(REFUSED).by("search"), "limit search", "limit is login");
        fails(() -> assertThat(REFUSED).retryAfter(MINUTE.plusNanos(1)), "retryAfter is PT1M");
        fails(() -> assertThat(NEVER).retryAfter(MINUTE), "retryAfter is null");
        fails(() -> assertThat(REFUSED).never(), "a retry can succeed");
        assertThat(REFUSED.blockedFor(Duration.ofHours(1))).isBlocked();
        fails(() -> assertThat(REFUSED).isBlocked(), "a blocked key", "it is not blocked");
        fails(() -> assertThat(ADMITTED).remaining(5), "remaining is 4");
        fails(() -> assertThat(ADMITTED).waits(MINUTE), "waitTime is PT0.1S");
        fails(() -> assertThat(REFUSED).waits(Duration.ZERO), "it was rejected");
        fails(() -> assertThat((Decision) null).isRateLimited(), "not to be null");
        fails(() -> assertThat(ADMITTED).as("my limit").isRateLimited(), "[my limit]");
    }

    @Test
    void ofCalls() {
        RateLimitExceededException refusal = new RateLimitExceededException(REFUSED);
        assertThatCall(() -> {
                    throw refusal;
                })
                .isRateLimited()
                .retryAfter(MINUTE);
        assertThatCall(() -> {
                    throw new CompletionException(refusal);
                })
                .isRateLimited()
                .by("login");
        assertThatCall(() -> {}).isNotRateLimited();

        fails(() -> assertThatCall(() -> {}).as("my call").isRateLimited(), "[my call]", "it returned");
        fails(
                () -> assertThatCall(() -> {
                            throw refusal;
                        })
                        .isNotRateLimited(),
                "A rate limit rejected the call",
                "limit=login");
        assertThatThrownBy(() -> assertThatCall(() -> {
                            throw new IOException("business");
                        })
                        .isRateLimited())
                .isInstanceOf(IOException.class);
    }

    private static ResponseEntity.BodyBuilder refused(int status) {
        return ResponseEntity.status(status)
                .header("Retry-After", "60")
                .header("RateLimit", "\"login\";r=0;t=60, \"day\";r=12;t=3");
    }

    @Test
    void ofResponses() {
        String json = "{\"type\":\"x#quota-exceeded\",\"violated-policies\":[\"login\",\"a.b\"]}";
        ResponseEntity<String> refused = refused(429).body(json);
        assertThat(refused)
                .isRateLimited()
                .by("login")
                .by("a.b")
                .retryAfter(MINUTE)
                .retryAfter(Duration.ofMillis(59_001))
                .remaining(0);
        assertThat(refused(503).body(json)).isRateLimited(503).by("login");
        assertThat(ResponseEntity.ok().header("X-RateLimit-Remaining", "7").build())
                .isNotRateLimited()
                .noRetryAfter()
                .remaining(7);

        fails(
                () -> assertThat(ResponseEntity.ok("fine")).isRateLimited(),
                "status 429",
                "status: 200",
                "RateLimit: null");
        fails(() -> assertThat(ResponseEntity.badRequest().body("wrong")).isRateLimited(), "body: \"wrong\"");
        fails(() -> assertThat(refused).isNotRateLimited(), "not a rejection", "status: 429");
        fails(() -> assertThat(refused(503).body(json)).isNotRateLimited(), "not a rejection", "status: 503");
        fails(() -> assertThat(refused).by("log"), "violated-policies, or RateLimit", "to name 'log'");
        fails(() -> assertThat(refused).by("gin"), "to name 'gin'");
        fails(() -> assertThat(refused).by("b"), "to name 'b'");
        fails(() -> assertThat(refused).by("aXb"), "'aXb'");
        fails(() -> assertThat(refused).retryAfter(Duration.ofSeconds(61)), "Retry-After: 61", "Retry-After: \"60\"");
        fails(() -> assertThat(refused).noRetryAfter(), "no Retry-After");
        fails(() -> assertThat(refused).remaining(12), "12 remaining");
        fails(() -> assertThat(ResponseEntity.ok().build()).remaining(0), "0 remaining");
        fails(() -> assertThat(refused).as("my request").remaining(1), "[my request]");
    }

    @Test
    void anyProblemOfALimitIsARejectionWhateverItsStatus() {
        for (String type : List.of(Rejection.TYPE, Rejection.BLOCKED_TYPE, Rejection.TYPE_OVERLOADED)) {
            ResponseEntity<String> response = ResponseEntity.status(503).body("{\"type\":\"" + type + "\"}");
            fails(() -> assertThat(response).as(type).isNotRateLimited(), "not a rejection", "status: 503");
        }
        assertThat(ResponseEntity.status(503).body("{\"type\":\"about:blank\"}"))
                .isNotRateLimited();
    }

    /** Reading it would fail after the timeout of the client. */
    @Test
    void aStreamWithoutEndIsNotRead() {
        WebTestClient client = WebTestClient.bindToController(new Events()).build();
        assertThat(client.get().uri("/events").exchange()).isNotRateLimited().noRetryAfter();
        fails(() -> assertThat(client.get().uri("/events").exchange()).isRateLimited(), "status 429", "status: 200");
        fails(() -> assertThat(client.get().uri("/events").exchange()).by("login"), "to name 'login'", "status: 200");
    }

    @RestController
    static class Events {

        @GetMapping(path = "/events", produces = MediaType.TEXT_EVENT_STREAM_VALUE)
        Flux<String> events() {
            return Flux.concat(Flux.just("one"), Flux.never());
        }
    }

    /** Serializers escape different characters; the text of an object escapes none. */
    @Test
    void ofNamesWithCharactersOfLists() {
        String json =
                "{\"violated-policies\": [ \"a,b\", \"we\\\"ird]; r\", \"b\\\\\" , \"gr\\u00F6\\/n\",\"last\"], \"x\": [\"c\"]}";
        assertThat(refused(429).body(json))
                .by("a,b")
                .by("we\"ird]; r")
                .by("b\\")
                .by("grö/n")
                .by("last");
        for (String other : List.of("a", "b", "we", "ird]; r", "x", "c", "a,b\", \"we\"ird]; r", "")) {
            fails(() -> assertThat(refused(429).body(json)).by(other), "to name '" + other + "'");
        }
        ResponseEntity<Map<String, List<String>>> converted =
                refused(429).body(Map.of("violated-policies", List.of("a,b", "we\"ird", "last")));
        assertThat(converted).by("a,b").by("we\"ird").by("last");
        for (String other : List.of("a", "b", "we", "ird")) {
            fails(() -> assertThat(converted).by(other), "to name '" + other + "'");
        }
        String unquoted = "{violated-policies=[login]}";
        fails(() -> assertThat(refused(429).body(unquoted)).by("login"), "to name 'login'");
    }

    /** A browser gets a page, which names no limit. */
    @Test
    void ofPages() {
        ResponseEntity<String> page = ResponseEntity.status(429)
                .header("Retry-After", "12")
                .header("RateLimit", "\"day\";r=99;t=86400, \"find-form\";r=0;t=12, \"gr%C3%B6\";r=0;t=12")
                .body("<h1>Too many requests of day</h1>");
        assertThat(page).by("find-form").by("grö");
        fails(() -> assertThat(page).by("day"), "to name 'day'");
        fails(() -> assertThat(page).by("form"), "to name 'form'");
    }

    @Test
    void ofBodiesThatWereConverted() {
        ProblemDetail problem = ProblemDetail.forStatus(HttpStatus.TOO_MANY_REQUESTS);
        problem.setProperty("violated-policies", List.of("login"));
        assertThat(refused(429).body(problem)).by("login");
        assertThat(refused(429).body(Map.of("violated-policies", List.of("login"))))
                .by("login");
        assertThat(refused(429).body("{\"violated-policies\": [\"login\"]}".getBytes(StandardCharsets.UTF_8)))
                .by("login");
        fails(() -> assertThat(refused(429).body(problem)).by("gin"), "to name 'gin'");
        fails(() -> assertThat(refused(429).build()).by("other"), "body: \"null\"");
    }

    @Test
    void whatAssertJAssertsOnOtherThingsStays() {
        assertThat("text").startsWith("t");
        assertThat(refused(429).<String>build())
                .extracting(ResponseEntity::hasBody)
                .isEqualTo(false);
    }
}
