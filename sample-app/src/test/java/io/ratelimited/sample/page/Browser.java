package io.ratelimited.sample.page;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.logging.Level;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.openqa.selenium.By;
import org.openqa.selenium.OutputType;
import org.openqa.selenium.WebElement;
import org.openqa.selenium.chrome.ChromeDriver;
import org.openqa.selenium.chrome.ChromeDriverService;
import org.openqa.selenium.chrome.ChromeOptions;
import org.openqa.selenium.logging.LogType;
import org.openqa.selenium.logging.LoggingPreferences;
import org.openqa.selenium.support.ui.Select;
import org.openqa.selenium.support.ui.WebDriverWait;

/** The installed Chromium with the live page in it, and what a visitor does there. */
final class Browser implements AutoCloseable {

    static final String MISSING =
            "Chromium or ChromeDriver is not on the path: apt-get install chromium chromium-driver";

    private static final @Nullable Path CHROMIUM = onThePath("chromium", "chromium-browser", "google-chrome");
    private static final @Nullable Path DRIVER = onThePath("chromedriver");
    /** Long enough for a machine that is busy with something else; nothing waits as long as this for a success. */
    private static final Duration PATIENCE = Duration.ofMinutes(2);

    private static final Path SCREENSHOTS = Path.of("target", "screenshots");

    private final ChromeDriver driver;
    private final WebDriverWait patience;
    private final String origin;

