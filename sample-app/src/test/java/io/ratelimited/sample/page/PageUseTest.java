package io.ratelimited.sample.page;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.sample.SnippetApplication;
import io.ratelimited.sample.SnippetCompiler;
import io.ratelimited.spring.RateLimitOperations;
import io.ratelimited.spring.RateLimited;
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
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIf;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.openqa.selenium.Keys;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.util.ReflectionUtils;

/** What visitors do with the live page besides runs: controls, copies, the keyboard, themes and small screens. */
@EnabledIf(value = "io.ratelimited.sample.page.Browser#isInstalled", disabledReason = Browser.MISSING)
@Tag("proof")
class PageUseTest extends LivePage {

    private static final String DARK = "rgb(16, 21, 28)";
    private static final String GONE =
            "The application does not respond. Check that it is running, then press Start again.";
    /** Of what is copied into a class of one's own: an annotation. */
    private static final String IMPORTS = """
            import io.ratelimited.core.*;
            import io.ratelimited.spring.*;
            import org.springframework.stereotype.*;
            """;

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
    void theCopiedAnnotationOfEveryAlgorithmMakesTheLimitOfThePage(@TempDir Path directory) throws Exception {
        List<?> algorithms = (List<?>) browser.script(
                "return [...document.querySelectorAll('#algorithm > option')].map(option => option.value)");
        assertThat(algorithms).hasSize(Algorithm.all().size());
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
            browser.set("minConcurrent", 2);
            browser.set("calls", 20);
            browser.start();
            fromControls.put(
                    "demo-" + algorithm, shown(limits.limit("demo-" + algorithm).limit()));
            browser.stop();
            methods.add(copied("annotation") + " void m" + i + "(String user) {}\n");
            yml.add(copied("yml"));
        }
        String source = IMPORTS + "@Service class Copied {\n" + String.join("\n", methods) + "}";
        List<Class<?>> classes = SnippetCompiler.compile(List.of(source), directory);
        assertThat(limitsOf(classes, commented(source))).isEqualTo(fromControls);
        assertThat(limitsOf(List.of(), yml)).isEqualTo(fromControls);
        assertThat(fromControls.values().stream().map(Limit::algorithm).distinct())
                .hasSize(algorithms.size());
    }

    /** What annotations do not have: the properties that a comment above them says. */
    private static List<String> commented(String source) {
        return Pattern.compile("(?m)^// (rate-limit\\..*(?:\\n// .*)*)")
                .matcher(source)
                .results()
                .map(comment -> comment.group(1).replace("\n// ", "\n"))
                .toList();
    }

    /** What the page shows of a limit: the seats of waiting callers are a setting of the application. */
    private static Limit shown(Limit limit) {
        return limit.toBuilder().maxWaiting(1).build();
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
            RateLimitOperations known = context.getBean(RateLimitOperations.class);
            Matcher names = Pattern.compile("(?m)^ {4}([\\w-]+):$").matcher(String.join("\n", yml));
            while (names.find()) {
                known.limit(names.group(1));
            }
            known.limits().forEach(limit -> limits.put(limit.name(), shown(limit.limit())));
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

    @ParameterizedTest
    @CsvSource({"1360, light", "1360, dark", "360, light"})
    void axeFindsNothingOnOtherScreensAndThemesEither(int width, String theme) throws IOException {
        assertAccessible(width, theme);
    }

    private void assertAccessible(int width, String theme) throws IOException {
        browser.open(width, 800, theme);
        browser.click("#compare");
        browser.choose("second", "adaptive");
        browser.load("greedy");
        browser.choose("policy", "WAIT");
        browser.set("maxWait", 200);
        browser.set("calls", 40);
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
                .isEqualTo(DARK);
    }

    @Test
    void theChosenThemeSurvivesAReload() {
        browser.click("#theme");
        browser.reload();
        assertThat(browser.find("#theme").getDomAttribute("aria-pressed")).isEqualTo("true");
        assertThat(browser.script("return getComputedStyle(document.body).backgroundColor"))
                .isEqualTo(DARK);
        browser.click("#theme");
        browser.reload();
        assertThat(browser.script("return getComputedStyle(document.body).backgroundColor"))
                .isNotEqualTo(DARK);
    }

    @Test
    void aServerThatIsGoneEndsTheRunAndThePageSaysWhatToDo() {
        browser.start();
        browser.await(() -> browser.count(0, "admitted") > 0);
        browser.disconnect(true);
        browser.await(() -> browser.find("#start").getText().equals("Start"));
        assertThat(browser.find("#status").getText()).isEqualTo(GONE);
        browser.await(() -> "false".equals(browser.find("#start").getDomAttribute("aria-disabled")));
        assertThat(browser.find("#status").getText()).isEqualTo(GONE);
        browser.click("#partner-run");
        browser.await(() -> browser.find("#partner-says").getText().equals("The calls failed: " + GONE));
        browser.click("#start");
        browser.await(() -> "false".equals(browser.find("#start").getDomAttribute("aria-disabled")));
        assertThat(browser.find("#status").getText()).isEqualTo(GONE);
        assertThat(browser.errors())
                .isNotEmpty()
                .allSatisfy(error -> assertThat(error).contains("net::ERR_INTERNET_DISCONNECTED"));

        browser.disconnect(false);
        browser.run(5);
        assertThat(browser.find("#status").getText()).startsWith("Stopped after");
    }
}
