package com.example.webflux;

import static io.ratelimited.spring.test.RateLimitAssertions.assertThat;

import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.test.AutoConfigureRateLimits;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.webflux.test.autoconfigure.WebFluxTest;
import org.springframework.boot.webtestclient.autoconfigure.AutoConfigureWebTestClient;
import org.springframework.test.web.reactive.server.WebTestClient;

@WebFluxTest(QuoteController.class)
@AutoConfigureRateLimits
@AutoConfigureWebTestClient
class QuoteControllerFluxTest {
    @Autowired
    WebTestClient client;

    @Autowired
    ManualTicker ticker;

    @Test
    void theSixthRequestIsRejectedForTwelveSeconds() {
        for (int left = 4; left >= 0; left--) {
            assertThat(client.get().uri("/quotes/ACME").exchange())
                    .isNotRateLimited()
                    .remaining(left);
        }
        assertThat(client.get().uri("/quotes/ACME").exchange())
                .isRateLimited()
                .by("quotes")
                .retryAfter(Duration.ofSeconds(12));

        ticker.advance(Duration.ofSeconds(12));
        assertThat(client.get().uri("/quotes/ACME").exchange()).isNotRateLimited();
    }
}
