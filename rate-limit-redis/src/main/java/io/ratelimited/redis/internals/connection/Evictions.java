package io.ratelimited.redis.internals.connection;

import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.WeakHashMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * Whether a server removes keys when its memory is full: a caller whose key is removed has all permits again, and nothing else
 * shows it. A server that refuses to tell is not asked again on the same connection, and is no failure. Thread-safe.
 */
final class Evictions {

    private static final String SAFE = "noeviction";
    private static final String SUBJECT = "evictions";
    /** So long after the last removal that was noticed the health is good again. */
    private static final long REMEMBERED = TimeUnit.HOURS.toNanos(1);

    private final Primaries primaries;
    private final CommandSender sender;
    private final Threads threads;
    private final Health health;
    /** The keys that servers have removed, by the connection: another one to the same address may lead to another server. */
    private final Map<RedisLink, Long> counts = Collections.synchronizedMap(new WeakHashMap<>());
    /** Connections on which servers have refused to tell: each refusal is an entry in the log of their ACL. */
    private final Set<RedisLink> refused = Collections.synchronizedSet(Collections.newSetFromMap(new WeakHashMap<>()));

    private final AtomicBoolean warned = new AtomicBoolean();
    /** Guarded by this. */
    private long lost;
    /** Guarded by this. */
    private long noticedAt;

    Evictions(Primaries primaries, CommandSender sender, Threads threads, Health health) {
        this.primaries = primaries;
        this.sender = sender;
        this.threads = threads;
        this.health = health;
    }

    /** Asks all servers that decide. Completes when they have replied or failed. */
    CompletableFuture<Void> look() {
        forgetIfOver();
        return CompletableFuture.allOf(primaries.all().stream().map(this::ask).toArray(CompletableFuture<?>[]::new));
    }

    private CompletableFuture<?> ask(Server server) {
        RedisLink link = server.isAway() || sender.isClosed() ? null : server.link();
        return link == null || refused.contains(link)
                ? CompletableFuture.completedFuture(null)
                : Replies.of(() -> link.eval(Script.MEMORY, new String[0], new ScriptArguments().add("0 0 0"), false))
                        .handle((reply, failure) -> {
                            if (failure == null) {
                                replied(link, reply);
                            }
                            return null;
                        });
    }

    private void replied(RedisLink link, List<Object> reply) {
        if (reply.size() < 2 || !(reply.get(0) instanceof String policy) || !(reply.get(1) instanceof Long count)) {
            refused.add(link);
            return;
        }
        if (!policy.equals(SAFE) && !warned.getAndSet(true)) {
            threads.warn(() -> "Callers may get fresh limits when the memory of Redis is full: its maxmemory-policy is "
                    + policy + ", which evicts keys of limits. Set maxmemory-policy to " + SAFE + ". [RL-310]");
        }
        Long before = counts.put(link, count);
        if (before != null && count > before) {
            noticed(count - before);
        }
    }

    private synchronized void noticed(long more) {
        lost += more;
        noticedAt = threads.nanos();
        health.problem(
                SUBJECT,
                "Redis has evicted " + lost
                        + " keys because its memory is full: callers with an evicted key have a fresh"
                        + " limit. Give it more memory, and set maxmemory-policy to " + SAFE + ". [RL-311]");
    }

    private synchronized void forgetIfOver() {
        if (lost > 0 && threads.nanos() - noticedAt >= REMEMBERED) {
            lost = 0;
            health.problem(SUBJECT, null);
        }
    }
}
