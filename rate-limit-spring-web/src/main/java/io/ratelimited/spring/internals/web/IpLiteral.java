package io.ratelimited.spring.internals.web;

import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** Reads IP addresses as servers and proxies write them. Never looks up a name. */
final class IpLiteral {

    private static final String OCTET = "(25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)";
    private static final String PORT = "(?::[0-9A-Za-z._-]{1,32})?";
    private static final Pattern V4 = Pattern.compile(OCTET + "\\." + OCTET + "\\." + OCTET + "\\." + OCTET + PORT);
    private static final Pattern V6 = Pattern.compile("([0-9A-Fa-f:.]{2,45})(?:%[^\\]]{0,32})?");
    private static final Pattern BRACKETS = Pattern.compile("\\[" + V6.pattern() + "]" + PORT);

    private IpLiteral() {}

    /**
     * The address of a text.
     *
     * @param text {@code 192.0.2.1}, {@code 192.0.2.1:8080}, {@code 2001:db8::1}, {@code fe80::1%eth0} or {@code
     *     [2001:db8::1]:8080}
     * @return the address without port and zone, an IPv4-mapped one as its IPv4 address; null from any other text
     */
    static @Nullable InetAddress parse(String text) {
        Matcher v4 = V4.matcher(text);
        if (v4.matches()) {
            byte[] bytes = new byte[4];
            for (int i = 0; i < 4; i++) {
                bytes[i] = (byte) Integer.parseInt(v4.group(i + 1));
            }
            return of(bytes);
        }
        Matcher v6 = (text.startsWith("[") ? BRACKETS : V6).matcher(text);
        if (!v6.matches() || v6.group(1).indexOf(':') < 0) {
            return null;
        }
        try {
            // In brackets only a literal is accepted.
            return InetAddress.getByName("[" + v6.group(1) + "]");
        } catch (UnknownHostException ex) {
            return null;
        }
    }

    /** An address without its zone, an IPv4-mapped one as its IPv4 address. */
    static InetAddress plain(InetAddress address) {
        return of(address.getAddress());
    }

    /** The address of 4 or 16 bytes. */
    static InetAddress of(byte[] bytes) {
        try {
            return InetAddress.getByAddress(bytes);
        } catch (UnknownHostException ex) {
            throw new IllegalArgumentException("an address has 4 or 16 bytes", ex);
        }
    }
}
