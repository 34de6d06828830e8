package io.ratelimited.sample.page;

import java.awt.image.BufferedImage;
import java.awt.image.DataBuffer;
import java.awt.image.IndexColorModel;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import javax.imageio.ImageIO;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIf;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.context.SpringBootTest.WebEnvironment;
import org.springframework.boot.test.web.server.LocalServerPort;
import org.springframework.test.annotation.DirtiesContext;

/**
 * Takes the pictures of the guide, each of a real run. By its name it is no test of the build; CONTRIBUTING says how it
 * is run.
 */
@SpringBootTest(webEnvironment = WebEnvironment.RANDOM_PORT)
@EnabledIf(value = "io.ratelimited.sample.page.Browser#isInstalled", disabledReason = Browser.MISSING)
@DirtiesContext // the page changes limits
class Pictures {

    private static final Path IMAGES = Path.of("..", "docs", "images");
    /** The charts show twenty, and the last call may wait two. */
    private static final double SECONDS = 17.8;

    @LocalServerPort
    int port;

    private Browser browser;

    @BeforeEach
    void open() {
        browser = new Browser(port);
        browser.open(1280, 916, "light");
    }

    @AfterEach
    void close() {
        browser.close();
    }

    @Test
    void page() throws IOException {
        browser.click("#compare");
        browser.choose("policy", "WAIT");
        browser.load("sine");
        runFor(SECONDS);
        browser.script("scrollTo(0, 0); document.querySelector('form').scrollTop = 0;"
                + "document.head.append(Object.assign(document.createElement('style'),"
                + "{textContent: '::-webkit-scrollbar { display: none }'}))");
        browser.awaitFrame();
        save("page", browser.picture());
        browser.stop();
    }

    @Test
    void tokenBucket() throws IOException {
        browser.load("burst");
        ofRun("token-bucket", 720, "calls", "level");
    }

    @Test
    void leakyBucket() throws IOException {
        browser.choose("algorithm", "leaky-bucket");
        browser.set("maxWait", 2000);
        browser.load("burst");
        browser.set("calls", 8);
        ofRun("leaky-bucket", 720, "calls", "waits");
    }

    @Test
    void warmUp() throws IOException {
        browser.choose("algorithm", "warm-up");
        browser.set("rate", 50);
        browser.set("warmup", 8);
        browser.choose("policy", "WAIT");
        browser.set("maxWait", 500);
        browser.set("calls", 60);
        ofRun("warm-up", 720, "calls", "waits");
    }

    @Test
    void fixedWindowAndSlidingLog() throws IOException {
        browser.choose("algorithm", "fixed-window");
        browser.click("#compare");
        browser.choose("second", "sliding-log");
        browser.choose("period", "2s");
        browser.load("burst");
        browser.set("calls", 10);
        ofRun("fixed-window-sliding-log", 1060, "calls", "level");
    }

    @Test
    void concurrency() throws IOException {
        browser.choose("algorithm", "concurrency");
        browser.set("maxConcurrent", 3);
        browser.load("sine");
        ofRun("concurrency", 720, "calls", "level");
    }

    /** The curve of other rates. */
    @Test
    void candidates() throws IOException {
        browser.load("greedy");
        browser.set("calls", 40);
        ofRun("candidates", 720, "calls", "rates");
    }

    /** Of a panel, its counts and some of its charts. */
    private void ofRun(String name, int width, String... charts) throws IOException {
        runFor(SECONDS);
        browser.stop();
        browser.resize(width, 916);
        String shown = Stream.of(charts)
                .map(chart -> "figure:has([data-chart=" + chart + "])")
                .collect(Collectors.joining(", "));
        browser.script("document.head.append(Object.assign(document.createElement('style'), {textContent: `"
                + "header, form, main > :not(#panels), .panel > :not(h2, .totals, " + shown
                + ") { display: none !important }"
                + "main, body { display: block; padding: 0 !important }"
                + "#panels.two { grid-template-columns: 1fr 1fr !important }`}))");
        browser.awaitFrame();
        save(name, browser.picture("#panels"));
    }

    /** A short run first: while the application is cold, calls are late. */
    private void runFor(double seconds) {
        browser.run(60);
        browser.start();
        long until = System.nanoTime() + (long) (seconds * 1e9);
        browser.await(() -> System.nanoTime() > until);
    }

    /** In 64 colours, which nobody can tell from all: half the size. */
    private static void save(String name, byte[] png) throws IOException {
        BufferedImage image = ImageIO.read(new ByteArrayInputStream(png));
        int[] pixels = image.getRGB(0, 0, image.getWidth(), image.getHeight(), null, 0, image.getWidth());
        int[] colours = Arrays.stream(pixels)
                .boxed()
                .collect(Collectors.groupingBy(Function.identity(), Collectors.counting()))
                .entrySet()
                .stream()
                .sorted(Map.Entry.<Integer, Long>comparingByValue().reversed())
                .limit(64)
                .mapToInt(Map.Entry::getKey)
                .toArray();
        BufferedImage small = new BufferedImage(
                image.getWidth(),
                image.getHeight(),
                BufferedImage.TYPE_BYTE_INDEXED,
                new IndexColorModel(8, colours.length, colours, 0, false, -1, DataBuffer.TYPE_BYTE));
        small.setRGB(0, 0, image.getWidth(), image.getHeight(), pixels, 0, image.getWidth());
        ImageIO.write(small, "png", IMAGES.resolve(name + ".png").toFile());
    }
}
