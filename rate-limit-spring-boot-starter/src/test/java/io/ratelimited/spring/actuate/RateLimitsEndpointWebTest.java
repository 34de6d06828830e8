package io.ratelimited.spring.actuate;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.jayway.jsonpath.JsonPath;
import io.ratelimited.core.CanonicalKey;
import io.ratelimited.core.Ticker;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.TestLimits;
import io.ratelimited.spring.internals.web.RunningServer;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

@Tag("spring-boot")
@Tag("slow")
class RateLimitsEndpointWebTest {

    private static final Map<String, Object> PROPERTIES = Map.ofEntries(
            Map.entry("spring.autoconfigure.exclude", RunningServer.SECURITY),
            Map.entry("server.port", "0"),
            Map.entry("server.shutdown", "immediate"),
            Map.entry("spring.main.banner-mode", "off"),
            Map.entry("management.endpoints.web.exposure.include", "ratelimits"),
            Map.entry("rate-limit.actuator.mask-keys", "false"),
            Map.entry("rate-limit.limits.search.rate", "100/s"),
            Map.entry("rate-limit.limits.search.burst", "200"),
            Map.entry("rate-limit.limits.search.key", "#user"),
            Map.entry("rate-limit.limits.search.tier", "#plan"),
            Map.entry("rate-limit.limits.search.tiers.gold.rate", "1000/s"),
            Map.entry("rate-limit.limits.mail.algorithm", "leaky-bucket"),
            Map.entry("rate-limit.limits.mail.rate", "10/s"),
            Map.entry("rate-limit.limits.mail.burst", "20"),
            Map.entry("rate-limit.limits.mail.max-wait", "1500ms"),
            Map.entry("rate-limit.limits.report.algorithm", "concurrency"),
            Map.entry("rate-limit.limits.report.max-concurrent", "3"),
            Map.entry("rate-limit.limits[Orders.place(String,int)].rate", "5/m"),
            Map.entry("rate-limit.limits[partner/eu].rate", "7/m"));

    /** Applications that several tests share. */
    private static final Map<WebApplicationType, ConfigurableApplicationContext> SHARED =
            new EnumMap<>(WebApplicationType.class);

    private final HttpClient client = HttpClient.newHttpClient();
    private ConfigurableApplicationContext context;
    private TestLimits limits;

    @AfterEach
    void close() {
        if (!SHARED.containsValue(context)) {
            context.close();
        }
    }

    @AfterAll
    static void closeShared() {
        SHARED.values().forEach(ConfigurableApplicationContext::close);
        SHARED.clear();
    }

    @Test
    void limitsAreListedByName() throws Exception {
        share(WebApplicationType.SERVLET);

        HttpResponse<String> answer = get("");

        assertThat(answer.statusCode()).isEqualTo(200);
        assertThat(JsonPath.<Map<String, Object>>read(answer.body(), "$.limits"))
                .containsOnlyKeys("search", "mail", "report", "Orders.place(String,int)", "partner/eu");
        assertThat(JsonPath.<Map<String, Object>>read(answer.body(), "$.limits.mail"))
                .containsEntry("algorithm", "leaky-bucket")
                .containsEntry("rate", "10/s")
                .containsEntry("burst", 20)
                .containsEntry("policy", "wait")
                .containsEntry("maxWait", "1500ms")
                .containsEntry("maxWaiting", 1000)
                .containsEntry("backend", "memory")
                .containsEntry("declaredBy", "rate-limit.limits.mail")
                .containsEntry("keys", 0)
                .containsEntry("waiting", 0)
                .doesNotContainKeys("warmup", "zone", "startsOn", "slots", "maxConcurrent", "lease");
    }

    @ParameterizedTest
    @EnumSource(
            value = WebApplicationType.class,
            names = {"SERVLET", "REACTIVE"})
    void whoMayOnlyReadChangesNothing(WebApplicationType type) throws Exception {
        start(type, Map.of("management.endpoint.ratelimits.access", "read-only"));
        limits.tryAcquire("search", "ann", 3);

        // Without bodies: a reactive Jetty can take the bytes of one that nobody has read for the next request.
        for (String path : List.of("/search", "/search/ann")) {
            assertThat(post(path + "?rate=1/s", "").statusCode()).as(path).isEqualTo(405);
            assertThat(post(path + "?revert=true", "").statusCode()).as(path).isEqualTo(405);
            assertThat(delete(path).statusCode()).as(path).isEqualTo(405);
        }

        assertThat(limits.limit("search").limit().rate()).hasToString("100/s");
        assertThat(JsonPath.<Map<String, Object>>read(get("/search/ann").body(), "$"))
                .containsEntry("remaining", 197)
                .doesNotContainKey("budget");
    }

