package io.ratelimited.sample;

import static org.assertj.core.api.Assertions.assertThat;

import java.net.http.HttpResponse;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.context.SpringBootTest.WebEnvironment;
import org.springframework.boot.test.web.server.LocalServerPort;

/** The running sample under load. One permit an hour: what is admitted is the bursts, exactly. */
@SpringBootTest(
        webEnvironment = WebEnvironment.RANDOM_PORT,
        properties = {
            "rate-limit.limits.demo-token-bucket.rate=1/h",
            "rate-limit.limits.demo-token-bucket.burst=150",
            "rate-limit.actuator.mask-keys=false"
        })
@Tag("once")
@Tag("slow")
class LoadTest {

    private static final int CONNECTIONS = 50;
    private static final int CALLERS = 10;
    private static final long BURST = 150;

    @LocalServerPort
    int port;

    private Http http;

    /** Calls of a connection. */
    int calls() {
        return 40;
    }

    @BeforeEach
    void connect() {
        http = new Http(port);
    }

    @Test
    void manyRequestsAreAdmittedOrRefusedAndEverybodyCountsTheSame() throws Exception {
        long callsOfACaller = (long) CONNECTIONS * calls() / CALLERS;
        Map<Integer, Long> answers = load();

        assertThat(answers)
                .containsOnly(Map.entry(200, CALLERS * BURST), Map.entry(429, CALLERS * (callsOfACaller - BURST)));
        assertThat(http.metered("demo-token-bucket", "admitted")).isEqualTo(answers.get(200));
        assertThat(http.metered("demo-token-bucket", "rejected")).isEqualTo(answers.get(429));
        assertThat(http.metered("demo-token-bucket", "delayed")).isZero();
        assertThat(http.metered("demo-token-bucket", "shadowed")).isZero();
        for (int i = 0; i < CALLERS; i++) {
            assertThat(http.get("/actuator/ratelimits/demo-token-bucket/" + caller(i))
                            .body())
                    .contains("\"remaining\":0,");
            assertThat(http.refused("demo-token-bucket", caller(i))).isEqualTo(callsOfACaller - BURST);
        }
    }

    @Test
    void aScrapeShowsTheMetersAndNoKey() {
        assertThat(http.get("/search?q=tea", "X-Api-Key", "key-of-gina").statusCode())
                .isEqualTo(200);
        assertThat(http.get("/demo/leaky-bucket?user=" + caller(0)).statusCode())
                .isEqualTo(200);
        String scrape = http.get("/actuator/prometheus").body();
        assertThat(scrape)
                .contains(
                        "rate_limit_decisions_total{limit=\"search\",outcome=\"admitted\",source=\"memory\"}",
                        "rate_limit_wait_seconds_count{limit=\"demo-leaky-bucket\"",
                        "rate_limit_keys{limit=\"demo-token-bucket\"}",
                        "rate_limit_waiting{limit=\"demo-leaky-bucket\"} 0.0")
                .doesNotContain(caller(0).substring(0, 6), "key-of-gina", "127.0.0.1");
    }

    /** The status codes of the answers, each with how often it came. Each client keeps to one connection. */
    private Map<Integer, Long> load() throws Exception {
        List<Callable<Map<Integer, Long>>> clients = IntStream.range(0, CONNECTIONS)
                .<Callable<Map<Integer, Long>>>mapToObj(i -> () -> statusesOf(new Http(port), caller(i % CALLERS)))
                .toList();
        Map<Integer, Long> answers = new HashMap<>();
        ExecutorService threads = Executors.newFixedThreadPool(CONNECTIONS);
        try {
            for (Future<Map<Integer, Long>> client : threads.invokeAll(clients)) {
                client.get().forEach((status, count) -> answers.merge(status, count, Long::sum));
            }
        } finally {
            threads.shutdownNow();
        }
        return answers;
    }

    private Map<Integer, Long> statusesOf(Http client, String caller) {
        Map<Integer, Long> answers = new HashMap<>();
        for (int i = 0; i < calls(); i++) {
            HttpResponse<String> answer = client.get("/demo/token-bucket?user=" + caller);
            answers.merge(answer.statusCode(), 1L, Long::sum);
        }
        return answers;
    }

    private static String caller(int number) {
        return "caller" + number;
    }
}
