package io.ratelimited.spring.internals.web;

import static org.assertj.core.api.Assertions.assertThat;

import com.code_intelligence.jazzer.junit.FuzzTest;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;

/** Headers of a caller to which one trusted proxy has appended the address of its peer. */
@Tag("fuzz")
class ClientAddressFuzzTest {

    private static final InetAddress PROXY = IpLiteral.of(new byte[] {10, 0, 0, 1});
    private static final InetAddress UNKNOWN = IpLiteral.of(new byte[4]);
    private static final String SEEN = "2001:db8::7";

    @Timeout(10)
    @FuzzTest
    void nobodyHasAnotherAddressThanTheProxyHasSeen(byte[] input) {
        List<String> sent = new String(input, StandardCharsets.UTF_8).lines().toList();
        String forwardedFor = sent.isEmpty() ? "" : sent.get(0);
        List<String> forwarded = sent.isEmpty() ? List.of() : sent.subList(1, sent.size());
        for (TrustedProxies proxies :
                List.of(new TrustedProxies(1, List.of()), new TrustedProxies(0, List.of(Network.of("10.0.0.0/8"))))) {
            List<String> appended = List.of(forwardedFor.isBlank() ? SEEN : forwardedFor + ", " + SEEN);
            assertSeen(proxies.client(PROXY, appended, List.of()));
            assertSeen(proxies.client(PROXY, appended, forwarded));

            String element = "for=\"[" + SEEN + "]:8080\"";
            List<String> line = new ArrayList<>(forwarded);
            line.add(element);
            assertSeen(proxies.client(PROXY, List.of(), line));
            assertSeen(proxies.client(PROXY, List.of(forwardedFor), line));
            if (!forwarded.isEmpty()) {
                List<String> joined = new ArrayList<>(forwarded);
                joined.set(joined.size() - 1, joined.get(joined.size() - 1) + ", " + element);
                assertSeen(proxies.client(PROXY, List.of(), joined));
                assertSeen(proxies.client(PROXY, List.of(forwardedFor), joined));
            }
        }
        InetAddress address = IpLiteral.parse(forwardedFor);
        if (address != null) {
            assertThat(IpLiteral.parse(address.getHostAddress())).isEqualTo(address);
        }
    }

    private static void assertSeen(InetAddress client) {
        assertThat(client).isIn(UNKNOWN, IpLiteral.parse(SEEN));
    }
}