    @Test
    void aLimitThatStartupIgnoredIsNotThere() throws Exception {
        start(WebApplicationType.SERVLET, Map.of("rate-limit.limits.half.burst", "5"));

        for (String path : List.of("/half", "/half/ann")) {
            assertThat(get(path).statusCode()).as(path).isEqualTo(404);
            assertThat(post(path, "{\"rate\": \"5/m\"}").statusCode()).as(path).isEqualTo(404);
            assertThat(delete(path).statusCode()).as(path).isEqualTo(404);
        }
        assertThat(get("/half").body()).contains("'half'", "rate is missing");
        assertThatThrownBy(() -> limits.tryAcquire("half", null)).isInstanceOf(IllegalArgumentException.class);
    }

    @Test
    void aQuotaOfTheCalendarIsShownAndChanged() throws Exception {
        start(
                WebApplicationType.SERVLET,
                Map.of(
                        "rate-limit.limits.quota.algorithm", "fixed-window",
                        "rate-limit.limits.quota.rate", "1000000/month"));
        assertThat(JsonPath.<Map<String, Object>>read(get("/quota").body(), "$"))
                .containsEntry("rate", "1000000/month")
                .containsEntry("startsOn", "1")
                .containsEntry("remaining", 1_000_000);
        limits.tryAcquire("quota", null, 3);

        assertThat(post("/quota", "{\"rate\": \"2000000/month\"}").statusCode()).isEqualTo(200);
        assertThat(JsonPath.<Integer>read(get("/quota").body(), "$.remaining")).isEqualTo(1_999_997);
        assertThat(post("/quota", "{\"startsOn\": \"MONDAY\"}").body())
                .contains("startsOn is MONDAY, but must be a day from 1 to 31 for a rate per month");
        assertThat(post("/quota", "{\"rate\": \"5/week\", \"startsOn\": \"SUNDAY\"}")
                        .statusCode())
                .isEqualTo(200);
        assertThat(JsonPath.<Map<String, Object>>read(get("/quota").body(), "$"))
                .containsEntry("rate", "5/week")
                .containsEntry("startsOn", "SUNDAY")
                .containsEntry("remaining", 5);
    }

    @ParameterizedTest
    @EnumSource(
            value = WebApplicationType.class,
            names = {"SERVLET", "REACTIVE"})
    void aNameWithASlashIsShownChangedAndForgotten(WebApplicationType type) throws Exception {
        share(type);
        limits.tryAcquire("partner/eu", null, 3);
        limits.tryAcquire("partner/eu", "a/b", 2);

        assertThat(JsonPath.<String>read(get("/partner/eu").body(), "$.name")).isEqualTo("partner/eu");
        assertThat(JsonPath.<Integer>read(get("/partner/eu").body(), "$.remaining"))
                .isEqualTo(4);
        assertThat(JsonPath.<Integer>read(get("/partner/eu/a/b").body(), "$.remaining"))
                .isEqualTo(5);
        assertThat(post("/partner/eu", "{\"rate\": \"8/m\"}").statusCode()).isEqualTo(200);
        assertThat(limits.limit("partner/eu").limit()).hasToString("partner/eu: token-bucket, rate 8/m, burst 8");
        assertThat(delete("/partner/eu/a/b").statusCode()).isEqualTo(204);
        assertThat(limits.peek("partner/eu", "a/b").remaining()).isEqualTo(8);
        assertThat(get("/partner").statusCode()).isEqualTo(404);
    }

