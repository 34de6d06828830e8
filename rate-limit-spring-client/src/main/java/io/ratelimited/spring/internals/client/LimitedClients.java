package io.ratelimited.spring.internals.client;

import io.ratelimited.core.Policy;
import io.ratelimited.spring.InvalidRateLimitException;
import io.ratelimited.spring.fields.RateLimitHeaderReader;
import io.ratelimited.spring.internals.call.LimitEnforcer;
import io.ratelimited.spring.internals.client.ClientProperties.Obey;
import io.ratelimited.spring.internals.client.LimitedClient.Terms;
import io.ratelimited.spring.internals.expression.CallExpression;
import io.ratelimited.spring.internals.limit.ConfiguredLimit;
import io.ratelimited.spring.internals.limit.LimitRegistry;
import io.ratelimited.spring.internals.text.LogText;
import io.ratelimited.spring.internals.text.PropertyText;
import java.net.InetAddress;
import java.net.URI;
import java.net.UnknownHostException;
import java.time.Duration;
import java.util.Collection;
import java.util.Collections;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.config.ConfigurableBeanFactory;

/** The clients of {@code rate-limit.clients}, by the hosts that they call. Immutable. */
public final class LimitedClients {

    private static final LogText.Lines LOG = LogText.lines(LimitedClients.class);
    /** Properties of a limit that are evaluated for calls of methods. */
    private static final Set<String> UNREAD =
            Set.of("block-unless", "charge", "fallback", "permits", "priority", "tier", "when");

    private static final Duration LONGEST = Duration.ofDays(366);
    private static final Pattern HOST =
            Pattern.compile("((?:\\*\\.)?[\\p{Alnum}_-]+(?:\\.[\\p{Alnum}_-]+)*\\.?|\\[[0-9a-f:.]+])(?::(\\d{1,5}))?");
    private static final int LARGEST_PORT = 65_535;

    private final Map<String, LimitedClient> byName = new TreeMap<>();
    private final Map<String, LimitedClient> byHost = new HashMap<>();

    /** @throws InvalidRateLimitException when a client is invalid, or two call one host */
    public LimitedClients(
            Map<String, ClientProperties> clients,
            LimitRegistry registry,
            LimitEnforcer enforcer,
            RateLimitHeaderReader reader,
            ConfigurableBeanFactory beans) {
        clients.forEach((name, properties) -> {
            Terms terms = terms(name, properties, registry, beans);
            LimitedClient client =
                    new LimitedClient(name, terms, enforcer, registry.sharedPauses(terms.limits()), reader);
            byName.put(name, client);
            for (String host : orEmpty(properties.hosts())) {
                LimitedClient other = byHost.putIfAbsent(withPort(host), client);
                if (other != null) {
                    throw hasHostOf(other.name(), name, host);
                }
            }
        });
        clients.forEach((name, properties) -> LOG.info(described(name, properties)));
    }

    private static InvalidRateLimitException hasHostOf(String other, String client, String host) {
        String problem = "has " + host + ", which client '" + other + "' also has";
        if (client.equals(other) || !withoutDashes(client).equals(withoutDashes(other))) {
            return invalid(
                    client,
                    "hosts",
                    problem,
                    "List the host in one client only; use key to divide the state of a client.");
        }
        // Each is bound to the properties of both, so a variable without the dashes has made a second client.
        String dashed = client.length() > other.length() ? client : other;
        return invalid(
                client,
                "hosts",
                problem + ", because Spring Boot ignores the dashes of their names",
                "Use the name '" + dashed + "' only. In environment variables, write each dash as _, as in"
                        + " RATE_LIMIT_CLIENTS_" + dashed.replace('-', '_').toUpperCase(Locale.ROOT) + "_MAX_WAIT.");
    }

    private static String withoutDashes(String name) {
        return name.replace("-", "");
    }

