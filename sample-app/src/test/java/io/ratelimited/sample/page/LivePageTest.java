package io.ratelimited.sample.page;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.sample.Http;
import io.ratelimited.sample.SnippetApplication;
import io.ratelimited.sample.SnippetCompiler;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.RateLimits;
import java.io.IOException;
import java.lang.reflect.Method;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.condition.EnabledIf;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.openqa.selenium.Keys;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.context.SpringBootTest.WebEnvironment;
import org.springframework.boot.test.web.server.LocalServerPort;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.test.annotation.DirtiesContext;
import org.springframework.util.ReflectionUtils;

/** The live page in a real browser, against the running application. */
@SpringBootTest(webEnvironment = WebEnvironment.RANDOM_PORT, properties = "rate-limit.actuator.mask-keys=false")
@EnabledIf(value = "io.ratelimited.sample.page.Browser#isInstalled", disabledReason = Browser.MISSING)
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
@DirtiesContext // the page changes limits
class LivePageTest {

    /** Of what is copied into a class of one's own: an annotation. */
    private static final String IMPORTS = """
            import io.ratelimited.core.*;
            import io.ratelimited.spring.*;
            import org.springframework.stereotype.*;
            """;

    private static final List<String> OUTCOMES = List.of("admitted", "delayed", "rejected", "shadowed");

    @LocalServerPort
    int port;

    @Autowired
    RateLimits limits;

    private Browser browser;
    private Http http;

    @BeforeEach
    void open() {
        if (browser == null) {
            browser = new Browser(port);
            http = new Http(port);
        }
        browser.open(1360, 900, "light");
    }

    @AfterEach
    void thePageHasNoErrors() {
        assertThat(browser.errors()).isEmpty();
    }

