package io.ratelimited.sample.page;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIf;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.context.SpringBootTest.WebEnvironment;
import org.springframework.boot.test.web.server.LocalServerPort;

/** A page of another port reads in a real browser why its calls are refused, whoever refuses them. */
@EnabledIf(value = "io.ratelimited.sample.page.Browser#isInstalled", disabledReason = Browser.MISSING)
@SpringBootTest(
        webEnvironment = WebEnvironment.RANDOM_PORT,
        properties = {
            "rate-limit.limits.demo-gcra.rate=1/h",
            "rate-limit.limits.demo-gcra.burst=1",
            "rate-limit.limits.edge.rate=1/h",
            "rate-limit.routes[0].path=/demo/token-bucket",
            "rate-limit.routes[0].limits=edge",
            "rate-limit.routes[0].order=before-security"
        })
@Tag("slow")
class CrossOriginTest {

    @LocalServerPort
    int port;

    @Test
    void aScriptOfAnotherOriginReadsTheRefusalAndItsFields() throws IOException {
        HttpServer pages = HttpServer.create(new InetSocketAddress(InetAddress.getByName("localhost"), 0), 0);
        pages.createContext("/", exchange -> {
            byte[] page = "<!doctype html><title>Another origin</title>".getBytes(StandardCharsets.UTF_8);
            exchange.getResponseHeaders().set("Content-Type", "text/html");
            exchange.sendResponseHeaders(200, page.length);
            exchange.getResponseBody().write(page);
            exchange.close();
        });
        pages.start();
        try (Browser browser = new Browser(port)) {
            browser.visit("http://localhost:" + pages.getAddress().getPort() + "/");
            for (String limit : new String[] {"edge", "demo-gcra"}) {
                String path = limit.equals("edge") ? "/demo/token-bucket" : "/demo/gcra";
                // The header makes the browser ask first, with a preflight request.
                assertThat(fetch(browser, path)).containsEntry("status", 200L);
                Map<String, Object> refused = fetch(browser, path);
                assertThat(refused).containsEntry("status", 429L).containsEntry("policies", "[\"" + limit + "\"]");
                assertThat((String) refused.get("retryAfter")).matches("3[56]\\d\\d");
                assertThat(refused).containsEntry("limit", "\"" + limit + "\";r=0;t=" + refused.get("retryAfter"));
            }
        } finally {
            pages.stop(0);
        }
    }

    @SuppressWarnings("unchecked")
    private Map<String, Object> fetch(Browser browser, String path) {
        return (Map<String, Object>) browser.scriptAsync("""
                const done = arguments[arguments.length - 1];
                fetch(arguments[0], {headers: {'X-Asks': 'first'}})
                  .then(async answer => done({
                    status: answer.status,
                    retryAfter: answer.headers.get('Retry-After'),
                    limit: answer.headers.get('RateLimit'),
                    policies: JSON.stringify((await answer.json())['violated-policies'])}))
                  .catch(failure => done({failure: String(failure)}));
                """, "http://localhost:" + port + path + "?user=cross-origin");
    }
}