    /** What applies to the calls of a client, so that the log of a deployment shows it. */
    private static String described(String name, ClientProperties client) {
        String wait = client.policy() == Policy.WAIT ? " up to " + PropertyText.of(client.maxWait()) : "";
        String key = client.key() == null || client.key().isBlank() ? "" : ", key " + client.key();
        return "Client " + name + ": hosts " + client.hosts() + ", limits " + orEmpty(client.limits()) + ", obey "
                + client.obey().stream().map(PropertyText::of).toList() + ", max-pause "
                + PropertyText.of(client.maxPause()) + ", policy " + PropertyText.of(client.policy()) + wait + key
                + " (rate-limit.clients." + name + ")";
    }

    private static Terms terms(
            String name, ClientProperties client, LimitRegistry registry, ConfigurableBeanFactory beans) {
        List<String> hosts = orEmpty(client.hosts());
        if (hosts.isEmpty()) {
            throw invalid(
                    name, "hosts", "is missing", "Set the hosts that the client calls, as in api.partner.example.");
        }
        for (String host : hosts) {
            if (!isHost(host.toLowerCase(Locale.ROOT))) {
                throw invalid(
                        name,
                        "hosts",
                        // Of a URL, what stands before the at-sign can be a password.
                        "has \"" + host.replaceFirst("(?s)^.*@", "…@") + "\", which is not a host",
                        "Use a form like api.partner.example, api.partner.example:8443 or *.partner.example.");
            }
        }
        List<String> limits = orEmpty(client.limits());
        for (String limit : limits) {
            if (Collections.frequency(limits, limit) > 1) {
                throw invalid(name, "limits", "has " + limit + " twice", "Remove one.");
            }
        }
        Set<Obey> obeys = EnumSet.noneOf(Obey.class);
        obeys.addAll(client.obey());
        if (limits.isEmpty() && obeys.isEmpty()) {
            throw invalid(
                    name, "obey", "is empty, and there are no limits", "Set limits or obey, or remove the client.");
        }
        Policy policy = client.policy();
        if (policy == Policy.DEFAULT) {
            throw invalid(name, "policy", "is default", "Use wait, reject or shadow.");
        }
        requireTime(name, "max-wait", client.maxWait());
        requireTime(name, "max-pause", client.maxPause());
        List<ConfiguredLimit> named =
                limits.stream().map(limit -> limit(name, limit, registry)).toList();
        boolean keyed = client.key() != null && !client.key().isBlank();
        named.forEach(limit -> warnOfUnread(name, limit, keyed));
        named.stream()
                .filter(limit -> keyed && limit.findsItsLimit())
                .findFirst()
                .ifPresent(limit -> {
                    throw invalid(
                            name,
                            "key",
                            "is set, but its limit " + limit.name() + " is ADAPTIVE, which has one limit for all calls",
                            "Remove the key, or define a client per key.");
                });
        return new Terms(
                List.copyOf(hosts),
                named,
                obeys,
                client.maxPause().toNanos(),
                policy,
                policy == Policy.REJECT ? 0 : client.maxWait().toNanos(),
                client.key() == null || client.key().isBlank() ? null : key(name, client.key(), beans));
    }

    private static CallExpression key(String client, String text, ConfigurableBeanFactory beans) {
        String property = property(client, "key");
        try {
            return CallExpression.on(OutgoingRequest.class, "property " + property, text, beans);
        } catch (IllegalArgumentException ex) {
            throw new InvalidRateLimitException(
                    "Property " + property + " " + ex.getMessage(),
                    "Use host, method, uri and header('…'), as in header('X-Account'). [RL-113]");
        }
    }

    private static boolean isHost(String host) {
        Matcher written = HOST.matcher(host);
        if (!written.matches()) {
            return false;
        }
        int port = written.group(2) == null ? 1 : Integer.parseInt(written.group(2));
        return port >= 1
                && port <= LARGEST_PORT
                && (!host.startsWith("[") || !address(written.group(1)).isEmpty());
    }