    @Test
    void callsInFlightAreCountedThoughAChangeAllowsFewer() throws Exception {
        start(WebApplicationType.SERVLET, Map.of());
        limits.reserve("report", null, 3);
        limits.reserve("report", "alice", 2);

        assertThat(post("/report", "{\"maxConcurrent\": 1}").statusCode()).isEqualTo(200);

        assertThat(JsonPath.<Map<String, Object>>read(get("/report").body(), "$"))
                .containsEntry("remaining", 0)
                .containsEntry("inFlight", 3)
                .containsEntry("busiest", List.of(Map.of("key", "alice", "inFlight", 2)));
        assertThat(JsonPath.<Integer>read(get("/report/alice").body(), "$.inFlight"))
                .isEqualTo(2);
    }

    @Test
    void aLimitShowsItsBudgetItsTiersAndItsMostRefusedKeys() throws Exception {
        start(WebApplicationType.SERVLET, Map.of());
        limits.tryAcquire("search", "alice", 200);
        for (int i = 0; i < 3; i++) {
            limits.tryAcquire("search", "alice");
        }
        limits.tryAcquire("search", "bob", 201);
        limits.tryAcquire("search", null, 50);

        Map<String, Object> limit = JsonPath.read(get("/search").body(), "$");

        assertThat(limit)
                .containsEntry("name", "search")
                .containsEntry("key", "#user")
                .containsEntry("remaining", 150)
                .containsEntry("reset", 0.5)
                .containsEntry("keys", 2)
                .doesNotContainKey("retryAfter");
        assertThat(limit.get("tiers"))
                .isEqualTo(Map.of(
                        "gold",
                        Map.of("algorithm", "token-bucket", "rate", "1000/s", "burst", 1000, "source", "memory")));
        assertThat(limit.get("mostRefused"))
                .asString()
                .isEqualTo("[{\"key\":\"alice\",\"refused\":3}," + "{\"key\":\"bob\",\"refused\":1}]");
    }

    @ParameterizedTest
    @EnumSource(names = {"SERVLET", "REACTIVE"})
    void aKeyShowsWhatIsLeft(WebApplicationType type) throws Exception {
        share(type);
        limits.tryAcquire("search", "alice", 200);

        Map<String, Object> key = JsonPath.read(get("/search/alice").body(), "$");

        assertThat(key)
                .containsEntry("name", "search")
                .containsEntry("key", "alice")
                .containsEntry("remaining", 0)
                .containsEntry("reset", 2.0)
                .containsEntry("retryAfter", 0.01);

        limits.reserve("search", "bob", 1).settle(500);

        assertThat(JsonPath.<Map<String, Object>>read(get("/search/bob").body(), "$"))
                .as("in debt")
                .containsEntry("remaining", 0)
                .containsEntry("reset", 5.0)
                .containsEntry("retryAfter", 3.01);
    }

    @ParameterizedTest
    @EnumSource(names = {"SERVLET", "REACTIVE"})
    void keysWithSlashesSpacesAndUmlautsAreFound(WebApplicationType type) throws Exception {
        share(type);
        limits.tryAcquire("search", "/a/b", 200);
        limits.tryAcquire("search", "a/b c", 199);
        limits.tryAcquire("search", "https://a//b?c=d&e", 198);
        limits.tryAcquire("search", "jörg;x=1,2", 197);

        limits.tryAcquire("search", "search/x", 196);

        assertThat(remaining("/search/a/b%20c")).isEqualTo(1);
        assertThat(remaining("/search/search/x")).isEqualTo(4);
        assertThat(remaining("/search?key=%2Fa%2Fb")).isZero();
        assertThat(remaining("/search?key=https%3A%2F%2Fa%2F%2Fb%3Fc%3Dd%26e")).isEqualTo(2);
        assertThat(remaining("/search?key=j%C3%B6rg%3Bx%3D1%2C2")).isEqualTo(3);
        assertThat(remaining("/search/j%C3%B6rg%3Bx%3D1,2")).isEqualTo(3);
    }

    @ParameterizedTest
    @EnumSource(names = {"SERVLET", "REACTIVE"})
    void aKeyThatIsNoStringIsFoundByItsText(WebApplicationType type) throws Exception {
        share(type);
        record Customer(long id, String country) {}
        limits.tryAcquire("search", new Customer(7, "de"), 199);

        assertThat(remaining("/search/" + CanonicalKey.text(new Customer(7, "de"))))
                .isEqualTo(1);
        assertThat(remaining("/search/43")).isEqualTo(200);

        for (long number : new long[] {42, 1_234_567_890_123_456_789L, Long.MIN_VALUE}) {
            limits.tryAcquire("search", number, 200);
            assertThat(remaining("/search/" + number)).isZero();
            assertThat(delete("/search/" + number).statusCode()).isEqualTo(204);
            assertThat(limits.peek("search", number).remaining()).isEqualTo(200);
        }
    }

