package io.ratelimited.spring.internals.web;

import io.ratelimited.spring.InvalidRateLimitException;
import java.net.InetAddress;
import java.util.Arrays;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * The addresses that share their first bits.
 *
 * @param length how many bits, from 0 to 32 or 128
 */
record Network(InetAddress address, int length) {

    private static final Pattern CIDR = Pattern.compile("([^/]+?)(?:/(\\d{1,3}))?");

    private static final Network WELL_KNOWN = written("64:ff9b::/96");
    private static final Network LOCAL_USE = written("64:ff9b:1::/48");
    private static final Network COMPATIBLE = written("::/96");
    private static final Network TRANSLATED = written("::ffff:0:0:0/96");
    private static final Network SIX_TO_FOUR = written("2002::/16");
    private static final Network TEREDO = written("2001::/32");

    /** Lengths that the prefix of a translator may have (RFC 6052). */
    private static final List<Integer> TRANSLATION_LENGTHS = List.of(32, 40, 48, 56, 64, 96);

    private static Network written(String cidr) {
        Network network = of(cidr);
        if (network == null) {
            throw new IllegalArgumentException(cidr);
        }
        return network;
    }

    /** The network of a text such as {@code 10.0.0.0/8}, one address without a length; null if it is none. */
    static @Nullable Network of(String written) {
        Matcher cidr = CIDR.matcher(written.strip());
        InetAddress address = cidr.matches() ? IpLiteral.parse(cidr.group(1)) : null;
        if (address == null) {
            return null;
        }
        int bits = 8 * address.getAddress().length;
        // An IPv4-mapped network is written with the 96 bits before its IPv4 address.
        int before = bits == 32 && cidr.group(1).indexOf(':') >= 0 ? 96 : 0;
        int length = cidr.group(2) == null ? bits : Integer.parseInt(cidr.group(2)) - before;
        return length >= 0 && length <= bits ? new Network(address, length) : null;
    }

    /**
     * The prefixes by which a network of the application's own translates IPv4 addresses.
     *
     * @throws InvalidRateLimitException when one is no IPv6 prefix of a length of RFC 6052
     */
    static List<Network> translations(@Nullable List<String> written) {
        return written == null
                ? List.of()
                : written.stream().map(Network::translation).toList();
    }

    private static Network translation(String written) {
        Network network = of(written);
        if (network == null
                || network.address.getAddress().length != 16
                || !TRANSLATION_LENGTHS.contains(network.length)) {
            throw InvalidRateLimitException.ofProperty(
                    "rate-limit.http.translation-prefixes",
                    "must be IPv6 prefixes of 32, 40, 48, 56, 64 or 96 bits, such as 2001:db8:64::/96",
                    '"' + written + '"');
        }
        return network;
    }

    boolean contains(InetAddress other) {
        return contains(other.getAddress());
    }

    private boolean contains(byte[] bytes) {
        byte[] own = address.getAddress();
        if (bytes.length != own.length) {
            return false;
        }
        int whole = length / 8;
        int rest = 8 - length % 8;
        return Arrays.equals(own, 0, whole, bytes, 0, whole) && (rest == 8 || (own[whole] ^ bytes[whole]) >> rest == 0);
    }

    /**
     * The IPv4 address that an IPv6 address carries: one that a translator, 6to4 or Teredo has made of it.
     *
     * @param translations prefixes of translators besides those that are standard
     * @return four bytes; null if it carries none
     */
    static byte @Nullable [] ipv4In(byte[] ipv6, List<Network> translations) {
        for (Network prefix : translations) {
            if (prefix.contains(ipv6)) {
                return behind(prefix.length, ipv6);
            }
        }
        if (LOCAL_USE.contains(ipv6)) {
            return behind(localUseLength(ipv6), ipv6);
        }
        if (SIX_TO_FOUR.contains(ipv6)) {
            return Arrays.copyOfRange(ipv6, 2, 6);
        }
        if (TEREDO.contains(ipv6)) {
            byte[] inverted = behind(96, ipv6);
            for (int i = 0; i < inverted.length; i++) {
                inverted[i] = (byte) ~inverted[i];
            }
            return inverted;
        }
        boolean carries = WELL_KNOWN.contains(ipv6) || TRANSLATED.contains(ipv6) || isCompatible(ipv6);
        return carries ? behind(96, ipv6) : null;
    }

    /** Neither the unspecified nor the loopback address. */
    private static boolean isCompatible(byte[] ipv6) {
        return COMPATIBLE.contains(ipv6) && (ipv6[12] != 0 || ipv6[13] != 0 || ipv6[14] != 0 || (ipv6[15] & 0xFE) != 0);
    }

    /** A network chooses the length of its prefix within the block; the bits behind the IPv4 address are zero. */
    private static int localUseLength(byte[] ipv6) {
        int last = 15;
        while (last > 10 && ipv6[last] == 0) {
            last--;
        }
        return last > 12 ? 96 : 8 * (last - 4);
    }

    /** The four bytes behind a prefix; byte 8 is no part of them (RFC 6052, 2.2). */
    private static byte[] behind(int length, byte[] ipv6) {
        byte[] ipv4 = new byte[4];
        int from = length / 8;
        for (int i = 0; i < ipv4.length; i++, from++) {
            from += from == 8 ? 1 : 0;
            ipv4[i] = ipv6[from];
        }
        return ipv4;
    }
}
