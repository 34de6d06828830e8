package io.ratelimited.sample;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.context.SpringBootTest.WebEnvironment;
import org.springframework.boot.test.web.server.LocalServerPort;

/** The sample under load: every request is answered, and what the meters say is what the clients saw. */
@SpringBootTest(webEnvironment = WebEnvironment.RANDOM_PORT, properties = "rate-limit.limits.search.rate=20/s")
class LoadTests {

    private static final int CONNECTIONS = 50;
    private static final int REQUESTS = 10_000;

    @LocalServerPort
    int port;

    @Test
    void everyRequestIsAdmittedOrRefusedAndCounted() throws Exception {
        Http http = new Http(port);
        ExecutorService clients = Executors.newFixedThreadPool(CONNECTIONS);
        List<Future<Map<Integer, Integer>>> answers = new ArrayList<>();
        try {
            for (int i = 0; i < CONNECTIONS; i++) {
                String key = "key-of-customer-" + i % 5;
                answers.add(clients.submit(() -> ask(http, key)));
            }
            Map<Integer, Integer> total = new TreeMap<>();
            for (Future<Map<Integer, Integer>> answer : answers) {
                answer.get().forEach((status, count) -> total.merge(status, count, Integer::sum));
            }

            assertThat(total).containsOnlyKeys(200, 429);
            assertThat(total.get(200) + total.get(429)).isEqualTo(REQUESTS);
            assertThat(http.metered("search", "admitted"))
                    .isEqualTo(total.get(200).longValue());
            assertThat(http.metered("search", "rejected"))
                    .isEqualTo(total.get(429).longValue());
        } finally {
            clients.shutdown();
        }
        assertThat(http.get("/actuator/prometheus").body().lines().filter(line -> line.startsWith("rate_limit_")))
                .isNotEmpty()
                .allMatch(line -> line.contains("limit=\""))
                .noneMatch(line -> line.contains("customer") || line.contains("127.0.0.1"));
    }

    private static Map<Integer, Integer> ask(Http http, String key) {
        Map<Integer, Integer> statuses = new TreeMap<>();
        for (int i = 0; i < REQUESTS / CONNECTIONS; i++) {
            statuses.merge(http.get("/search?q=tea", "X-Api-Key", key).statusCode(), 1, Integer::sum);
        }
        return statuses;
    }
}
