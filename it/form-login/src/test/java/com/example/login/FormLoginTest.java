package com.example.login;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.File;
import java.time.Duration;
import java.util.Arrays;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.openqa.selenium.By;
import org.openqa.selenium.WebDriverException;
import org.openqa.selenium.chrome.ChromeDriver;
import org.openqa.selenium.chrome.ChromeDriverService;
import org.openqa.selenium.chrome.ChromeOptions;
import org.openqa.selenium.support.ui.WebDriverWait;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.context.SpringBootTest.WebEnvironment;
import org.springframework.boot.test.web.server.LocalServerPort;

/** What a user of a real browser sees, by the Chromium and the ChromeDriver on the path. */
@SpringBootTest(webEnvironment = WebEnvironment.RANDOM_PORT)
class FormLoginTest {

    /** Long enough for a machine that is busy with something else. */
    private static final Duration PATIENCE = Duration.ofMinutes(2);

    @LocalServerPort
    int port;

    private ChromeDriver browser;

    @BeforeEach
    void open() {
        Optional<File> chromium = program("chromium", "chromium-browser", "google-chrome");
        Optional<File> driver = program("chromedriver");
        assumeTrue(chromium.isPresent() && driver.isPresent(), "Chromium or ChromeDriver is not installed");
        ChromeOptions options = new ChromeOptions().setBinary(chromium.get());
        options.addArguments("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                "--disable-background-networking", "--disable-component-update", "--disable-sync");
        browser = new ChromeDriver(
                new ChromeDriverService.Builder().usingDriverExecutable(driver.get()).build(), options);
    }

    private static Optional<File> program(String... names) {
        return Arrays.stream(names)
                .flatMap(name -> Arrays.stream(System.getenv("PATH").split(File.pathSeparator))
                        .map(directory -> new File(directory, name)))
                .filter(File::canExecute)
                .findFirst();
    }

    @AfterEach
    void close() {
        if (browser != null) {
            browser.quit();
        }
    }

    @Test
    void aGuesserSeesTheErrorPageAndOthersLogInAsEver() {
        visit("/owners");
        for (int i = 0; i < 5; i++) {
            logIn("ann", "wrong");
            assertThat(browser.getCurrentUrl()).endsWith("/login?error");
        }

        logIn("ann", "wrong");
        requireErrorPage(3600);
        assertThat(browser.getCurrentUrl()).as("the form's own address, and no redirect").endsWith("/login");

        visit("/login");
        logIn("ann", "right");
        requireErrorPage(3600);

        visit("/login");
        logIn("bob", "right");
        assertThat(browser.getCurrentUrl()).as("the page that was asked for first").contains("/owners");
        assertThat(text("user")).isEqualTo("bob");
    }

    @Test
    void soDoesAVisitorOfAPageThatNeedsNoLogin() {
        visit("/help");
        assertThat(browser.getTitle()).isEqualTo("Help");

        visit("/help");
        requireErrorPage(3600);
        assertThat(browser.getCurrentUrl()).endsWith("/help");

        visit("/owners");
        logIn("bob", "right");
        assertThat(browser.getCurrentUrl()).contains("/owners");
    }

    private void visit(String path) {
        browser.get("http://localhost:" + port + path);
    }

    private void logIn(String name, String password) {
        browser.findElement(By.name("username")).sendKeys(name);
        browser.findElement(By.name("password")).sendKeys(password);
        browser.executeScript("window.formWasSent = true");
        browser.findElement(By.cssSelector("button[type=submit]")).click();
        awaitNextPage();
    }

    /**
     * Asks the window and no element of the page that goes away: the driver reports such an element in more than one way.
     * While one page makes way for the next, a script may fail, too.
     */
    private void awaitNextPage() {
        new WebDriverWait(browser, PATIENCE)
                .ignoring(WebDriverException.class)
                .until(driver -> browser.executeScript(
                        "return window.formWasSent === undefined && document.readyState === 'complete'"));
    }

    private void requireErrorPage(int atMostSeconds) {
        assertThat(browser.getTitle()).isEqualTo("Too many attempts");
        assertThat(text("status")).isEqualTo("429");
        assertThat(Integer.parseInt(text("seconds"))).isBetween(atMostSeconds - 600, atMostSeconds);
        assertThat(browser.executeScript("const {responseStatus, redirectCount} ="
                        + " performance.getEntriesByType('navigation')[0]; return {responseStatus, redirectCount}"))
                .isEqualTo(Map.of("responseStatus", 429L, "redirectCount", 0L));
    }

    private String text(String id) {
        return browser.findElement(By.id(id)).getText();
    }
}