    @Test
    void aLongKeyIsFoundByItsWholeText() throws Exception {
        start(WebApplicationType.SERVLET, Map.of());
        String key = "k".repeat(300);
        limits.tryAcquire("search", key, 200);
        limits.tryAcquire("search", key);

        assertThat(remaining("/search/" + key)).isZero();
        String shown = JsonPath.read(get("/search").body(), "$.mostRefused[0].key");
        assertThat(shown).startsWith("sha256:");
        assertThat(remaining("/search/" + shown)).isZero();
    }

    @Test
    void maskedKeysAreNotShownAndCanBeActedUpon() throws Exception {
        start(WebApplicationType.SERVLET, Map.of("rate-limit.actuator.mask-keys", "true"));
        limits.tryAcquire("search", "sk-secret", 200);
        limits.tryAcquire("search", "sk-secret");

        String body = get("/search").body();
        assertThat(body).doesNotContain("secret");
        String mask = JsonPath.read(body, "$.mostRefused[0].key");
        assertThat(mask).matches("masked:[0-9a-f]{12}");
        assertThat(remaining("/search/" + mask)).isZero();

        limits.execute("report", "sk-secret", () -> {
            String busiest = JsonPath.read(get("/report").body(), "$.busiest[0].key");
            assertThat(busiest).isEqualTo(mask);
            return null;
        });

        assertThat(delete("/search/" + mask).statusCode()).isEqualTo(204);
        assertThat(limits.peek("search", "sk-secret").remaining()).isEqualTo(200);
        assertThat(get("/search/masked:000000000000").statusCode()).isEqualTo(400);
    }

    @ParameterizedTest
    @EnumSource(names = {"SERVLET", "REACTIVE"})
    void aChangeAnswersTheNewLimitAndKeepsWhatIsLeft(WebApplicationType type) throws Exception {
        share(type);
        limits.tryAcquire("search", "alice", 150);

        assertThat(post("/search", "{\"rate\": \"200/s\", \"burts\": 400}").statusCode())
                .isEqualTo(400);
        HttpResponse<String> answer = post("/search", "{\"rate\": \"200/s\", \"burst\": 400}");

        assertThat(answer.statusCode()).isEqualTo(200);
        assertThat(JsonPath.<Map<String, Object>>read(answer.body(), "$"))
                .containsEntry("rate", "200/s")
                .containsEntry("burst", 400);
        assertThat(limits.peek("search", "alice").remaining()).isEqualTo(50);
    }

    @Test
    void policyWaitAndTiersCanBeChanged() throws Exception {
        share(WebApplicationType.SERVLET);

        String waiting = post("/search", "{\"policy\": \"wait\", \"maxWait\": \"250ms\", \"maxWaiting\": 7}")
                .body();
        assertThat(JsonPath.<Map<String, Object>>read(waiting, "$"))
                .containsEntry("policy", "wait")
                .containsEntry("maxWait", "250ms")
                .containsEntry("maxWaiting", 7)
                .containsEntry("rate", "100/s");

        String gold =
                post("/search", "{\"tier\": \"gold\", \"rate\": \"2000/s\"}").body();
        assertThat(JsonPath.<String>read(gold, "$.tiers.gold.rate")).isEqualTo("2000/s");
        assertThat(JsonPath.<String>read(gold, "$.rate")).isEqualTo("100/s");
    }