    /** An IPv6 address in brackets as it is always written; empty if it is none. */
    private static String address(String literal) {
        try {
            return "[" + InetAddress.getByName(literal).getHostAddress() + "]";
        } catch (UnknownHostException ex) {
            return "";
        }
    }

    private static ConfiguredLimit limit(String client, String limit, LimitRegistry registry) {
        try {
            return registry.getOfProperties(limit);
        } catch (IllegalArgumentException ex) {
            throw invalid(
                    client,
                    "limits",
                    "has " + limit + ", but " + ex.getMessage(),
                    LimitRegistry.remedyOfUnknown(limit));
        }
    }

    /** Warns of properties that are evaluated for calls of methods: for the request of a client there is no method. */
    private static void warnOfUnread(String client, ConfiguredLimit limit, boolean keyed) {
        Map<String, String> expressions = new TreeMap<>(limit.properties());
        expressions.keySet().removeIf(name -> !UNREAD.contains(name) && (keyed || !name.equals("key")));
        expressions.values().removeIf(String::isBlank);
        expressions.remove("permits", "1");
        if (!expressions.isEmpty()) {
            LOG.warn("Rate limit '" + limit.name() + "' (" + property(client, "limits") + ") sets " + expressions
                    + ", which calls of clients ignore: each takes 1 permit of the limit itself, with the key of the"
                    + " client. Define a separate limit for the client. [RL-216]");
        }
    }

    private static void requireTime(String client, String property, Duration time) {
        if (time.isNegative() || time.isZero() || time.compareTo(LONGEST) > 0) {
            throw InvalidRateLimitException.ofProperty(property(client, property), "must be from 1ns to 366d", time);
        }
    }

    private static List<String> orEmpty(@Nullable List<String> list) {
        return list == null ? List.of() : list;
    }

    private static String property(String client, String property) {
        return "rate-limit.clients." + client + "." + property;
    }

    private static InvalidRateLimitException invalid(String client, String property, String problem, String remedy) {
        return new InvalidRateLimitException(
                "Property " + property(client, property) + " " + problem, remedy + " [RL-113]");
    }

    /** A host of the properties in one spelling, with its port if it has one. */
    private static String withPort(String host) {
        Matcher written = HOST.matcher(host.toLowerCase(Locale.ROOT));
        boolean hasPort = written.matches() && written.group(2) != null;
        return hasPort ? plain(written.group(1)) + ":" + Integer.parseInt(written.group(2)) : plain(host);
    }

    /** A host in lower case, without the dot that may end a name; an IPv6 address in one spelling. */
    private static String plain(String host) {
        if (host.startsWith("[")) {
            String address = address(host);
            return address.isEmpty() ? host : address;
        }
        String named = host.toLowerCase(Locale.ROOT);
        return named.endsWith(".") ? named.substring(0, named.length() - 1) : named;
    }

    /** Ends the waits of calls at once when the context closes. */
    public void close() {
        byName.values().forEach(LimitedClient::close);
    }

    /** All clients, by name. */
    public Collection<LimitedClient> all() {
        return Collections.unmodifiableCollection(byName.values());
    }

    /** The client that calls a host: by host and port, by host, or by the longest domain above it; null if there is none. */
    @Nullable
    LimitedClient of(URI uri) {
        String written = byHost.isEmpty() ? null : OutgoingRequest.host(uri);
        if (written == null) {
            return null;
        }
        String host = plain(written);
        String port = ":" + OutgoingRequest.port(uri);
        LimitedClient found = byHost.get(host + port);
        if (found == null) {
            found = byHost.get(host);
        }
        for (int dot = host.indexOf('.'); found == null && dot >= 0; dot = host.indexOf('.', dot + 1)) {
            found = byHost.get("*" + host.substring(dot) + port);
            if (found == null) {
                found = byHost.get("*" + host.substring(dot));
            }
        }
        return found;
    }
}
