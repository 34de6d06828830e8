package io.ratelimited.redis.limiter;

import io.ratelimited.redis.connection.Replies;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;

/**
 * The calls of one key on this node: at most one script call is pending, and the calls that arrive meanwhile are
 * decided together by the next one, in order. Exact, and no call is held back to fill a batch. Exists while there are calls.
 */
final class KeyBatch {

    /** Replies decided by one script call at the most, so that it stays short. */
    private static final int MAX_CALLS = 256;

    private final RedisRateLimiter limiter;
    private final ConcurrentHashMap<String, KeyBatch> batches;
    private final String key;
    /** Guarded by this. */
    private List<PermitRequest> waiting = new ArrayList<>(4);
    /** A script call is pending. Guarded by this. */
    private boolean busy;
    /** Out of {@link #batches}, and of no more use. Guarded by this. */
    private boolean ended;

    KeyBatch(RedisRateLimiter limiter, ConcurrentHashMap<String, KeyBatch> batches, String key) {
        this.limiter = limiter;
        this.batches = batches;
        this.key = key;
    }

    /** Adds a call; false when the batch has ended, and the key has to be looked up again. */
    boolean add(PermitRequest call) {
        synchronized (this) {
            if (ended) {
                return false;
            }
            waiting.add(call);
            if (busy) {
                return true;
            }
            busy = true;
        }
        next();
        return true;
    }

    /** Sends what waits, or ends the batch. */
    private void next() {
        while (true) {
            List<PermitRequest> batch;
            synchronized (this) {
                if (waiting.isEmpty()) {
                    ended = true;
                    batches.remove(key, this);
                    return;
                }
                if (waiting.size() <= MAX_CALLS) {
                    batch = waiting;
                    waiting = new ArrayList<>(4);
                } else {
                    batch = new ArrayList<>(waiting.subList(0, MAX_CALLS));
                    waiting = new ArrayList<>(waiting.subList(MAX_CALLS, waiting.size()));
                }
            }
            ScriptParameters parameters = limiter.parameters();
            batch.removeIf(call -> isDecided(call, parameters));
            if (!batch.isEmpty()) {
                send(batch, parameters);
                return;
            }
        }
    }

    /** Given up or decided without the script while the call waited. */
    private boolean isDecided(PermitRequest call, ScriptParameters parameters) {
        if (call.isDone()) {
            return true;
        }
        if (parameters.isConstant()) {
            // The limit was closed, or made unlimited: the script counts by none of the two.
            call.complete(ScriptReply.constant(parameters));
            return true;
        }
        if (parameters.isNever(call.permits())) {
            // The limit has become smaller.
            limiter.never(call, key, parameters);
            return true;
        }
        ScriptReply leased = limiter.leases().takeLate(key, parameters, call.permits());
        if (leased == null) {
            return false;
        }
        if (!call.complete(leased)) {
            // Given up in between; nobody else could give the permits back.
            limiter.giveBack(key, call.permits(), leased);
        }
        return true;
    }

    private void send(List<PermitRequest> batch, ScriptParameters parameters) {
        long sentAt = limiter.context().ticker().nanos();
        Leases.Request lease = limiter.leases().request(key, parameters, sentAt);
        List<PermitRequest> calls = lease == null ? batch : lease.around(batch);
        LimitScripts scripts = limiter.scripts();
        scripts.eval(key, parameters, scripts.arguments("take", parameters, calls))
                .whenComplete((reply, failure) -> {
                    if (failure != null) {
                        fail(batch, failure);
                        return;
                    }
                    ScriptReply[] all;
                    try {
                        all = parameters.read(reply, calls);
                    } catch (RuntimeException ex) {
                        // Not a reply of the script: callers must not wait for ever, and the next call must be sent.
                        fail(batch, ex);
                        return;
                    }
                    decided(batch, all, calls.indexOf(batch.get(0)), sentAt, lease);
                });
    }

    /**
     * All calls are completed before the next script call is made, so that those who ask again at once are part of it.
     *
     * @param first where the decisions about the batch begin
     */
    private void decided(
            List<PermitRequest> batch, ScriptReply[] all, int first, long sentAt, Leases.@Nullable Request lease) {
        boolean taken = false;
        for (int i = 0; i < batch.size(); i++) {
            ScriptReply reply = all[first + i];
            if (reply.hasRetry()) {
                boolean last = i == batch.size() - 1 || !batch.get(i).asksAs(batch.get(i + 1));
                if (last) {
                    long hold = lease == null ? 0 : lease.hold();
                    limiter.denials().add(key, batch.get(i), reply, sentAt, hold);
                }
                taken = false;
            } else if (reply.admitted() && !taken) {
                limiter.taken(key);
                taken = true;
            }
        }
        if (lease != null) {
            lease.answered(all[all.length - 1]);
        }
        for (int i = 0; i < batch.size(); i++) {
            ScriptReply reply = all[first + i];
            if (!batch.get(i).complete(reply) && reply.admitted()) {
                // The caller has given up and was decided otherwise; nobody else could give the permits back.
                limiter.giveBack(key, batch.get(i).permits(), reply);
            }
        }
        next();
    }

    /** The calls behind an unanswered one would wait in vain too. */
    private void fail(List<PermitRequest> batch, Throwable failure) {
        List<PermitRequest> behind = List.of();
        if (Replies.cause(failure) instanceof TimeoutException || Replies.isNotSent(failure)) {
            synchronized (this) {
                behind = waiting;
                waiting = new ArrayList<>(4);
            }
        }
        next();
        batch.forEach(call -> call.completeExceptionally(failure));
        behind.forEach(call -> call.completeExceptionally(failure));
    }
}
