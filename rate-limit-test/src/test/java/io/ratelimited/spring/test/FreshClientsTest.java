package io.ratelimited.spring.test;

import static io.ratelimited.spring.test.RateLimitAssertions.assertThatCall;
import static org.assertj.core.api.Assertions.assertThat;
import static org.springframework.test.web.client.match.MockRestRequestMatchers.anything;
import static org.springframework.test.web.client.response.MockRestResponseCreators.withTooManyRequests;

import org.junit.jupiter.api.RepeatedTest;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.http.HttpStatus;
import org.springframework.http.HttpStatusCode;
import org.springframework.test.web.client.MockRestServiceServer;
import org.springframework.web.client.RestClient;

/** What the other side says in a test holds in that test only. */
@SpringBootTest(
        classes = Shop.class,
        webEnvironment = SpringBootTest.WebEnvironment.NONE,
        properties = {"rate-limit.clients.partner.hosts=partner.example", "rate-limit.clients.partner.policy=reject"})
@AutoConfigureRateLimits
class FreshClientsTest {

    @Autowired
    RestClient.Builder builder;

    @RepeatedTest(2)
    void aPauseEndsWithItsTest() {
        MockRestServiceServer.bindTo(builder).build().expect(anything()).andRespond(withTooManyRequests(60));
        RestClient client = builder.build();
        assertThat(status(client)).isEqualTo(HttpStatus.TOO_MANY_REQUESTS);
        assertThatCall(() -> status(client)).isRateLimited().by("clients.partner");
    }

    private static HttpStatusCode status(RestClient client) {
        return client.get()
                .uri("https://partner.example/orders")
                .exchange((request, response) -> response.getStatusCode());
    }
}
