package io.ratelimited.sample.page;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.io.IOException;
import java.util.Objects;
import java.util.TreeMap;
import java.util.concurrent.Semaphore;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIf;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.beans.factory.annotation.Qualifier;
import org.springframework.test.util.AopTestUtils;
import org.springframework.test.util.ReflectionTestUtils;

/** Runs whose number is found or only known at the end: ADAPTIVE, charges, and the curve of other rates. */
@EnabledIf(value = "io.ratelimited.sample.page.Browser#isInstalled", disabledReason = Browser.MISSING)
@Tag("proof")
class FoundNumbersPageTest extends LivePage {

    @Autowired
    @Qualifier("poolController")
    private Object poolController;

    /**
     * The pool has one connection left, so that it serves five calls a second and every machine sends more. An operator lowers the
     * bound before the next run: what the limit does while the last calls end is not known here.
     */
    @Test
    void theLimitThatFindsItselfComesDownAndTheNextRunBeginsAtItsUpperBoundAgain() throws Exception {
        browser.choose("algorithm", "adaptive");
        assertThat(value("calls")).isEqualTo(60);
        browser.set("calls", 20);
        assertThat(browser.texts("#fresh + span")).containsExactly("Start at the upper bound");
        Object target = AopTestUtils.getUltimateTargetObject(poolController);
        Semaphore pool = (Semaphore) Objects.requireNonNull(ReflectionTestUtils.getField(target, "pool"));
        pool.acquire(5);
        try {
            browser.start();
            browser.awaitCount("rejected", 1);
            browser.awaitInRun("document.querySelector('[data-count=limit]').textContent < 60");
            browser.screenshot("adaptive");
        } finally {
            pool.release(5);
        }
        browser.stop();
        assertThat(browser.texts(".meters")).containsExactly("The meters of the application have the same counts.");
        assertThat(browser.count(0, "inTime") + browser.count(0, "late")).isEqualTo(browser.count(0, "admitted"));
        assertThat(browser.count(0, "inFlight")).isZero();
        assertThat(browser.drawn(0, "level")).isGreaterThan(20);
        assertThat(browser.find("[data-chart=level]").getDomAttribute("aria-label"))
                .isEqualTo("Calls in flight: 0, current limit: " + browser.count(0, "limit"));
        assertThat(browser.texts("[data-code=answer] code").get(0)).doesNotContain("RateLimit");
        assertThat(http.get("/actuator/ratelimits/demo-adaptive").body())
                .contains("\"lateAfter\":\"500ms\"", "\"found\":{\"limit\":" + browser.count(0, "limit") + ",");
        assertThat(http.post("/actuator/ratelimits/demo-adaptive", "{\"maxConcurrent\": 10}")
                        .statusCode())
                .isEqualTo(200);
        browser.run(1);
        assertThat(http.get("/actuator/ratelimits/demo-adaptive").body()).contains("\"to\":60,\"reason\":\"bounds\"");
        browser.choose("algorithm", "concurrency");
        assertThat(value("maxConcurrent")).isEqualTo(2);
        assertThat(value("calls")).isEqualTo(20);
        assertThat(browser.find(".found").isDisplayed()).isFalse();
    }

    /** At one permit an hour nothing comes back while the test looks: what is left, or owed, is the burst less the charges. */
    @Test
    void aRunOfTheModelShowsWhatWasReservedAndChargedAndWhatIsOwed() throws IOException {
        browser.choose("algorithm", "model");
        assertThat(browser.find("#rate").getDomProperty("value")).isEqualTo("100");
        browser.choose("period", "h");
        browser.set("rate", 1);
        browser.set("burst", 50);
        browser.set("calls", 40);
        browser.run(40);
        browser.screenshot("model");
        assertThat(browser.count(0, "reserved")).isEqualTo(10 * browser.count(0, "admitted"));
        assertThat(browser.count(0, "charged"))
                .isPositive()
                .isEqualTo(browser.count(0, "reserved") - browser.count(0, "returned") + browser.count(0, "added"));
        assertThat(browser.count(0, "rejected")).isPositive();
        long left = 50 - browser.count(0, "charged");
        assertThat(browser.find("[data-chart=level]").getDomAttribute("aria-label"))
                .isEqualTo("Tokens left; below zero is debt: " + left);
        assertThat(browser.count(0, "debt")).isEqualTo(Math.max(0, -left));
        assertThat(browser.texts(".meters")).containsExactly("The meters of the application have the same counts.");
        assertThat(browser.texts("[data-code=annotation] code").get(0))
                .contains("algorithm = Algorithm.TOKEN_BUCKET", "permits = \"#maxTokens\"", "charge = \"#result.");
        browser.choose("algorithm", "gcra");
        assertThat(browser.find("#burst").getDomProperty("value")).isEqualTo("20");
        assertThat(browser.find(".permits").isDisplayed()).isFalse();
    }

    /** A sliding log of an hour forgets nothing while the test looks: the share of a rate is all but its calls. */
    @Test
    void theCurveShowsWhatOtherRatesWouldRejectAndEndsWithTheRun() throws IOException {
        browser.choose("algorithm", "sliding-log");
        browser.choose("period", "h");
        browser.set("calls", 40);
        assertThat(browser.find(".rates").isDisplayed()).isFalse();
        browser.start();
        browser.await(() -> !shares().isEmpty() && shares().lastEntry().getValue() > 0);
        assertThat(http.get("/actuator/ratelimits/demo-sliding-log").body()).contains("\"candidates\":{");
        browser.stop();
        browser.screenshotOfAll("rates");
        TreeMap<Integer, Double> shares = shares();
        assertThat(shares.keySet()).containsExactly(2, 4, 6, 8, 10, 13, 15, 20, 30);
        double calls = 30 / (1 - shares.get(30) / 100);
        shares.forEach(
                (rate, share) -> assertThat(share).as(rate + "/h").isCloseTo(100 - 100 * rate / calls, within(0.5)));
        assertThat(browser.texts(".rates figcaption"))
                .containsExactly("Calls that other rates would reject, % by permits per h");
        assertThat(browser.drawn(0, "rates")).isGreaterThan(20);
        assertThat(http.get("/actuator/ratelimits/demo-sliding-log").body()).doesNotContain("\"candidates\"");
    }

    /** What the curve says in words: percent rejected, by permits per hour. */
    private TreeMap<Integer, Double> shares() {
        TreeMap<Integer, Double> shares = new TreeMap<>();
        Matcher share = Pattern.compile("(\\d+)/h ([\\d.]+) %")
                .matcher(String.valueOf(browser.find("[data-chart=rates]").getDomAttribute("aria-label")));
        while (share.find()) {
            shares.put(Integer.valueOf(share.group(1)), Double.valueOf(share.group(2)));
        }
        return shares;
    }

    /** As of an application whose endpoint knows no candidates. */
    @Test
    void withoutCandidatesARunShowsNoCurveAndIsAsEver() {
        browser.script("const known = window.fetch; window.fetch = (url, options) =>"
                + " String(options?.body).includes('candidates') ? Promise.resolve(new Response('', {status: 400}))"
                + " : known(url, options)");
        browser.run(20);
        assertThat(browser.find(".rates").isDisplayed()).isFalse();
        assertThat(browser.find("#status").getText()).startsWith("Stopped after");
        assertThat(browser.texts(".meters")).containsExactly("The meters of the application have the same counts.");
    }
}
