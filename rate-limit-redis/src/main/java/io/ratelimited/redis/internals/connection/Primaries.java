package io.ratelimited.redis.internals.connection;

import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/** The primaries that are known, and the search for them. Thread-safe. */
final class Primaries {

    private static final long DISCOVERY_MILLIS = 2_000;
    /** A search may take longer: others begin meanwhile, so that a silent node does not hold them up. */
    private static final long PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(150);

    private final RedisConnector connector;
    private final Threads threads;
    private final Health health;
    private final long timeoutNanos;
    private final Server.Owner owner;
    private final Map<String, Server> servers = new ConcurrentHashMap<>();
    /** Time at which the last search began. */
    private final AtomicLong searchedAt;
    /** Replaced by each search that has found other primaries, or one for {@link #unserved}. */
    private volatile Object found = new Object();
    /** The last key for which no primary was known while there were others; null once a search has found one. */
    private volatile @Nullable String unserved;
    /** The last search has found none for that key, either. */
    private volatile boolean incomplete;
    /** Time at which the search began whose result is in use. Guarded by this. */
    private long foundAt;

    /** @param owner of all servers */
    Primaries(RedisConnector connector, Threads threads, Health health, long timeoutNanos, Server.Owner owner) {
        this.connector = connector;
        this.threads = threads;
        this.health = health;
        this.timeoutNanos = timeoutNanos;
        this.owner = owner;
        this.foundAt = threads.nanos() - PAUSE_NANOS;
        this.searchedAt = new AtomicLong(foundAt);
    }

    Collection<Server> all() {
        return servers.values();
    }

    /** By identity: the same as long as no search has found a primary for a key that had none. */
    Object found() {
        return found;
    }

    /** Returns whether a search has found primaries, but none for a key that was asked for. */
    boolean areIncomplete() {
        return incomplete;
    }

    long away() {
        return servers.values().stream().filter(Server::isAway).count();
    }

    /** Those that are away for more than a single late reply. */
    long out() {
        return servers.values().stream().filter(Server::isOut).count();
    }

    /** The primary that has a key; null when none is known. */
    @Nullable
    Server of(String key) {
        if (servers.isEmpty()) {
            return null;
        }
        String address = connector.address(key);
        Server server = address == null ? null : servers.get(address);
        if (server == null) {
            unserved = key;
            discover();
        }
        return server;
    }

    boolean isKnown(String address) {
        return servers.containsKey(address);
    }

    /** The server at an address, which may be new; null if it has just gone. */
    @Nullable
    Server at(String address) {
        add(Set.of(address));
        return servers.get(address);
    }

    private void add(Set<String> addresses) {
        List<Server> added = new ArrayList<>();
        boolean outage = away() > 0;
        addresses.forEach(address -> servers.computeIfAbsent(address, unknown -> {
            Server made = new Server(unknown, connector, threads, timeoutNanos, owner);
            made.ready().thenRun(owner::connected);
            if (outage) {
                made.takeOver();
            }
            added.add(made);
            return made;
        }));
        // Not before all are known: a caller that finds one connected may ask another.
        added.forEach(Server::connect);
    }

    /** Asks the servers that are away, and looks for those that have taken over. Runs again and again. */
    void look() {
        boolean away = false;
        for (Server server : servers.values()) {
            away |= server.isAway();
            server.look();
        }
        if (servers.isEmpty() || ((away || unserved != null) && connector.isCluster())) {
            discover();
        }
    }

    /** Looks for the primaries, unless that has just begun. */
    void discover() {
        long last = searchedAt.get();
        long now = threads.nanos();
        if (now - last < PAUSE_NANOS || !searchedAt.compareAndSet(last, now)) {
            return;
        }
        threads.call(connector::discover, DISCOVERY_MILLIS, found -> {}).whenComplete((found, failure) -> {
            if (failure == null) {
                discovered(found, now);
            }
            if (servers.isEmpty()) {
                health.away(
                        failure == null
                                ? new IllegalStateException("no primary of the cluster has slots")
                                : Replies.cause(failure));
            } else if (incomplete) {
                health.away(new IllegalStateException("no primary of the cluster has the slots of some keys"));
            }
        });
    }

    /** Takes the result of a search. Several are pending together: the result of an older one is left out. */
    private synchronized void discovered(Set<String> primaries, long begunAt) {
        if (begunAt - foundAt < 0) {
            return;
        }
        foundAt = begunAt;
        String key = unserved;
        String address = key == null ? null : connector.address(key);
        boolean served = address != null && primaries.contains(address);
        // Before a caller can ask one that is new.
        if (served || !primaries.equals(servers.keySet())) {
            found = new Object();
        }
        add(primaries);
        servers.forEach((known, server) -> {
            if (!primaries.contains(known) && servers.remove(known, server)) {
                server.retire();
            }
        });
        if (served) {
            unserved = null;
        }
        incomplete = key != null && !served && !primaries.isEmpty();
    }
}
