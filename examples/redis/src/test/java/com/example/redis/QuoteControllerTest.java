package com.example.redis;

import static io.ratelimited.spring.test.RateLimitAssertions.assertThat;

import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.test.AutoConfigureRateLimits;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.webmvc.test.autoconfigure.WebMvcTest;
import org.springframework.test.web.servlet.assertj.MockMvcTester;

@WebMvcTest(QuoteController.class)
@AutoConfigureRateLimits
class QuoteControllerTest {
    @Autowired
    MockMvcTester mvc;

    @Autowired
    ManualTicker ticker;

    @Test
    void theSixthRequestIsRejectedForTwelveSeconds() {
        for (int left = 4; left >= 0; left--) {
            assertThat(mvc.get().uri("/quotes/ACME")).hasStatusOk().remaining(left);
        }
        assertThat(mvc.get().uri("/quotes/ACME")).isRateLimited().by("quotes").retryAfter(Duration.ofSeconds(12));

        ticker.advance(Duration.ofSeconds(12));
        assertThat(mvc.get().uri("/quotes/ACME")).hasStatusOk();
    }
}
