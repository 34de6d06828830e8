package io.ratelimited.sample.page;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIf;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Runs of the live page. */
@EnabledIf(value = "io.ratelimited.sample.page.Browser#isInstalled", disabledReason = Browser.MISSING)
@Tag("once")
@Tag("slow")
class LivePageTest extends LivePage {

    private static final List<String> OUTCOMES = List.of("admitted", "delayed", "rejected", "shadowed");

    /** One that refuses, and one whose calls wait. */
    @ParameterizedTest
    @ValueSource(strings = {"token-bucket", "leaky-bucket"})
    void aRunDrawsItsSeriesAndCountsWhatTheMetersCount(String algorithm) throws IOException {
        assertDrawnAndCounted(algorithm);
    }

    @Tag("proof")
    @ParameterizedTest
    @ValueSource(
            strings = {
                "warm-up",
                "smooth-bursty",
                "gcra",
                "fixed-window",
                "sliding-window",
                "sliding-log",
                "concurrency"
            })
    void aRunOfAnyOtherAlgorithmIsDrawnAndCountedToo(String algorithm) throws IOException {
        assertDrawnAndCounted(algorithm);
    }

    private void assertDrawnAndCounted(String algorithm) throws IOException {
        browser.choose("algorithm", algorithm);
        Map<String, Long> before = meters("demo-" + algorithm);
        long refusedBefore = http.refused("demo-" + algorithm, "alice");
        browser.set("calls", 40);
        browser.run(60);
        browser.screenshot(algorithm);
        assertThat(browser.drawn(0, "calls")).isGreaterThan(100);
        assertThat(browser.drawn(0, "level")).isGreaterThan(20);
        assertThat(browser.drawn(0, "waits")).isGreaterThan(20);
        assertThat(browser.find(".rates").isDisplayed()).isEqualTo(!algorithm.equals("concurrency"));
        long sum = 0;
        for (String outcome : OUTCOMES) {
            long counted = browser.count(0, outcome);
            assertThat(counted).as(outcome).isEqualTo(http.metered("demo-" + algorithm, outcome) - before.get(outcome));
            sum += counted;
        }
        assertThat(browser.count(0, "offered")).isEqualTo(sum).isGreaterThanOrEqualTo(60);
        assertThat(http.refused("demo-" + algorithm, "alice") - refusedBefore).isEqualTo(browser.count(0, "rejected"));
        assertThat(browser.texts(".meters")).containsExactly("The meters of the application have the same counts.");
        assertThat(browser.texts("[data-code=answer] code").get(0))
                .contains("RateLimit: \"demo-" + algorithm + "\";r=");
    }

    /**
     * The load is more than the rate, and calls may wait as long as the queue is. It is seen at a fifth of rate and burst: the same
     * wait, and a busy machine serves more than two calls a second. The last call before the first rejection waits 1.5 to 2 s.
     */
    @Test
    void withTheDefaultsOfThePageTheQueueOfTheLeakyBucketFills() {
        browser.choose("algorithm", "leaky-bucket");
        int rate = value("rate");
        int burst = value("burst");
        assertThat(value("calls")).isGreaterThan(rate);
        assertThat(value("maxWait")).isGreaterThanOrEqualTo(1000 * burst / rate);
        browser.set("rate", rate / 5);
        browser.set("burst", burst / 5 + 1);
        browser.start();
        browser.awaitCount("rejected", 1);
        browser.stop();
        String waits = String.valueOf(browser.find("[data-chart=waits]").getDomAttribute("aria-label"));
        assertThat(waits).matches("Waits of admitted calls: at most \\d+ ms");
        assertThat(Integer.parseInt(waits.replaceAll("\\D", ""))).isGreaterThan(1450);
        assertThat(browser.script("return getComputedStyle(document.querySelector('.share .delayed')).backgroundColor"))
                .as("a delayed call has one color")
                .isEqualTo(browser.script("const tile = document.querySelector('.totals .delayed');"
                        + "return getComputedStyle(tile).borderBlockStartColor"));
        assertThat((double) browser.script(
                        "return document.querySelector('.share .delayed').getBoundingClientRect().width"))
                .isPositive();
    }

    /** At one permit an hour nothing comes back while the test looks. */
    @Test
    void whatThePageSaysIsLeftIsWhatTheEndpointSays() {
        browser.choose("period", "h");
        browser.set("rate", 1);
        browser.set("burst", 500);
        String before =
                http.get("/actuator/ratelimits/demo-token-bucket").body().replaceAll("(?s)\"keys\".*", "");
        browser.run(30);
        long left = 500 - browser.count(0, "admitted");
        assertThat(http.get("/actuator/ratelimits/demo-token-bucket").body())
                .as("a run restores what it has changed")
                .startsWith(before);
        assertThat(browser.find("[data-chart=level]").getDomAttribute("aria-label"))
                .isEqualTo("Tokens in the bucket: " + left);
        assertThat(browser.texts("#left > div"))
                .hasSize(10)
                .contains("demo-token-bucket" + left + " permits", "demo-model100 tokens", "demo-leaky-bucket1 permit");
        assertThat(browser.texts(".share li span:last-child"))
                .containsExactly(browser.count(0, "admitted") + " admitted, 0 rejected");
    }

    @Test
    void aPolicyOfShadowLetsCallsInAndCountsThem() {
        browser.choose("policy", "SHADOW");
        browser.choose("period", "h");
        browser.set("rate", 1);
        browser.set("burst", 1);
        browser.set("calls", 40);
        browser.run(20);
        assertThat(browser.count(0, "admitted")).isEqualTo(1);
        assertThat(browser.count(0, "shadowed")).isEqualTo(browser.count(0, "offered") - 1);
        assertThat(browser.count(0, "rejected")).isZero();
    }

    @Test
    void sideBySideBothAlgorithmsGetTheSameLoad() throws IOException {
        browser.click("#compare");
        browser.choose("second", "sliding-log");
        browser.load("greedy");
        browser.set("calls", 40);
        browser.run(60);
        assertThat(browser.texts(".panel h2")).containsExactly("Token bucket", "Sliding log");
        assertThat(browser.count(0, "offered")).isEqualTo(browser.count(1, "offered"));
        assertThat(browser.texts(".panel:first-child .share li")).hasSize(10);
        assertThat(browser.texts(".meters"))
                .hasSize(2)
                .containsOnly("The meters of the application have the same counts.");
        assertThat(browser.drawn(1, "calls")).isGreaterThan(100);
        browser.screenshotOfAll("side-by-side");
    }

    @Test
    void aControlMovedDuringARunChangesTheLimitAndLeavesWhatWasSpentSpent() {
        browser.choose("period", "h");
        browser.set("rate", 1);
        browser.set("burst", 10);
        browser.set("calls", 40);
        browser.start();
        browser.awaitCount("rejected", 1);
        browser.set("burst", 100);
        browser.await(
                () -> http.get("/actuator/ratelimits/demo-token-bucket").body().contains("\"burst\":100"));
        assertThat(http.get("/actuator/ratelimits/demo-token-bucket/alice").body())
                .contains("\"remaining\":0");
        browser.stop();
        assertThat(browser.count(0, "admitted")).isEqualTo(10);
    }

    private Map<String, Long> meters(String limit) {
        Map<String, Long> counted = new HashMap<>();
        OUTCOMES.forEach(outcome -> counted.put(outcome, http.metered(limit, outcome)));
        return counted;
    }
}
