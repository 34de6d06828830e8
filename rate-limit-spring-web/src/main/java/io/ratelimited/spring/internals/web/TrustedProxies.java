package io.ratelimited.spring.internals.web;

import io.ratelimited.spring.InvalidRateLimitException;
import io.ratelimited.spring.internals.text.LogText;
import java.net.InetAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import java.util.function.Function;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * Finds the client behind proxies that are trusted, from the address of the peer and the headers as they came. Each proxy
 * appends the address of its own peer, so only addresses right of the first proxy that is not trusted are believed.
 * Immutable.
 *
 * @param hops the number of proxies that every request passes; 0 when {@code networks} say which addresses are proxies
 */
public record TrustedProxies(int hops, List<Network> networks) {

    public static final String PROPERTY = "rate-limit.http.trusted-proxies";

    /** No host has this address, and no proxy sees it: the client of headers that cannot be read, or that disagree. */
    private static final InetAddress UNKNOWN = IpLiteral.of(new byte[4]);

    private static final Pattern HOPS = Pattern.compile("\\d{1,9}");

    /**
     * Reads the property.
     *
     * @return null when no proxy is trusted
     * @throws InvalidRateLimitException when a value is neither a number of hops nor a network
     */
    public static @Nullable TrustedProxies of(@Nullable List<String> written) {
        if (written == null || written.isEmpty()) {
            return null;
        }
        String first = written.get(0).strip();
        boolean counted =
                written.stream().anyMatch(each -> HOPS.matcher(each.strip()).matches());
        if (counted && written.size() > 1) {
            throw invalid(String.join(", ", written));
        }
        if (counted) {
            int hops = Integer.parseInt(first);
            if (hops < 1 || hops > 100) {
                throw InvalidRateLimitException.ofProperty(PROPERTY, "must be from 1 to 100 hops", hops);
            }
            return new TrustedProxies(hops, List.of());
        }
        return new TrustedProxies(
                0, written.stream().map(TrustedProxies::network).toList());
    }

    private static Network network(String written) {
        Network network = Network.of(written);
        if (network == null) {
            throw invalid(written);
        }
        if (network.length() == 0) {
            throw InvalidRateLimitException.ofProperty(
                    PROPERTY,
                    "must name the networks of your proxies, or the number of hops: a network of all addresses also"
                            + " trusts the clients, so each call could choose its client IP",
                    '"' + written + '"');
        }
        return network;
    }

    private static InvalidRateLimitException invalid(String written) {
        return InvalidRateLimitException.ofProperty(
                PROPERTY,
                "must be one number of hops, such as 1, or networks, such as 10.0.0.0/8 and 2001:db8::/32",
                '"' + written + '"');
    }

    /**
     * The address of the client of a request.
     *
     * @param peer who has opened the connection; null when it has no address, as on a unix domain socket, which only a
     *     proxy on this machine can open
     * @param forwardedFor the lines of {@code X-Forwarded-For}
     * @param forwarded the lines of {@code Forwarded}
     * @return the address that a trusted proxy has seen; the nearest proxy itself without headers; {@code 0.0.0.0} where they
     *     cannot be read, or disagree, so that callers choose neither a new address nor that of another host, such as a proxy
     *     that checks the health of the application
     */
    public @Nullable InetAddress client(@Nullable InetAddress peer, List<String> forwardedFor, List<String> forwarded) {
        InetAddress nearest = peer == null ? null : IpLiteral.plain(peer);
        if (hops == 0 && nearest != null && !isTrusted(nearest)) {
            return nearest;
        }
        if (forwarded.isEmpty()) {
            return forwardedFor.isEmpty() ? nearest : client(nearest, addresses(forwardedFor));
        }
        List<String> nodes = ForwardedHeader.nodes(forwarded);
        InetAddress client = nodes == null ? UNKNOWN : client(nearest, nodes);
        // A proxy writes one header and may pass the other one on as the caller sent it: both have to say the same.
        boolean agreed = forwardedFor.isEmpty() || Objects.equals(client, client(nearest, addresses(forwardedFor)));
        return agreed ? client : UNKNOWN;
    }

    private static List<String> addresses(List<String> lines) {
        List<String> addresses = new ArrayList<>();
        for (String line : lines) {
            for (String address : line.split(",", -1)) {
                addresses.add(address.strip());
            }
        }
        return addresses;
    }

    private @Nullable InetAddress client(@Nullable InetAddress peer, List<String> entries) {
        if (hops > 0) {
            int position = entries.size() - hops;
            InetAddress client = position < 0 ? null : IpLiteral.parse(entries.get(position));
            return client == null ? UNKNOWN : client;
        }
        InetAddress nearest = peer;
        for (int i = entries.size() - 1; i >= 0; i--) {
            InetAddress next = IpLiteral.parse(entries.get(i));
            if (next == null) {
                return UNKNOWN;
            }
            if (!isTrusted(next)) {
                return next;
            }
            nearest = next;
        }
        return nearest;
    }

    private boolean isTrusted(InetAddress address) {
        return networks.stream().anyMatch(network -> network.contains(address));
    }

    /** The warning of addresses that callers can forge, without its code. */
    public static String leftmost(String why) {
        return "clientIp is the leftmost address of X-Forwarded-For or Forwarded, because " + why
                + ": behind a proxy that appends to these headers, clients can spoof it and get a fresh limit with each call. Set "
                + PROPERTY + " to the number of your proxies, or to their networks.";
    }

    /** Notices, while no proxy is trusted, that requests have passed one. Thread-safe. */
    public static final class Untrusted {

        private static final LogText.Lines LOG = LogText.lines(TrustedProxies.class);
        /** A proxy adds its header to every request, so the first ones show it, and later ones cost nothing. */
        private static final int WATCHED = 1_000;

        private final AtomicInteger left = new AtomicInteger();

        /** From now on. */
        public void watch() {
            left.set(WATCHED);
        }

        /**
         * Notes that a limit has asked for the client of a request.
         *
         * @param headers of the request, by name
         * @param changed whether a filter of the application has taken the address from such a header
         */
        public void seen(Function<String, @Nullable String> headers, BooleanSupplier changed) {
            if (left.get() <= 0 || left.getAndDecrement() <= 0) {
                return;
            }
            if (changed.getAsBoolean() && left.getAndSet(0) >= 0) {
                LOG.warn(leftmost("a ForwardedHeaderFilter has read them") + " [RL-212]");
                return;
            }
            for (String header : new String[] {"X-Forwarded-For", "Forwarded"}) {
                if (headers.apply(header) != null && left.getAndSet(0) >= 0) {
                    LOG.warn("A request has " + header + ", and " + PROPERTY
                            + " is not set: clientIp is the address of the"
                            + " peer. If no proxy is in front, a client has sent it: ignore this. If one is, all"
                            + " callers behind it share one limit: set "
                            + PROPERTY
                            + " to the number of proxies that every request passes, or to their networks. [RL-213]");
                    return;
                }
            }
        }
    }
}