    @AfterAll
    void close() {
        if (browser != null) {
            browser.close();
        }
    }

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
        long sum = 0;
        for (String outcome : OUTCOMES) {
            long counted = browser.count(0, outcome);
            assertThat(counted).as(outcome).isEqualTo(http.metered("demo-" + algorithm, outcome) - before.get(outcome));
            sum += counted;
        }
        assertThat(browser.count(0, "offered")).isEqualTo(sum).isGreaterThanOrEqualTo(60);
        assertThat(http.refused("demo-" + algorithm, "alice") - refusedBefore).isEqualTo(browser.count(0, "rejected"));
        assertThat(browser.texts(".meters")).containsExactly("The meters of the application counted the same.");
        assertThat(browser.texts("[data-code=answer] code").get(0))
                .contains("RateLimit: \"demo-" + algorithm + "\";r=");
    }

    /** At one permit an hour nothing comes back while the test looks: what is left, or owed, is the burst less the charges. */
    @Test
    void aRunOfTheModelShowsWhatWasReservedAndChargedAndWhatIsOwed() throws IOException {
        browser.choose("algorithm", "model");
        assertThat(browser.find("#rate").getDomProperty("value")).isEqualTo("100");
        browser.choose("period", "h");
        browser.set("rate", 1);
        browser.set("burst", 50);
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
        assertThat(browser.texts(".meters")).containsExactly("The meters of the application counted the same.");
        assertThat(browser.texts("[data-code=annotation] code").get(0))
                .contains("algorithm = Algorithm.TOKEN_BUCKET", "permits = \"#maxTokens\"", "charge = \"#result.");
        browser.choose("algorithm", "gcra");
        assertThat(browser.find("#burst").getDomProperty("value")).isEqualTo("20");
        assertThat(browser.find(".permits").isDisplayed()).isFalse();
    }

    /** At one permit an hour nothing comes back while the test looks. */
    @Test
    void whatThePageSaysIsLeftIsWhatTheEndpointSays() {
        browser.choose("period", "h");
        browser.set("rate", 1);
        browser.set("burst", 500);
        browser.run(30);
        long left = 500 - browser.count(0, "admitted");
        assertThat(http.get("/actuator/ratelimits/demo-token-bucket/alice").body())
                .contains("\"remaining\":" + left + ",");
        assertThat(browser.find("[data-chart=level]").getDomAttribute("aria-label"))
                .isEqualTo("Tokens in the bucket: " + left);
        assertThat(browser.texts(".share li span:last-child"))
                .containsExactly(browser.count(0, "admitted") + " in, 0 refused");
    }

    @Test
    void aPolicyOfShadowLetsCallsInAndCountsThem() {
        browser.choose("policy", "SHADOW");
        browser.choose("period", "h");
        browser.set("rate", 1);
        browser.set("burst", 1);
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
        browser.run(60);
        assertThat(browser.texts(".panel h2")).containsExactly("Token bucket", "Sliding log");
        assertThat(browser.count(0, "offered")).isEqualTo(browser.count(1, "offered"));
        assertThat(browser.texts(".panel:first-child .share li")).hasSize(10);
        assertThat(browser.texts(".meters")).hasSize(2).containsOnly("The meters of the application counted the same.");
        assertThat(browser.drawn(1, "calls")).isGreaterThan(100);
        browser.screenshotOfAll("side-by-side");
    }

    @Test
    void aControlMovedDuringARunChangesTheLimitAndLeavesWhatWasSpentSpent() {
        browser.choose("period", "h");
        browser.set("rate", 1);
        browser.set("burst", 10);
        browser.start();
        browser.await(() -> browser.count(0, "rejected") > 0);
        browser.set("burst", 100);
        browser.await(
                () -> http.get("/actuator/ratelimits/demo-token-bucket").body().contains("\"burst\":100"));
        browser.stop();
        assertThat(http.get("/actuator/ratelimits/demo-token-bucket/alice").body())
                .contains("\"remaining\":0");
        assertThat(browser.count(0, "admitted")).isEqualTo(10);
    }

    @Test
    void aValueThatIsNotOneIsNamedAndNothingStarts() {
        browser.set("burst", 0);
        browser.click("#start");
        assertThat(browser.find("#status").getText()).startsWith("Burst:");
        assertThat(browser.find("#burst").getDomAttribute("aria-invalid")).isEqualTo("true");
        assertThat(browser.find("#start").getText()).isEqualTo("Start");
    }

    /** Annotation and yml are both started, and both make the limit that the page has made by its controls. */
    @Test
    void theCopiedAnnotationCompilesAndMakesTheLimitOfThePage(@TempDir Path directory) throws Exception {
        assertCopiesMakeTheLimitsOfThePage(List.of("token-bucket", "concurrency"), directory);
    }

    @Tag("proof")
    @Test
    void theCopiedAnnotationOfEveryAlgorithmMakesTheLimitOfThePage(@TempDir Path directory) throws Exception {
        List<?> algorithms = (List<?>) browser.script(
                "return [...document.querySelectorAll('#algorithm > option')].map(option => option.value)");
        assertThat(algorithms).hasSize(Algorithm.values().length);
        assertCopiesMakeTheLimitsOfThePage(algorithms, directory);
    }

    private void assertCopiesMakeTheLimitsOfThePage(List<?> algorithms, Path directory) throws Exception {
        List<String> methods = new ArrayList<>();
        List<String> yml = new ArrayList<>();
        Map<String, Limit> fromControls = new HashMap<>();
        for (int i = 0; i < algorithms.size(); i++) {
            String algorithm = String.valueOf(algorithms.get(i));
            browser.choose("algorithm", algorithm);
            browser.choose("policy", List.of("WAIT", "REJECT", "SHADOW").get(i % 3));
            browser.set("maxWait", 700 + i);
            browser.run(1);
            methods.add(copied("annotation") + " void m" + i + "(String user) {}\n");
            yml.add(copied("yml"));
            fromControls.put(
                    "demo-" + algorithm, limits.get("demo-" + algorithm).limit());
        }
        String source = IMPORTS + "@Service class Copied {\n" + String.join("\n", methods) + "}";
        List<Class<?>> classes = SnippetCompiler.compile(List.of(source), directory);
        assertThat(limitsOf(classes, List.of())).isEqualTo(fromControls);
        assertThat(limitsOf(List.of(), yml)).isEqualTo(fromControls);
        assertThat(fromControls.values().stream().map(Limit::algorithm).distinct())
                .hasSize(algorithms.size());
    }

    /** The limits of an application of these classes, each of whose methods is called once, with these properties. */
    private static Map<String, Limit> limitsOf(List<Class<?>> classes, List<String> yml) throws Exception {
        Map<String, Limit> limits = new HashMap<>();
        try (ConfigurableApplicationContext context = SnippetApplication.start(classes, yml)) {
            for (Class<?> type : classes) {
                for (Method method : limited(type)) {
                    ReflectionUtils.makeAccessible(method);
                    method.invoke(context.getBean(type), "ann");
                }
            }
            RateLimits known = context.getBean(RateLimits.class);
            Matcher names = Pattern.compile("(?m)^ {4}([\\w-]+):$").matcher(String.join("\n", yml));
            while (names.find()) {
                known.get(names.group(1));
            }
            known.all().forEach(limit -> limits.put(limit.name(), limit.limit()));
        }
        return limits;
    }

    /** Of the declared methods: the coverage agent adds one of its own. */
    private static List<Method> limited(Class<?> type) {
        return Stream.of(type.getDeclaredMethods())
                .filter(method -> method.isAnnotationPresent(RateLimited.class))
                .toList();
    }

    private String copied(String kind) {
        browser.click("[data-code=" + kind + "] .copy");
        browser.await(
                () -> browser.find("[data-code=" + kind + "] .copy").getText().equals("Copied"));
        return (String) Objects.requireNonNull(
                browser.scriptAsync("navigator.clipboard.readText().then(arguments[arguments.length - 1])"));
    }

    @Test
    void theKeyboardAloneIsEnough() {
        browser.script("document.body.focus()");
        tabTo("algorithm");
        browser.focused().sendKeys("Leaky");
        tabTo("burst");
        browser.focused().sendKeys(Keys.chord(Keys.CONTROL, "a"), "5");
        tabTo("calls");
        browser.focused().sendKeys(Keys.ARROW_RIGHT);
        tabTo("start");
        assertThat(browser.script("return getComputedStyle(document.activeElement).outlineStyle"))
                .isEqualTo("solid");
        browser.focused().sendKeys(Keys.ENTER);
        browser.await(() -> browser.count(0, "offered") > 5);
        browser.focused().sendKeys(Keys.ENTER);
        browser.await(() -> browser.find("#status").getText().startsWith("Stopped"));
        assertThat(browser.texts(".panel h2")).containsExactly("Leaky bucket");
        assertThat(browser.texts("[data-code=yml] code").get(0)).contains("burst: 5\n");
        assertThat(browser.texts("#calls-shown")).containsExactly("21");
        assertThat(browser.focused().getDomAttribute("id")).isEqualTo("start");
    }

    private void tabTo(String id) {
        for (int i = 0; i < 30 && !id.equals(browser.focused().getDomAttribute("id")); i++) {
            browser.focused().sendKeys(Keys.TAB);
        }
        assertThat(browser.focused().getDomAttribute("id")).isEqualTo(id);
    }

    @ParameterizedTest
    @CsvSource("360, dark")
    void axeFindsNothingAndNothingIsWiderThanTheScreen(int width, String theme) throws IOException {
        assertAccessible(width, theme);
    }

    @Tag("proof")
    @ParameterizedTest
    @CsvSource({"1360, light", "1360, dark", "360, light"})
    void axeFindsNothingOnOtherScreensAndThemesEither(int width, String theme) throws IOException {
        assertAccessible(width, theme);
    }

    private void assertAccessible(int width, String theme) throws IOException {
        browser.open(width, 800, theme);
        browser.click("#compare");
        browser.load("greedy");
        browser.choose("policy", "WAIT");
        browser.set("maxWait", 200);
        browser.run(30);
        assertThat(browser.violations()).isEmpty();
        assertThat(browser.script("return document.documentElement.scrollWidth <= innerWidth"))
                .isEqualTo(true);
        assertThat((List<?>) browser.script(
                        "return [...document.querySelectorAll('button, input, select, .totals div, .chart')]"
                                + ".filter(e => e.offsetParent && e.getBoundingClientRect().right > innerWidth)"
                                + ".map(e => e.outerHTML)"))
                .isEmpty();
        browser.screenshotOfAll("page-" + width + "-" + theme);
        assertThat(browser.script("scrollTo(0, 0); document.getElementById('controls').scrollTop = 0;"
                        + "return document.getElementById('status').getBoundingClientRect().bottom <= innerHeight"))
                .isEqualTo(true);
    }

    @Test
    void everythingComesFromTheApplicationItself() {
        browser.run(5);
        Object hosts = browser.script(
                "return performance.getEntriesByType('resource').map(entry => new URL(entry.name).hostname)");
        assertThat((List<?>) hosts)
                .isNotEmpty()
                .allSatisfy(host -> assertThat(host).asString().endsWith("localhost"));
    }

    @Test
    void theThemeCanBeChosen() {
        browser.click("#theme");
        assertThat(browser.find("#theme").getDomAttribute("aria-pressed")).isEqualTo("true");
        assertThat(browser.script("return getComputedStyle(document.body).backgroundColor"))
                .isEqualTo("rgb(16, 21, 28)");
    }

    private Map<String, Long> meters(String limit) {
        Map<String, Long> counted = new HashMap<>();
        OUTCOMES.forEach(outcome -> counted.put(outcome, http.metered(limit, outcome)));
        return counted;
    }
}
