package io.ratelimited.sample.page;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.sample.Http;
import io.ratelimited.spring.RateLimitOperations;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.TestInstance;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.context.SpringBootTest.WebEnvironment;
import org.springframework.boot.test.web.server.LocalServerPort;
import org.springframework.test.annotation.DirtiesContext;

/** The live page in a real browser, against the running application. */
@SpringBootTest(webEnvironment = WebEnvironment.RANDOM_PORT, properties = "rate-limit.actuator.mask-keys=false")
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
@DirtiesContext // the page changes limits
abstract class LivePage {

    @LocalServerPort
    int port;

    @Autowired
    RateLimitOperations limits;

    Browser browser;
    Http http;

    @BeforeEach
    void open() {
        if (browser == null) {
            browser = new Browser(port);
            http = new Http(port);
        }
        browser.open(1360, 900, "light");
    }

    int value(String control) {
        return Integer.parseInt(String.valueOf(browser.find("#" + control).getDomProperty("value")));
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
}
