package io.ratelimited.spring.internals.web;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.spring.InvalidRateLimitException;
import java.net.InetSocketAddress;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

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
        "64:ff9b::203.0.113.7, 203.0.113.7",
        "64:ff9b::cb00:7107, 203.0.113.7",
        "[64:ff9b::203.0.113.7]:443, 203.0.113.7",
        "64:ff9b:0:0:0:1:cb00:7107, 64:ff9b::/64",
        "64:ff9b:1::203.0.113.7, 203.0.113.7",
        "64:ff9b:1:fffe::203.0.113.7, 203.0.113.7",
        "64:ff9b:1:cb00:71:700::, 203.0.113.7",
        "64:ff9b:1:cb:0:7107::, 203.0.113.7",
        "64:ff9b:1:1:cb:71:700::, 203.0.113.7",
        "64:ff9b:2::203.0.113.7, 64:ff9b:2::/64",
        "::203.0.113.7, 203.0.113.7",
        "::, ::/64",
        "::1, ::/64",
        "::ffff:0:203.0.113.7, 203.0.113.7",
        "2002:cb00:7107::1, 203.0.113.7",
        "2002:cb00:7107:ffff:1:2:3:4, 203.0.113.7",
        "2001:0:4136:e378:8000:63bf:34ff:8ef8, 203.0.113.7",
        "2001:1:4136:e378:8000:63bf:34ff:8ef8, 2001:1:4136:e378::/64"
    })
    void anAddressThatCarriesAnIpv4AddressIsThatAddress(String written, String client) {
        assertThat(new ClientAddress(64).of(written)).isEqualTo(client);
        assertThat(new ClientAddress(128).of(written).contains(":")).isEqualTo(client.contains(":"));
    }

    @ParameterizedTest
    @CsvSource({
        "2001:db8::/32, 2001:db8:cb00:7107::, 203.0.113.7",
        "2001:db8:100::/40, 2001:db8:1cb:71:7::, 203.0.113.7",
        "2001:db8:122::/48, 2001:db8:122:cb00:71:700::, 203.0.113.7",
        "2001:db8:122:300::/56, 2001:db8:122:3cb:0:7107::, 203.0.113.7",
        "2001:db8:122:344::/64, 2001:db8:122:344:cb:71:700::, 203.0.113.7",
        "2001:db8:122:344::/96, 2001:db8:122:344::203.0.113.7, 203.0.113.7",
        "2001:db8:122:344::/96, 2001:db8:122:345::203.0.113.7, 2001:db8:122:345::/64",
        "64:ff9b:1:1::/64, 64:ff9b:1:1:cb:71::, 203.0.113.0"
    })
    void aNetworkHasTranslationPrefixesOfItsOwn(String prefix, String written, String client) {
        assertThat(new ClientAddress(64, Network.translations(List.of(prefix))).of(written))
                .isEqualTo(client);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {"2001:db8::/65", "2001:db8::", "10.0.0.0/32", "::ffff:10.0.0.0/96", "nat64", "2001:db8::/33"})
    void anotherLengthOfATranslationPrefixIsInvalid(String prefix) {
        assertThatThrownBy(() -> Network.translations(List.of(prefix)))
                .isInstanceOf(InvalidRateLimitException.class)
                .hasMessageContaining("Property rate-limit.http.translation-prefixes is \"" + prefix
                        + "\", but must be IPv6 prefixes of 32, 40, 48, 56, 64 or 96 bits");
    }

    @Test
    void aPeerWithoutAnAddressIsATrustedProxy() {
        TrustedProxies networks = TrustedProxies.of(List.of("10.0.0.0/8"));
        assertThat(networks.client(null, List.of("192.0.2.1, 203.0.113.7"), List.of()))
                .isEqualTo(ClientAddress.parse("203.0.113.7"));
        assertThat(networks.client(null, List.of(), List.of("for=192.0.2.1, for=203.0.113.7, for=10.1.2.3")))
                .isEqualTo(ClientAddress.parse("203.0.113.7"));
        assertThat(networks.client(null, List.of(), List.of())).isNull();
        assertThat(networks.client(null, List.of("forged"), List.of()))
                .as("no caller chooses to have no address")
                .isEqualTo(ClientAddress.parse("0.0.0.0"));
    }

    @ParameterizedTest
    @ValueSource(strings = {"10.1.1.7", "10.1.1.8"})
    void callersWithinTheTrustedNetworksAreToldApart(String caller) {
        TrustedProxies networks = TrustedProxies.of(List.of("10.0.0.0/8"));
        assertThat(networks.client(ClientAddress.parse("10.0.0.1"), List.of(caller + ", 10.0.0.2"), List.of()))
                .isEqualTo(ClientAddress.parse(caller));
    }

    @ParameterizedTest
    @CsvSource({
        "48, 2001:db8:ffff::/48",
        "52, 2001:db8:ffff:f000::/52",
        "56, 2001:db8:ffff:ff00::/56",
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
