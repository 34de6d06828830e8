package com.example.charging;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.test.AutoConfigureRateLimits;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.springframework.ai.chat.model.ChatModel;
import org.springframework.ai.chat.prompt.ChatOptions;
import org.springframework.ai.chat.prompt.Prompt;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.web.server.LocalServerPort;
import org.springframework.test.web.servlet.client.RestTestClient;

@SpringBootTest(webEnvironment = SpringBootTest.WebEnvironment.RANDOM_PORT)
@AutoConfigureRateLimits
class ChargingTest {

    @LocalServerPort
    int port;

    @Autowired
    RateLimits limits;

    RestTestClient client;

    @BeforeEach
    void connect() {
        client = RestTestClient.bindToServer()
                .baseUrl("http://localhost:" + port)
                .build();
    }

    @Test
    void anAnswerCostsTheTokensThatItUsedAndNotThoseThatItReserved(@Autowired Assistant assistant) {
        assistant.ask("acme", "What goes with scones?", 5_000);
        assertThat(used("tokens", 100_000)).isEqualTo(1_000);
        assistant.stream("acme", "And with shortbread?", 5_000).blockLast();
        assertThat(used("tokens", 100_000)).isEqualTo(2_000);
    }

    @Test
    void aTokenOfAnExpensiveModelCostsMore(@Autowired TenantModels models) {
        ChatModel model = models.of("acme");
        model.call(new Prompt(
                "What goes with scones?",
                ChatOptions.builder().model("large").maxTokens(60_000).build()));
        assertThat(used("model-tokens", 1_000_000)).isEqualTo(15_000);
    }

    @Test
    void aDownloadCostsItsBytes() {
        String report = client.get()
                .uri("/reports/1")
                .exchange()
                .returnResult(String.class)
                .getResponseBody();
        assertThat(10_000_000 - limits.peek("download-bytes", null).remaining()).isEqualTo(report.length());
    }

    @Test
    void fiveFailedLoginsLockTheSixthOutAndSuccessfulOnesCostNothing() {
        for (int login = 1; login <= 7; login++) {
            assertThat(login("bob", "right")).isEqualTo(200);
        }
        for (int login = 1; login <= 5; login++) {
            assertThat(login("ann", "wrong")).isEqualTo(401);
        }
        assertThat(login("ann", "right")).isEqualTo(429);
        assertThat(login("bob", "right")).isEqualTo(200);
    }

    private long used(String limit, long burst) {
        return burst - limits.peek(limit, "acme").remaining();
    }

    private int login(String user, String password) {
        return client.post()
                .uri("/login?user={user}&password={password}", user, password)
                .exchange()
                .returnResult()
                .getStatus()
                .value();
    }
}