    /** Spring Boot reads no JSON list or object as a member of a body. */
    @ParameterizedTest
    @EnumSource(names = {"SERVLET", "REACTIVE"})
    void theTextThatAnErrorRecommendsForAListIsTaken(WebApplicationType type) throws Exception {
        share(type);

        HttpResponse<String> refused = post("/report", "{\"priorities\": \"critical, batch\", \"shares\": \"5%\"}");
        assertThat(refused.statusCode()).isEqualTo(400);
        assertThat(JsonPath.<String>read(refused.body(), "$.error"))
                .contains("shares", "use a text such as \"batch=5%, normal=20%\"; nothing was changed");
        assertThat(post("/report", "{\"priorities\": [\"critical\", \"batch\"]}")
                        .statusCode())
                .isEqualTo(400);
        assertThat(limits.limit("report").limit().priorities()).isEmpty();

        assertThat(post("/report", "{\"priorities\": \"critical, batch\", \"shares\": \"batch=5%, critical=20%\"}")
                        .statusCode())
                .isEqualTo(200);
        assertThat(JsonPath.<Map<String, Object>>read(get("/report").body(), "$"))
                .containsEntry("priorities", List.of("critical", "batch"))
                .containsEntry("shares", Map.of("batch", "5%", "critical", "20%"));

        assertThat(post("/report?priorities=batch&priorities=critical", "{}").statusCode())
                .isEqualTo(200);
        assertThat(limits.limit("report").limit().priorities()).containsExactly("batch", "critical");
    }

    @Test
    void whatCannotBeMeantIsAnswered400AndChangesNothing() throws Exception {
        share(WebApplicationType.SERVLET);
        String before = get("/search").body();

        assertThat(error("{\"rate\": \"200/x\"}")).contains("'search'", "rate", "200/x", "100/s");
        assertThat(error("{\"rate\": \"200/s\", \"burst\": 0}")).contains("burst is 0, but must be at least 1");
        assertThat(error("{\"rate\": \"200/s\", \"burst\": \"many\"}")).contains("burst", "\"many\"", "whole number");
        assertThat(error("{\"rate\": \"200/s\", \"maxWait\": \"soon\"}")).contains("maxWait", "\"soon\"", "500ms");
        assertThat(error("{\"rate\": \"200/s\", \"policy\": \"block\"}"))
                .contains("policy", "\"block\"", "[reject, wait, shadow]");
        assertThat(error("{\"rate\": \"200/s\", \"policy\": \"default\"}"))
                .contains(
                        "policy of rate limit 'search'",
                        "\"default\"; use one of [reject, wait, shadow]; nothing was changed");
        assertThat(error("{\"rate\": \"200/s\", \"maxWait\": \"1s\"}"))
                .contains("maxWait", "REJECT", "Set the policy to WAIT");
        assertThat(error("{\"rate\": \"200/s\", \"slots\": 5}"))
                .contains("slots is 5, but TOKEN_BUCKET does not support it");
        assertThat(error("{\"tier\": \"silver\", \"rate\": \"1/s\"}")).contains("no tier 'silver'", "[gold]");
        assertThat(error("{\"tier\": \"gold\", \"rate\": \"fast\"}")).contains("tier 'gold'", "\"fast\"");
        assertThat(error("{}")).contains("nothing to change", "maxWaiting");
        assertThat(error("{\"rate\": \"200/s\", \"burst\": \"\"}")).contains("burst", "cannot be \"\"", "whole number");
        assertThat(error("{\"tier\": \"a]b\", \"rate\": \"1/s\"}")).contains("no tier 'a]b'", "[gold]");
        assertThat(error("{\"tier\": \"gold\"}")).contains("nothing to change");
        assertThat(error("{\"algorithm\": \"gcra\"}")).contains("a limit has no [algorithm]");
        assertThat(error("{\"speed\": \"200/s\"}")).contains("a limit has no [speed]", "maxWaiting");
        assertThat(error("{\"rate\": \"200/s\", \"burts\": 400}"))
                .contains("a limit has no [burts]", "use members of [block, ", "nothing was changed");
        assertThat(error("{\"bust\": 400}")).contains("a limit has no [bust] (did you mean 'burst'?); use members of");
        assertThat(error("{\"burst\": -5}")).contains("burst is -5, but must be at least 1");
        assertThat(error("{\"policy\": \"wait\", \"maxWait\": \"-1s\"}"))
                .contains("maxWait is -1s, but must be from 0s to 365d");

        assertThat(get("/search").body()).isEqualTo(before);
    }

