package com.example.login;

import static org.assertj.core.api.Assertions.assertThat;

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import org.junit.jupiter.api.Test;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.context.SpringBootTest.WebEnvironment;
import org.springframework.boot.test.web.server.LocalServerPort;

/** What the recipe promises of an account. */
@SpringBootTest(webEnvironment = WebEnvironment.RANDOM_PORT)
class LoginTest {

    @LocalServerPort
    int port;

    @Test
    void fiveIncorrectPasswordsLockTheAccountAndCorrectOnesUseNoPermit() throws Exception {
        for (int i = 0; i < 6; i++) {
            assertThat(logIn("ann", "correct").statusCode()).isEqualTo(200);
        }
        for (int i = 0; i < 5; i++) {
            assertThat(logIn("Ann", "incorrect").statusCode()).isEqualTo(401);
        }
        HttpResponse<String> rejected = logIn("ann", "correct");
        assertThat(rejected.statusCode()).isEqualTo(429);
        assertThat(rejected.headers().firstValueAsLong("Retry-After")).isPresent();
        assertThat(logIn("ben", "incorrect").statusCode()).isEqualTo(401);
    }

    private HttpResponse<String> logIn(String name, String password) throws Exception {
        String credentials = Base64.getEncoder().encodeToString((name + ":" + password).getBytes(StandardCharsets.UTF_8));
        HttpRequest request = HttpRequest.newBuilder(URI.create("http://localhost:" + port + "/account"))
                .header("Authorization", "Basic " + credentials)
                .build();
        return HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());
    }
}
