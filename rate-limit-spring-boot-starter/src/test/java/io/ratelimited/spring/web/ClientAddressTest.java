package io.ratelimited.spring.web;

import static org.assertj.core.api.Assertions.assertThat;

import java.net.InetSocketAddress;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class ClientAddressTest {

    @ParameterizedTest
    @CsvSource({
        "192.0.2.1, 192.0.2.1",
        "192.0.2.1:8080, 192.0.2.1",
        "[192.0.2.1:8080], 192.0.2.1",
        "::ffff:192.0.2.1, 192.0.2.1",
        "::ffff:c000:201, 192.0.2.1",
        "[::ffff:192.0.2.1]:8080, 192.0.2.1",
        "2001:db8:1:2:3:4:5:6, 2001:db8:1:2::/64",
        "2001:DB8:1:2::1, 2001:db8:1:2::/64",
        "2001:db8:1:2:ffff::, 2001:db8:1:2::/64",
        "2001:db8:1:3::1, 2001:db8:1:3::/64",
        "[2001:db8:1:2::1], 2001:db8:1:2::/64",
        "[2001:db8:1:2::1]:443, 2001:db8:1:2::/64",
        "fe80::1%eth0, fe80::/64",
        "::1, ::/64",
        "unknown, unknown",
        "not:an:address, not:an:address"
    })
    void oneClientHasOneText(String written, String client) {
        assertThat(new ClientAddress(64).of(written)).isEqualTo(client);
    }

    @ParameterizedTest
    @CsvSource({
        "48, 2001:db8:ffff::/48",
        "52, 2001:db8:ffff:f000::/52",
        "57, 2001:db8:ffff:ff80::/57",
        "127, 2001:db8:ffff:ffff:ffff:ffff:ffff:fffe/127",
        "128, 2001:db8:ffff:ffff:ffff:ffff:ffff:ffff"
    })
    void theLengthOfTheNetworkCanBeSet(int length, String client) {
        assertThat(new ClientAddress(length).of("2001:db8:ffff:ffff:ffff:ffff:ffff:ffff"))
                .isEqualTo(client);
    }

    @Test
    void anUnknownAddressIsNull() {
        assertThat(new ClientAddress(64).of((String) null)).isNull();
        assertThat(new ClientAddress(64).of(" ")).isNull();
        assertThat(new ClientAddress(64).of((InetSocketAddress) null)).isNull();
    }

    @Test
    void aSocketIsReadWithoutALookUp() {
        assertThat(new ClientAddress(64).of(InetSocketAddress.createUnresolved("192.0.2.1", 80)))
                .isEqualTo("192.0.2.1");
        assertThat(new ClientAddress(64).of(new InetSocketAddress("2001:db8::1", 80)))
                .isEqualTo("2001:db8::/64");
    }
}
