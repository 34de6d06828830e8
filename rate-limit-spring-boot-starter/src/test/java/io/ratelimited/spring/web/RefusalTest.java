package io.ratelimited.spring.web;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Decision;
import io.ratelimited.core.RateLimitExceededException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Locale;
import org.junit.jupiter.api.Test;

class RefusalTest {

    @Test
    void theBodyIsJsonWhateverDigitsTheMachineWrites() {
        Refusal refusal = new Refusal(
                new RateLimitExceededException(new Decision(
                        "search",
                        false,
                        Duration.ZERO,
                        Duration.ofSeconds(5),
                        false,
                        0,
                        Duration.ofSeconds(5),
                        Decision.Source.MEMORY)),
                429);
        Locale machine = Locale.getDefault();
        Locale.setDefault(Locale.forLanguageTag("ar-EG"));
        try {
            assertThat(new String(refusal.body(), StandardCharsets.UTF_8))
                    .contains("\"status\":429,", "retry after 5 s.");
        } finally {
            Locale.setDefault(machine);
        }
    }

    @Test
    void whoSendsNoListOfMediaTypesIsNoBrowser() {
        assertThat(Refusal.isPageWanted("text/html;q=x")).isFalse();
        assertThat(Refusal.isPageWanted("text/html" + ",a/b".repeat(60))).isFalse();
        assertThat(Refusal.isPageWanted("text/html;q=0")).isFalse();
        assertThat(Refusal.isPageWanted(null)).isFalse();
    }
}