    @ParameterizedTest
    @EnumSource(names = {"SERVLET", "REACTIVE"})
    void onlyTheLimitInThePathIsShownChangedAndForgotten(WebApplicationType type) {
        share(type);
        limits.tryAcquire("search", "alice", 200);
        limits.tryAcquire("search", "bob", 200);

        for (String other : List.of("name", "key", "nameInPath", "keyInPath", "path")) {
            HttpResponse<String> answer = post("/search", "{\"" + other + "\": \"mail\", \"rate\": \"1/s\"}");
            assertThat(answer.statusCode()).isEqualTo(400);
            assertThat(answer.body()).contains("a limit has no [" + other + "]");
            assertThat(post("/search?" + other + "=mail", "{\"rate\": \"1/s\"}").statusCode())
                    .isEqualTo(400);
        }
        assertThat(limits.limit("mail").limit().rate()).hasToString("10/s");
        assertThat(limits.limit("search").limit().rate()).hasToString("100/s");

        assertThat(delete("/search/alice?key=bob").statusCode()).isEqualTo(204);
        assertThat(limits.peek("search", "alice").remaining()).isEqualTo(200);
        assertThat(limits.peek("search", "bob").remaining()).isZero();

        for (String other : List.of("name", "nameInPath", "keyInPath", "path", "Key")) {
            requireNothingElse(get("/search?" + other + "=mail"), other);
            requireNothingElse(get("/search/alice?" + other + "=bob&" + other + "=mail"), other);
            requireNothingElse(delete("/mail?" + other + "=search"), other);
            requireNothingElse(delete("/search/alice?" + other + "=bob"), other);
            requireNothingElse(delete("/search/alice?" + other + "=search/bob"), other);
        }
        assertThat(limits.peek("search", "bob").remaining()).isZero();
    }

    @ParameterizedTest
    @EnumSource(names = {"SERVLET", "REACTIVE"})
    void severalKeysAtOnceAreRefused(WebApplicationType type) {
        share(type);
        limits.tryAcquire("search", "alice", 200);
        String keys = "/search?key=alice&key=bob";
        for (HttpResponse<String> answer : List.of(get(keys), delete(keys))) {
            assertThat(answer.statusCode()).isEqualTo(400);
            assertThat(answer.body()).contains("[alice, bob]", "one key", "nothing was changed");
        }
        assertThat(limits.peek("search", "alice").remaining()).isZero();
    }

    private static void requireNothingElse(HttpResponse<String> answer, String other) {
        assertThat(answer.statusCode()).isEqualTo(400);
        assertThat(answer.body()).contains("[" + other + "]", "nothing was changed");
    }

    @ParameterizedTest
    @EnumSource(names = {"SERVLET", "REACTIVE"})
    void aBlankKeyIsRefused(WebApplicationType type) {
        share(type);
        limits.tryAcquire("search", null, 200);
        for (String blank : List.of("/search?key=", "/search?key=%20", "/search/%20")) {
            for (HttpResponse<String> answer : List.of(get(blank), delete(blank))) {
                assertThat(answer.statusCode()).as(blank).isEqualTo(400);
                assertThat(answer.body()).contains("the key is blank");
            }
        }
        assertThat(post("/search/%20", "{\"rate\": \"1/s\"}").statusCode()).isEqualTo(400);
        assertThat(limits.peek("search", null).remaining()).isZero();
    }

    /** To which Spring Security returns after a login. */
    @ParameterizedTest
    @EnumSource(names = {"SERVLET", "REACTIVE"})
    void theAddressAfterALoginIsRead(WebApplicationType type) {
        share(type);
        assertThat(get("/search?continue").statusCode()).isEqualTo(200);
    }

    @ParameterizedTest
    @EnumSource(names = {"SERVLET", "REACTIVE"})
    void aMemberWithoutAValueIsRefused(WebApplicationType type) {
        share(type);
        String before = get("/search").body();
        for (String member : List.of("tier", "rate", "revert", "candidates", "for")) {
            HttpResponse<String> answer = post("/search", "{\"" + member + "\": null, \"burst\": 7}");
            assertThat(answer.statusCode()).as(member).isEqualTo(400);
            assertThat(answer.body()).contains(member + " of rate limit 'search' is null", "nothing was changed");
        }
        assertThat(get("/search").body()).isEqualTo(before);
    }

    @ParameterizedTest
    @EnumSource(names = {"SERVLET", "REACTIVE"})
    void anUnknownLimitIsAnswered404(WebApplicationType type) throws Exception {
        share(type);

        assertThat(get("/serch").statusCode()).isEqualTo(404);
        assertThat(get("/serch").body()).contains("there is no rate limit named 'serch'", "search");
        assertThat(get("/serch/alice").statusCode()).isEqualTo(404);
        assertThat(post("/serch", "{\"rate\": \"1/s\"}").statusCode()).isEqualTo(404);
        assertThat(delete("/serch/alice").statusCode()).isEqualTo(404);
    }

