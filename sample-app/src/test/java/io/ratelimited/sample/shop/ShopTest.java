package io.ratelimited.sample.shop;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.tuple;

import io.ratelimited.sample.Http;
import io.ratelimited.spring.RateLimitOperations;
import io.ratelimited.spring.RateLimits;
import java.net.http.HttpResponse;
import java.util.Collections;
import java.util.Optional;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.context.SpringBootTest.WebEnvironment;
import org.springframework.boot.test.web.server.LocalServerPort;

@SpringBootTest(
        webEnvironment = WebEnvironment.RANDOM_PORT,
        properties = {"rate-limit.limits.recommendations.rate=2/h", "rate-limit.limits.order-quota.rate=3/d"})
@Tag("slow")
class ShopTest {

    @LocalServerPort
    int port;

    @Autowired
    RateLimits limits;

    @Autowired
    RateLimitOperations operations;

    private Http http;

    @BeforeEach
    void connect() {
        http = new Http(port);
    }

    @Test
    void searchIsLimitedByWhatStandsInTheYamlAlone() {
        HttpResponse<String> answer = http.get("/search?q=tea");
        assertThat(answer.body()).contains("Green tea");
        assertThat(policy(answer)).hasValue("\"search\";q=10;w=2, \"search-address\";q=200;w=1");
    }

    @Test
    void inventedApiKeysBuyNoBudget() {
        http.get("/search?q=tea");
        long keys = operations.limit("search").keys();
        for (int i = 0; i < 5; i++) {
            http.get("/search?q=tea", "X-Api-Key", "invented " + i);
        }
        assertThat(operations.limit("search").keys()).isPositive().isLessThanOrEqualTo(keys);
    }

    @Test
    void aGoldCustomerMaySearchMore() {
        assertThat(policy(http.get("/search?q=tea", "X-Api-Key", "key-of-gina")))
                .hasValue("\"search\";q=100;w=2, \"search-address\";q=200;w=1");
    }

    @Test
    void theWebsiteItselfMaySearchWithoutLimit() {
        assertThat(Stream.generate(() -> http.get("/search?q=tea", "X-Api-Key", "key-of-the-website"))
                        .limit(50))
                .extracting(HttpResponse::statusCode)
                .containsOnly(200);
    }

    @Test
    void anOrderIsUnderTwoLimitsAndTheQuotaIsTheCustomersOwn() {
        assertThat(Stream.generate(() -> order("ann")).limit(4))
                .extracting(HttpResponse::statusCode)
                .containsExactly(201, 201, 201, 429);
        HttpResponse<String> other = order("ben");
        assertThat(other.statusCode()).isEqualTo(201);
        assertThat(policy(other)).get().asString().contains("\"order-pace\";q=10;w=2", "\"order-quota\";q=3;w=86400");
    }

    /** The stock is reserved for as many permits as an order has items, whoever places it. */
    @Test
    void oneOrderCannotUseUpTheStocksPermitsOfEverybody() {
        String items = "[" + String.join(",", Collections.nCopies(10_000, "\"tea\"")) + "]";
        assertThat(http.post("/orders", "{\"customer\":\"greedy\",\"items\":" + items + "}")
                        .statusCode())
                .isEqualTo(400);
        assertThat(order("modest").statusCode()).isEqualTo(201);
    }

    @Test
    void theLimitOfTheClassCountsItsMethodsButNotTheExemptOne() {
        assertThat(policy(http.get("/orders"))).hasValue("\"orders\";q=20;w=1");
        assertThat(policy(http.get("/orders/countries"))).isEmpty();
    }

    @Test
    void overItsLimitTheRecommendationIsTheFallback() {
        assertThat(Stream.generate(() -> http.get("/recommendations/carol")).limit(4))
                .allMatch(answer -> answer.statusCode() == 200)
                .extracting(HttpResponse::body)
                .extracting(body -> body.contains("Cast iron pot"), body -> body.contains("Green tea"))
                .containsExactly(tuple(true, false), tuple(true, false), tuple(false, true), tuple(false, true));
    }

    @Test
    void aLoginWithoutUserNameIsRefused() {
        assertThat(login("ann", "tea").statusCode()).isEqualTo(204);
        assertThat(http.post("/login", "{\"password\":\"tea\"}").statusCode()).isEqualTo(429);
    }

    @Test
    void wrongPasswordsBlockTheirAccountAndNoOther() {
        for (int i = 0; i < 5; i++) {
            assertThat(login("ben", "right").statusCode()).as("a guess").isEqualTo(401);
        }
        HttpResponse<String> blocked = login("ben", "tea");
        assertThat(blocked.statusCode()).isEqualTo(429);
        assertThat(blocked.body()).contains("abnormal-usage-detected", "\"violated-policies\":[\"login\"]");
        assertThat(limits.peek("login", "ben").blocked()).isTrue();
        assertThat(login("carol", "tea").statusCode()).isEqualTo(204);

        operations.reset("login", "ben");
        assertThat(login("ben", "tea").statusCode()).isEqualTo(204);
    }

    private HttpResponse<String> login(String name, String password) {
        return http.post("/login", "{\"username\":\"" + name + "\",\"password\":\"" + password + "\"}");
    }

    @Test
    void theExportGoesWhenFewerThanTwoRun() {
        assertThat(http.get("/orders/export").body()).startsWith("customer,items\n");
    }

    private HttpResponse<String> order(String customer) {
        return http.post("/orders", "{\"customer\":\"" + customer + "\",\"items\":[\"tea\"]}");
    }

    private static Optional<String> policy(HttpResponse<String> answer) {
        return answer.headers().allValues("RateLimit-Policy").stream().reduce((a, b) -> a + ", " + b);
    }
}
