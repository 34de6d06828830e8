package io.ratelimited.spring.internals.limit;

import io.ratelimited.spring.internals.text.LogText;
import java.net.URLDecoder;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.Collection;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Supplier;

/**
 * Compares how instances configure the limits that they share, and reports each limit that they configure differently, as
 * during a rollout: once when that starts, and once when it ends. Changes at run time are not compared, since all instances
 * share them. Thread-safe.
 */
public final class InstanceDifferences {

    private static final LogText.Lines LOG = LogText.lines(InstanceDifferences.class);

    private final String backend;
    private final Supplier<Collection<ConfiguredLimit>> limits;
    /** The terms that other instances have, by the names of the limits that differ. */
    private volatile Map<String, Set<String>> elsewhere = Map.of();

    /**
     * @param backend that of the limits that are compared
     * @param limits all limits of this instance that are known at present
     */
    public InstanceDifferences(String backend, Supplier<Collection<ConfiguredLimit>> limits) {
        this.backend = backend;
        this.limits = limits;
    }

    /** How this instance configures its limits: a line for each, with its name and its terms, both encoded. */
    public String own() {
        StringBuilder text = new StringBuilder();
        terms().forEach((limit, terms) ->
                text.append(encode(limit)).append(' ').append(encode(terms)).append('\n'));
        return text.toString();
    }

    private Map<String, String> terms() {
        Map<String, String> terms = new TreeMap<>();
        for (ConfiguredLimit limit : limits.get()) {
            if (limit.backend().backend().equals(backend)) {
                terms.put(limit.name(), limit.configuredTerms());
            }
        }
        return terms;
    }

    /**
     * Compares.
     *
     * @param others what {@link #own} returns on other instances at present, each once
     */
    public synchronized void compare(Collection<String> others) {
        Map<String, String> here = terms();
        Map<String, Set<String>> found = new HashMap<>();
        for (String other : others) {
            decode(other).forEach((limit, there) -> {
                String own = here.get(limit);
                if (own != null && !own.equals(there)) {
                    found.computeIfAbsent(limit, name -> new TreeSet<>()).add(LogText.escaped(there));
                }
            });
        }
        Map<String, Set<String>> before = elsewhere;
        elsewhere = found;
        new TreeMap<>(found).forEach((limit, terms) -> {
            if (!before.containsKey(limit)) {
                LOG.warn("Instances configure rate limit '" + limit + "' differently: here " + here.get(limit)
                        + "; elsewhere " + String.join("; elsewhere ", terms)
                        + ". Each enforces its own configuration; if algorithm, period, slots or zone differ, on its own used"
                        + " permits, so that callers can use both. Complete the rollout, or give"
                        + " all instances the same configuration. [RL-341]");
            }
        });
        new TreeSet<>(before.keySet())
                .stream()
                        .filter(limit -> !found.containsKey(limit))
                        .forEach(limit -> LOG.info("Instances configure rate limit '" + limit + "' the same way again: "
                                + here.get(limit)));
    }

    private static String encode(String text) {
        return URLEncoder.encode(text, StandardCharsets.UTF_8);
    }

    /** The terms by the names of limits; lines that no instance has written are skipped. */
    private static Map<String, String> decode(String settings) {
        Map<String, String> terms = new HashMap<>();
        settings.lines().forEach(line -> {
            String[] parts = line.split(" ", 2);
            try {
                terms.put(
                        URLDecoder.decode(parts[0], StandardCharsets.UTF_8),
                        URLDecoder.decode(parts[parts.length - 1], StandardCharsets.UTF_8));
            } catch (IllegalArgumentException ex) {
                // The next line may be readable.
            }
        });
        return terms;
    }

    /** The different terms that other instances have for a limit; none where all agree. */
    public Set<String> elsewhere(String limit) {
        return elsewhere.getOrDefault(limit, Set.of());
    }
}