    @ParameterizedTest
    @EnumSource(names = {"SERVLET", "REACTIVE"})
    void theBudgetWithoutAKeyIsForgottenUnderTheNameOfTheLimit(WebApplicationType type) throws Exception {
        share(type);
        limits.tryAcquire("Orders.place(String,int)", null, 5);
        limits.tryAcquire("search", "alice", 200);

        assertThat(remaining("/Orders.place(String,int)")).isZero();
        assertThat(delete("/Orders.place(String,int)").statusCode()).isEqualTo(204);
        assertThat(remaining("/Orders.place(String,int)")).isEqualTo(5);

        assertThat(delete("/search").statusCode()).isEqualTo(204);
        assertThat(remaining("/search/alice")).isZero();
    }

    @Test
    void aStuckCallIsSeen() throws Exception {
        share(WebApplicationType.SERVLET);

        limits.execute(
                "report",
                "alice",
                () -> limits.execute("report", null, () -> {
                    String body = get("/report").body();
                    assertThat(JsonPath.<Integer>read(body, "$.maxConcurrent")).isEqualTo(3);
                    assertThat(JsonPath.<Integer>read(body, "$.inFlight")).isEqualTo(1);
                    assertThat(JsonPath.<Integer>read(body, "$.remaining")).isEqualTo(2);
                    assertThat(JsonPath.<String>read(body, "$.busiest[0].key")).isEqualTo("alice");
                    assertThat(JsonPath.<Integer>read(body, "$.busiest[0].inFlight"))
                            .isEqualTo(1);
                    return null;
                }));
        assertThat(JsonPath.<Integer>read(get("/report").body(), "$.inFlight")).isZero();
    }

    /** An application in which every budget is whole and no limit is changed. */
    private void share(WebApplicationType type) {
        context = SHARED.get(type);
        if (context == null) {
            start(type, Map.of());
            SHARED.put(type, context);
        }
        limits = TestLimits.of(context);
        ((ManualTicker) context.getBean(Ticker.class)).advance(Duration.ofDays(1));
        limits.limits().forEach(limit -> limits.revert(limit.name()));
    }

    private void start(WebApplicationType type, Map<String, Object> more) {
        context = new SpringApplicationBuilder(Application.class)
                .web(type)
                .properties(PROPERTIES)
                .properties(more)
                .run();
        limits = TestLimits.of(context);
        PROPERTIES.keySet().stream()
                .filter(property -> property.matches("rate-limit\\.limits.+(rate|max-concurrent)"))
                .map(property -> property.replaceAll("rate-limit\\.limits[.\\[](.+?)]?\\.(tiers.*|rate|max.*)", "$1"))
                .forEach(limits::limit);
    }

    private int remaining(String path) {
        return JsonPath.read(get(path).body(), "$.remaining");
    }

    private String error(String body) {
        HttpResponse<String> answer = post("/search", body);
        assertThat(answer.statusCode()).isEqualTo(400);
        return JsonPath.read(answer.body(), "$.error");
    }

    private HttpResponse<String> get(String path) {
        return send(path, HttpRequest.newBuilder().GET());
    }

    private HttpResponse<String> delete(String path) {
        return send(path, HttpRequest.newBuilder().DELETE());
    }

    private HttpResponse<String> post(String path, String body) {
        return send(
                path,
                HttpRequest.newBuilder()
                        .header("Content-Type", "application/json")
                        .POST(HttpRequest.BodyPublishers.ofString(body)));
    }

    private HttpResponse<String> send(String path, HttpRequest.Builder request) {
        String port = context.getEnvironment().getProperty("local.server.port");
        try {
            URI uri = URI.create("http://localhost:" + port + "/actuator/ratelimits" + path);
            return client.send(request.uri(uri).build(), HttpResponse.BodyHandlers.ofString());
        } catch (IOException | InterruptedException ex) {
            throw new IllegalStateException(ex);
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    static class Application {

        @Bean
        Ticker ticker() {
            return new ManualTicker();
        }
    }
}