    Browser(int port) {
        LoggingPreferences logs = new LoggingPreferences();
        logs.enable(LogType.BROWSER, Level.ALL);
        ChromeOptions options = new ChromeOptions();
        options.setBinary(Objects.requireNonNull(CHROMIUM, MISSING).toFile());
        options.setCapability("goog:loggingPrefs", logs);
        options.addArguments(
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-quic",
                "--disable-dev-shm-usage",
                "--no-first-run",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync");
        this.driver = new ChromeDriver(
                new ChromeDriverService.Builder()
                        .usingDriverExecutable(
                                Objects.requireNonNull(DRIVER, MISSING).toFile())
                        .withLogOutput(OutputStream.nullOutputStream())
                        .build(),
                options);
        this.patience = new WebDriverWait(driver, PATIENCE, Duration.ofMillis(50));
        driver.manage().timeouts().scriptTimeout(PATIENCE);
        this.origin = "http://localhost:" + port;
        driver.executeCdpCommand(
                "Browser.grantPermissions",
                Map.of("origin", origin, "permissions", List.of("clipboardReadWrite", "clipboardSanitizedWrite")));
    }

    /** Whether there is a browser to drive; says so if not, since Maven shows no reasons for what was skipped. */
    static boolean isInstalled() {
        boolean installed = CHROMIUM != null && DRIVER != null;
        if (!installed) {
            System.out.println("[WARNING] Skipped: " + MISSING);
        }
        return installed;
    }

    private static @Nullable Path onThePath(String... names) {
        for (String directory : System.getenv().getOrDefault("PATH", "").split(File.pathSeparator, -1)) {
            for (String name : names) {
                if (Files.isExecutable(Path.of(directory, name))) {
                    return Path.of(directory, name);
                }
            }
        }
        return null;
    }

    /** Loads the page anew in a window of this size. */
    void open(int width, int height, String theme) {
        resize(width, height);
        driver.executeCdpCommand(
                "Emulation.setEmulatedMedia",
                Map.of("features", List.of(Map.of("name", "prefers-color-scheme", "value", theme))));
        driver.executeCdpCommand(
                "Storage.clearDataForOrigin", Map.of("origin", origin, "storageTypes", "local_storage"));
        driver.get(origin + "/");
        awaitPanel();
    }

    /** As a visitor does, whose choices the page keeps. */
    void reload() {
        driver.navigate().refresh();
        awaitPanel();
    }

    /** The application is gone, or is back, as the page sees it. */
    void disconnect(boolean gone) {
        driver.executeCdpCommand("Network.enable", Map.of());
        driver.executeCdpCommand(
                "Network.emulateNetworkConditions",
                Map.of("offline", gone, "latency", 0, "downloadThroughput", -1, "uploadThroughput", -1));
    }

    private void awaitPanel() {
        await(() -> !driver.findElements(By.cssSelector(".panel canvas")).isEmpty());
    }

    /** Loads any page. */
    void visit(String url) {
        driver.get(url);
    }

    void resize(int width, int height) {
        driver.executeCdpCommand(
                "Emulation.setDeviceMetricsOverride",
                Map.of("width", width, "height", height, "deviceScaleFactor", 1, "mobile", width < 500));
    }

    /** Waits until what was changed is drawn. */
    void awaitFrame() {
        scriptAsync("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))");
    }

    /** As with the mouse or the keyboard: ChromeDriver by itself tells the page of the change, but not of the input. */
    void choose(String id, String value) {
        new Select(find("#" + id)).selectByValue(value);
        script("document.getElementById(arguments[0]).dispatchEvent(new Event('input', {bubbles: true}))", id);
    }

    void set(String id, Object value) {
        script(
                "const input = document.getElementById(arguments[0]); input.value = arguments[1];"
                        + "input.dispatchEvent(new Event('input', {bubbles: true}))",
                id,
                String.valueOf(value));
    }

    void click(String css) {
        WebElement element = find(css);
        script("arguments[0].scrollIntoView({block: 'center'})", element);
        element.click();
    }

    void load(String shape) {
        click("input[name=load][value=" + shape + "]");
    }

    /** Starts, waits until so many calls were offered, stops, and waits for the last answer. */
    void run(long calls) {
        start();
        awaitCount("offered", calls);
        stop();
    }

    void start() {
        click("#start");
        awaitInPage("document.getElementById('start').innerText === 'Stop'");
    }

    void stop() {
        click("#start");
        awaitInPage("document.getElementById('start').innerText === 'Start'"
                + " && [...document.querySelectorAll('.meters')].every(line => line.checkVisibility())");
    }

    /** Waits until a count of the first panel is at least so large. */
    void awaitCount(String what, long least) {
        awaitInRun("document.querySelector('.panel [data-count=" + what + "]').textContent >= " + least);
    }

    /** Waits for something in a run. Fails with what the page says when the run ends by itself. */
    void awaitInRun(String condition) {
        String ended = "document.getElementById('start').innerText === 'Start'";
        awaitInPage(condition + " || " + ended);
        if (Boolean.TRUE.equals(script("return " + ended))) {
            throw new AssertionError("The run has ended: " + find("#status").getText());
        }
    }

    /** The page itself looks: asking it from here again and again would keep it from its work. */
    private void awaitInPage(String condition) {
        scriptAsync("const done = arguments[0]; const look = () => " + condition
                + " ? done(true) : setTimeout(look, 20); look()");
    }

    /** A count of a panel as the page shows it. */
    long count(int panel, String what) {
        return Long.parseLong((String) script(
                "return document.querySelectorAll('.panel')[arguments[0]]"
                        + ".querySelector('[data-count=' + arguments[1] + ']').textContent",
                panel,
                what));
    }

    WebElement panel(int number) {
        return driver.findElements(By.cssSelector(".panel")).get(number);
    }

    List<String> texts(String css) {
        return driver.findElements(By.cssSelector(css)).stream()
                .map(element -> Objects.requireNonNull(element.getDomProperty("textContent")))
                .toList();
    }

    WebElement find(String css) {
        return driver.findElement(By.cssSelector(css));
    }

    WebElement focused() {
        return driver.switchTo().activeElement();
    }

    /** Pixels of a chart that are not empty and not of its grid or axes, that is: of a series. */
    long drawn(int panel, String chart) {
        return ((Number) script("""
                        const canvas = arguments[0].querySelector('[data-chart=' + arguments[1] + '] canvas');
                        const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
                        let drawn = 0;
                        for (let i = 0; i < data.length; i += 4) {
                          const [r, g, b, a] = data.slice(i, i + 4);
                          if (a > 100 && Math.max(r, g, b) - Math.min(r, g, b) > 80) drawn++;
                        }
                        return drawn;
                        """, panel(panel), chart)).longValue();
    }

    Object script(String script, Object... arguments) {
        return driver.executeScript(script, arguments);
    }

    Object scriptAsync(String script, Object... arguments) {
        return driver.executeAsyncScript(script, arguments);
    }

    void await(Condition condition) {
        patience.until(ignored -> condition.holds());
    }

    /** What went wrong in the page. Refused calls are not errors here: the browser logs every 429 and 503 as one. */
    List<String> errors() {
        return driver.manage().logs().get(LogType.BROWSER).getAll().stream()
                .filter(entry -> entry.getLevel().intValue() >= Level.WARNING.intValue())
                .map(entry -> entry.getMessage())
                .filter(message -> !message.contains("status of 429"))
                .filter(message -> !message.matches(".*/demo/adaptive.* status of 503 .*"))
                .toList();
    }

    void screenshot(String name) throws IOException {
        save(picture(), name);
    }

    /** The whole page, however long. */
    void screenshotOfAll(String name) throws IOException {
        script("scrollTo(0, 0)");
        save(picture("html"), name);
    }

    /** What is to be seen. */
    byte[] picture() {
        return driver.getScreenshotAs(OutputType.BYTES);
    }

    /** An element, however long. */
    byte[] picture(String css) {
        Object clip = script(
                "const {x, y, width, height} = document.querySelector(arguments[0]).getBoundingClientRect();"
                        + "return {x: x + scrollX, y: y + scrollY, width, height, scale: 1}",
                css);
        Map<String, Object> taken = driver.executeCdpCommand(
                "Page.captureScreenshot", Map.of("captureBeyondViewport", true, "clip", Objects.requireNonNull(clip)));
        return OutputType.BYTES.convertFromBase64Png((String) taken.get("data"));
    }

    private static void save(byte[] png, String name) throws IOException {
        Files.createDirectories(SCREENSHOTS);
        Files.write(SCREENSHOTS.resolve(name + ".png"), png);
    }

    /** What axe-core finds wrong. */
    List<String> violations() throws IOException {
        try (InputStream axe = Objects.requireNonNull(Browser.class.getResourceAsStream("/axe.min.js"))) {
            script(new String(axe.readAllBytes(), StandardCharsets.UTF_8));
        }
        Object found = scriptAsync("""
                const done = arguments[arguments.length - 1];
                axe.run().then(result => done(result.violations.flatMap(rule =>
                  rule.nodes.map(node => rule.id + ': ' + node.target + ' ' + node.failureSummary))));
                """);
        return Stream.of((List<?>) Objects.requireNonNull(found))
                .flatMap(List::stream)
                .map(String::valueOf)
                .toList();
    }

    @Override
    public void close() {
        driver.quit();
    }

    /** Something to wait for. */
    interface Condition {

        boolean holds();
    }
}
