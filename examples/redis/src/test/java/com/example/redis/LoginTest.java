package com.example.redis;

import static io.ratelimited.spring.test.RateLimitAssertions.assertThatCall;

import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.test.AutoConfigureRateLimits;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.context.SpringBootTest;

@SpringBootTest(webEnvironment = SpringBootTest.WebEnvironment.NONE)
@AutoConfigureRateLimits
class LoginTest {
    @Autowired
    Login login;

    @Autowired
    ManualTicker ticker;

    @Test
    void theSixthAttemptWithinAMinuteIsRejected() {
        for (int i = 0; i < 5; i++) {
            login.attempt("ann");
        }
        assertThatCall(() -> login.attempt("ann")).isRateLimited().by("login").retryAfter(Duration.ofMinutes(1));

        ticker.advance(Duration.ofMinutes(1));
        assertThatCall(() -> login.attempt("ann")).isNotRateLimited();
    }
}
