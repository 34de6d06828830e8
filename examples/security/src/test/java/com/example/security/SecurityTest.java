package com.example.security;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.nimbusds.jose.JOSEException;
import com.nimbusds.jose.JWSAlgorithm;
import com.nimbusds.jose.JWSHeader;
import com.nimbusds.jose.crypto.MACSigner;
import com.nimbusds.jwt.JWTClaimsSet;
import com.nimbusds.jwt.SignedJWT;
import io.ratelimited.core.RateLimitExceededException;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.web.server.LocalServerPort;
import org.springframework.http.MediaType;
import org.springframework.test.web.servlet.client.EntityExchangeResult;
import org.springframework.test.web.servlet.client.RestTestClient;

@SpringBootTest(webEnvironment = SpringBootTest.WebEnvironment.RANDOM_PORT)
class SecurityTest {

    @LocalServerPort
    int port;

    @Value("${example.jwt-key}")
    String jwtKey;

    RestTestClient client;

    @BeforeEach
    void connect() {
        client = RestTestClient.bindToServer()
                .baseUrl("http://localhost:" + port)
                .build();
    }

    @Test
    void basicRejectsAfterThreeIncorrectPasswordsAlsoTheCorrectOne() {
        assertThat(basic("ann", "correct")).isEqualTo(200);
        for (int attempt = 1; attempt <= 3; attempt++) {
            assertThat(basic("ann", "incorrect")).isEqualTo(401);
        }
        assertThat(basic("ann", "correct")).isEqualTo(429);
        assertThat(basic("bob", "correct")).isEqualTo(200);
    }

    @Test
    void soDoesTheLoginForm() {
        for (int attempt = 1; attempt <= 3; attempt++) {
            assertThat(form("cleo", "incorrect").getResponseHeaders().getLocation())
                    .asString()
                    .endsWith("/login?error");
        }
        EntityExchangeResult<String> rejected = form("cleo", "correct");
        assertThat(rejected.getStatus().value()).isEqualTo(429);
        assertThat(rejected.getResponseHeaders().getFirst("Retry-After")).isNotNull();
    }

    @Test
    void eachSubjectOfATokenHasItsOwnLimit() throws JOSEException {
        assertThat(token("dan")).isEqualTo(200);
        assertThat(token("dan")).isEqualTo(200);
        assertThat(token("dan")).isEqualTo(429);
        assertThat(token("eve")).isEqualTo(200);
    }

    @Test
    void fiveIncorrectPasswordsLockOutAnAccountAndACookieIsOfOneUser(
            @Autowired DeviceLogin login, @Autowired KnownDevices devices) throws Exception {
        for (int attempt = 1; attempt <= 5; attempt++) {
            assertThatThrownBy(() -> login.check("fay", "incorrect", null))
                    .isInstanceOf(IllegalArgumentException.class);
        }
        assertThatThrownBy(() -> login.check("fay", "right", null)).isInstanceOf(RateLimitExceededException.class);
        assertThatThrownBy(() -> login.check("fay", "right", "invented"))
                .isInstanceOf(RateLimitExceededException.class);
        assertThat(devices.isKnown("fay", devices.cookieOf("fay"))).isTrue();
        assertThat(devices.isKnown("gil", devices.cookieOf("fay"))).isFalse();
    }

    private int basic(String name, String password) {
        return client.get()
                .uri("/account")
                .headers(headers -> headers.setBasicAuth(name, password))
                .exchange()
                .returnResult()
                .getStatus()
                .value();
    }

    /** As a browser does: the page of the form, its token against forgery, and the session it belongs to. */
    private EntityExchangeResult<String> form(String name, String password) {
        EntityExchangeResult<String> page =
                client.get().uri("/login").exchange().expectBody(String.class).returnResult();
        Matcher csrf = Pattern.compile("name=\"_csrf\" type=\"hidden\" value=\"([^\"]+)\"")
                .matcher(page.getResponseBody());
        assertThat(csrf.find()).isTrue();
        String session = page.getResponseHeaders().getFirst("Set-Cookie").split(";")[0];
        return client.post()
                .uri("/login")
                .header("Cookie", session)
                .contentType(MediaType.APPLICATION_FORM_URLENCODED)
                .body("username=" + name + "&password=" + password + "&_csrf=" + csrf.group(1))
                .exchange()
                .expectBody(String.class)
                .returnResult();
    }

    private int token(String subject) throws JOSEException {
        SignedJWT jwt = new SignedJWT(
                new JWSHeader(JWSAlgorithm.HS256),
                new JWTClaimsSet.Builder().subject(subject).build());
        jwt.sign(new MACSigner(jwtKey));
        return client.get()
                .uri("/api/account")
                .headers(headers -> headers.setBearerAuth(jwt.serialize()))
                .exchange()
                .returnResult()
                .getStatus()
                .value();
    }
}
