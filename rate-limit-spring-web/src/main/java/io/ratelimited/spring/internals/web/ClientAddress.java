package io.ratelimited.spring.internals.web;

import java.net.Inet6Address;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.List;
import java.util.StringJoiner;
import org.jspecify.annotations.Nullable;

/**
 * The address of a client, as one text for one client, however a server has written it.
 *
 * @param ipv6PrefixLength bits of an IPv6 address that identify a client, from 1 to 128: a client can pick any of the
 *     rest
 * @param translations prefixes of addresses that carry an IPv4 address, besides those that are standard
 */
public record ClientAddress(int ipv6PrefixLength, List<Network> translations) {

    /** Without prefixes of its own. */
    ClientAddress(int ipv6PrefixLength) {
        this(ipv6PrefixLength, List.of());
    }

    /** As the properties say. */
    public static ClientAddress of(int ipv6PrefixLength, @Nullable List<String> translationPrefixes) {
        return new ClientAddress(ipv6PrefixLength, Network.translations(translationPrefixes));
    }

    /** The client of a socket. */
    @Nullable
    public String of(@Nullable InetSocketAddress socket) {
        if (socket == null) {
            return null;
        }
        InetAddress address = socket.getAddress();
        return address == null ? of(socket.getHostString()) : of(address);
    }

    /**
     * The client of an address as servers and proxies write it.
     *
     * @param written {@code 192.0.2.1}, {@code 192.0.2.1:8080}, {@code 2001:db8::1}, {@code fe80::1%eth0}, {@code
     *     [2001:db8::1]:8080}, or {@code [192.0.2.1:8080]}, as Spring reads {@code X-Forwarded-For}; other text is
     *     returned as it is
     */
    @Nullable
    public String of(@Nullable String written) {
        if (written == null || written.isBlank()) {
            return null;
        }
        String text = written.strip();
        if (text.indexOf(':') < 0 && !text.startsWith("[")) {
            return text;
        }
        InetAddress address = parse(text);
        return address == null ? text : of(address);
    }

    /** The address of such a text; null if it is none. */
    public static @Nullable InetAddress parse(@Nullable String written) {
        if (written == null) {
            return null;
        }
        InetAddress address = IpLiteral.parse(written);
        return address == null && written.startsWith("[") && written.endsWith("]")
                ? IpLiteral.parse(written.substring(1, written.length() - 1))
                : address;
    }

    /**
     * The client of an address. One that carries an IPv4 address is that address: servers and translators do not agree on
     * how to write it, and its owner could pick among many that carry it.
     */
    @Nullable
    public String of(@Nullable InetAddress client) {
        if (client == null) {
            return null;
        }
        InetAddress address = IpLiteral.plain(client);
        if (!(address instanceof Inet6Address)) {
            return address.getHostAddress();
        }
        byte[] bytes = address.getAddress();
        byte[] ipv4 = Network.ipv4In(bytes, translations);
        if (ipv4 != null) {
            return IpLiteral.of(ipv4).getHostAddress();
        }
        if (ipv6PrefixLength == 128) {
            return hex(bytes);
        }
        int whole = ipv6PrefixLength / 8;
        bytes[whole] &= (byte) (0xFF00 >> (ipv6PrefixLength % 8));
        Arrays.fill(bytes, whole + 1, bytes.length, (byte) 0);
        return hex(bytes) + "/" + ipv6PrefixLength;
    }

    /** Groups of four digits, with those at the end that are zero as {@code ::}. */
    private static String hex(byte[] bytes) {
        ByteBuffer groups = ByteBuffer.wrap(bytes);
        int used = 8;
        while (used > 0 && groups.getShort(2 * used - 2) == 0) {
            used--;
        }
        StringJoiner text = new StringJoiner(":", "", used == 8 ? "" : "::");
        for (int i = 0; i < used; i++) {
            text.add(Integer.toHexString(Short.toUnsignedInt(groups.getShort(2 * i))));
        }
        return text.toString();
    }
}
