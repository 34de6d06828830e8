package io.ratelimited.spring.internals.client;

import static org.assertj.core.api.Assertions.assertThat;

import java.net.URI;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.http.HttpHeaders;
import org.springframework.http.HttpMethod;
import org.springframework.http.HttpStatusCode;

class HopTest {

    private static final Hop FIRST = Hop.first(HttpMethod.POST, URI.create("https://partner.example/a/b?c=d"));

    private static Hop next(Hop hop, int status, String location) {
        HttpHeaders headers = new HttpHeaders();
        headers.set(HttpHeaders.LOCATION, location);
        return hop.next(HttpStatusCode.valueOf(status), headers);
    }

    @ParameterizedTest
    @CsvSource({
        "301, GET, GET, true",
        "301, POST, GET, false",
        "301, PUT, PUT, true",
        "301, HEAD, HEAD, true",
        "302, POST, GET, false",
        "302, DELETE, DELETE, true",
        "303, GET, GET, false",
        "303, HEAD, HEAD, false",
        "303, POST, GET, false",
        "303, PUT, GET, false",
        "307, POST, POST, true",
        "308, POST, POST, true",
        "308, PATCH, PATCH, true"
    })
    void aRedirectKeepsTheMethodOrMakesItGet(int status, String method, String then, boolean hasBody) {
        Hop next = next(Hop.first(HttpMethod.valueOf(method), FIRST.uri()), status, "/next");
        assertThat(next.method()).isEqualTo(HttpMethod.valueOf(then));
        assertThat(next.hasBody()).isEqualTo(hasBody);
        assertThat(next.uri()).hasToString("https://partner.example/next");
    }

    @ParameterizedTest
    @ValueSource(ints = {200, 201, 300, 304, 305, 306, 310, 404, 503})
    void noOtherStatusIsARedirect(int status) {
        assertThat(next(FIRST, status, "/next")).isNull();
    }

    @ParameterizedTest
    @CsvSource({
        "https://other.example/x, https://other.example/x",
        "HTTPS://other.example/x, HTTPS://other.example/x",
        "//other.example/x, https://other.example/x",
        "/x?y#z, https://partner.example/x?y",
        "x, https://partner.example/a/x",
        "../x, https://partner.example/x",
        "?e=f, https://partner.example/a/b?e=f",
        "'/ä b|c\"', https://partner.example/ä%20b%7Cc%22",
        "/%41%2f, https://partner.example/%41%2f"
    })
    void anAddressIsReadAsBrowsersDo(String location, String expected) {
        assertThat(next(FIRST, 302, location).uri()).hasToString(expected);
    }

    @Test
    void anAddressWithoutAPathIsTheRoot() {
        Hop bare = Hop.first(HttpMethod.GET, URI.create("http://partner.example:8080"));
        assertThat(next(bare, 302, "x").uri()).hasToString("http://partner.example:8080/x");
        assertThat(next(bare, 302, "?x").uri()).hasToString("http://partner.example:8080/?x");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                " ",
                "#here",
                "%",
                "http://",
                "https:x",
                "file:///etc/passwd",
                "ftp://a/b",
                "http://a:b:c/",
                "mailto:a@b"
            })
    void anAddressThatCannotBeFollowedIsNot(String location) {
        assertThat(next(FIRST, 302, location)).isNull();
    }

    @Test
    void aRedirectWithoutAnAddressIsTheAnswer() {
        assertThat(FIRST.next(HttpStatusCode.valueOf(302), new HttpHeaders())).isNull();
    }

    @Test
    void encryptionIsNeverGivenUp() {
        assertThat(next(FIRST, 307, "http://partner.example/")).isNull();
        Hop plain = Hop.first(HttpMethod.GET, URI.create("http://partner.example/"));
        assertThat(next(plain, 307, "https://partner.example/")).isNotNull();
        assertThat(next(next(plain, 307, "https://partner.example/"), 307, "http://partner.example/"))
                .isNull();
    }

    @Test
    void aLoopEndsAfterTwentyRedirects() {
        Hop hop = FIRST;
        for (int i = 0; i < 20; i++) {
            hop = next(hop, 307, "/a/b?c=d");
        }
        assertThat(next(hop, 307, "/a/b?c=d")).isNull();
    }

    private static HttpHeaders sent(Hop hop) {
        HttpHeaders headers = new HttpHeaders();
        for (String name : new String[] {
            "authorization",
            "Cookie",
            "Proxy-Authorization",
            "Host",
            "content-type",
            "Content-Length",
            "X-Kept",
            "Accept"
        }) {
            headers.set(name, "x");
        }
        hop.reduce(headers);
        return headers;
    }

    @Test
    void theFirstRequestIsAsTheCallerMadeIt() {
        assertThat(sent(FIRST).size()).isEqualTo(8);
    }

    @Test
    void noOtherOriginGetsCredentials() {
        for (String other : new String[] {"https://other.example/", "https://partner.example:8443/"}) {
            Hop away = next(FIRST, 307, other);
            assertThat(sent(away).headerNames())
                    .containsExactlyInAnyOrder("content-type", "Content-Length", "X-Kept", "Accept");
            assertThat(next(away, 307, FIRST.uri().toString()).hasCredentials())
                    .as("whom the other host sends back")
                    .isFalse();
        }
        assertThat(sent(next(FIRST, 307, "https://PARTNER.example:443/x")).containsHeader("Authorization"))
                .isTrue();
    }

    /** Its address was sent in the clear before: it is no new reader. */
    @Test
    void theSameHostGetsThemOnceItIsEncrypted() {
        Hop plain = Hop.first(HttpMethod.GET, URI.create("http://partner.example/"));
        assertThat(next(plain, 301, "https://partner.example/").hasCredentials())
                .isTrue();
        assertThat(next(plain, 301, "https://partner.example:8443/").hasCredentials())
                .isFalse();
        assertThat(next(plain, 301, "https://other.example/").hasCredentials()).isFalse();
        Hop other = Hop.first(HttpMethod.GET, URI.create("http://partner.example:8080/"));
        assertThat(next(other, 301, "https://partner.example/").hasCredentials())
                .isFalse();
    }

    @Test
    void withoutABodyThereAreNoFieldsAboutOne() {
        assertThat(sent(next(FIRST, 303, "/x")).headerNames())
                .containsExactlyInAnyOrder(
                        "authorization", "Cookie", "Proxy-Authorization", "Host", "X-Kept", "Accept");
    }
}
