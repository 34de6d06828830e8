package io.ratelimited.sample.page;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIf;

/** A run of calls to the partner, from the page. */
@EnabledIf(value = "io.ratelimited.sample.page.Browser#isInstalled", disabledReason = Browser.MISSING)
@Tag("proof")
class PartnerRunTest extends LivePage {

    @Test
    void allCallsAreAnsweredAndThePartnerRefusesNone() {
        for (int run = 1; run <= 2; run++) {
            browser.await(() -> browser.find("#partner-run").isEnabled());
            // A click misses the button if the page above it grows at that moment.
            browser.await(() -> {
                browser.click("#partner-run");
                return !browser.find("#partner-run").isEnabled();
            });
            browser.await(() -> browser.find("#partner-says").getText().matches("(All responses|The calls failed).*"));
            assertThat(browser.find("#partner-says").getText()).startsWith("All responses came within");
            assertThat(browser.texts("[data-partner=sent]")).containsExactly("40");
            assertThat(browser.texts("[data-partner=refused]")).containsExactly("0");
            assertThat(Long.parseLong(browser.texts("[data-partner=delayed]").get(0)))
                    .isBetween(20L, 40L);
            assertThat(browser.find("#partner-timeline").getDomAttribute("aria-label"))
                    .startsWith("40 calls answered within");
            assertThat((long) browser.script("return document.querySelectorAll('#partner-timeline rect').length"))
                    .isGreaterThanOrEqualTo(20);
            assertThat(http.metered("partner-api", "admitted")).isEqualTo(40L * run);
            assertThat(http.metered("partner-api", "rejected")).isZero();
            browser.open(1360, 900, "light");
        }
    }
}
