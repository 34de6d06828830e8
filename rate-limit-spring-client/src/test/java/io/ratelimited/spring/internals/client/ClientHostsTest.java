package io.ratelimited.spring.internals.client;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.testing.ManualTicker;
import java.net.URI;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Which addresses a client of the properties calls: what it leaves out is not limited at all. */
class ClientHostsTest {

    @ParameterizedTest
    @CsvSource({
        "api.partner.example, HTTPS://API.Partner.Example/x, true",
        "api.partner.example, https://user@api.partner.example:8443/x, true",
        "api.partner.example:443, https://api.partner.example/x, true",
        "api.partner.example:80, http://api.partner.example/x, true",
        "api.partner.example:443, http://api.partner.example/x, false",
        "api.partner.example:80, https://api.partner.example/x, false",
        "*.partner.example:443, https://api.partner.example, true",
        "api.partner.example, https://api.partner.example./x, true",
        "*.partner.example, https://api.partner.example.:8443/x, true",
        "api.partner.example.:8443, https://api.partner.example:8443/x, true",
        "order_service, http://order_service/x, true",
        "order_service, http://user:secret@order_service:8080/x, true",
        "order_service:8080, http://Order_Service:8080/x, true",
        "order_service:8080, http://order_service:8081/x, false",
        "*.my_zone.example, http://a.my_zone.example:8080/x, true",
        "partner.example, http://partner.example@other_host/x, false",
        "api.partner.example:0443, https://api.partner.example/x, true",
        "API.Partner.Example.:0443, https://api.partner.example:443/x, true",
        "*.partner.example:0443, https://api.partner.example:0443/x, true",
        "order_service:08080, http://order_service:08080/x, true",
        "[::1]:08080, http://[0:0::1]:8080/x, true",
        "[2001:DB8::a]:443, https://[2001:db8::A]/x, true",
        "[::1]:8080, http://[::1]:8080/x, true",
        "[0:0:0:0:0:0:0:1], http://[::1]/x, true",
        "[2001:db8::A], http://[2001:0DB8:0:0::a]:8443/x, true",
        "partner.example, mailto:me@partner.example, false",
        "partner.example, /partner.example, false",
    })
    void aHostIsFoundInEverySpelling(String host, URI called, boolean limited) {
        LimitedClientsContext.runner(new ManualTicker(), "rate-limit.clients.partner.hosts=" + host)
                .run(context -> assertThat(context.getBean(LimitedClients.class).of(called) != null)
                        .isEqualTo(limited));
    }

    @ParameterizedTest
    @CsvSource({"http://order_service:8080/x, order_service", "http://user@Other.Example/x, Other.Example", "/x, ''"})
    void theWordHostIsTheHostOfTheAddress(URI called, String host) {
        assertThat(new OutgoingRequest("GET", called, name -> null).getHost()).isEqualTo(host);
    }
}
