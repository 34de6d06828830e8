package io.ratelimited.redis;

import io.ratelimited.core.Ticker;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;

/**
 * The calls of one key on this node: at most one script call is under way, and the calls that arrive meanwhile are
 * decided together by the next one, in order. Exact, and nobody waits for company. A line exists while there are calls.
 */
final class Line {

    /** Calls decided by one script call at the most, so that it stays short. */
    private static final int MOST = 256;

    private final Inquiries inquiries;
    private final ConcurrentHashMap<String, Line> lines;
    private final String key;
    /** Guarded by this. */
    private List<Call> waiting = new ArrayList<>(4);
    /** A script call is under way. Guarded by this. */
    private boolean busy;
    /** Out of {@link #lines}, and of no more use. Guarded by this. */
    private boolean ended;

    Line(Inquiries inquiries, ConcurrentHashMap<String, Line> lines, String key) {
        this.inquiries = inquiries;
        this.lines = lines;
        this.key = key;
    }

    /** Joins the line; false when it has ended: look the key up again. */
    boolean add(Call call) {
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

    /** Sends what waits, or ends the line. */
    private void next() {
        while (true) {
            List<Call> batch;
            synchronized (this) {
                if (waiting.isEmpty()) {
                    ended = true;
                    lines.remove(key, this);
                    return;
                }
                if (waiting.size() <= MOST) {
                    batch = waiting;
                    waiting = new ArrayList<>(4);
                } else {
                    batch = new ArrayList<>(waiting.subList(0, MOST));
                    waiting = new ArrayList<>(waiting.subList(MOST, waiting.size()));
                }
            }
            batch.removeIf(Call::isDone);
            RedisTerms terms = inquiries.terms();
            batch.removeIf(call -> {
                // The limit may have become smaller.
                boolean never = terms.isNever(call.permits());
                if (never) {
                    inquiries.never(call, key, terms);
                }
                return never;
            });
            batch.removeIf(call -> {
                Verdict leased = inquiries.leases().takeLate(key, terms, call.permits());
                return leased != null && call.complete(leased);
            });
            if (!batch.isEmpty()) {
                send(batch, terms);
                return;
            }
        }
    }

    private void send(List<Call> batch, RedisTerms terms) {
        Ticker ticker = inquiries.backend().ticker();
        long sentAt = ticker.nanos();
        Leases.Request lease = inquiries.leases().request(key, terms, sentAt);
        List<Call> calls = lease == null ? batch : lease.around(batch);
        inquiries
                .eval(terms.script(), key, inquiries.arguments("take", terms, calls))
                .whenComplete((reply, failure) -> {
                    if (failure != null) {
                        fail(batch, failure);
                        return;
                    }
                    Verdict[] all;
                    try {
                        all = Verdict.all(reply, calls, terms);
                    } catch (RuntimeException ex) {
                        // Not a reply of the script: whoever waits must hear of it, and the line must go on.
                        fail(batch, ex);
                        return;
                    }
                    decided(batch, all, calls.indexOf(batch.get(0)), sentAt, lease);
                });
    }

    /**
     * Everybody is told before the next script call is made, so that those who ask again at once are part of it.
     *
     * @param first where the verdicts on the batch begin
     */
    private void decided(List<Call> batch, Verdict[] all, int first, long sentAt, Leases.@Nullable Request lease) {
        boolean taken = false;
        for (int i = 0; i < batch.size(); i++) {
            Verdict verdict = all[first + i];
            if (verdict.hasRetry()) {
                boolean last = i == batch.size() - 1 || !batch.get(i).asksAs(batch.get(i + 1));
                if (last) {
                    long hold = lease == null ? 0 : lease.hold();
                    inquiries.denials().add(key, batch.get(i), verdict, sentAt, hold);
                }
                taken = false;
            } else if (verdict.admitted() && !taken) {
                // What was refused before has to wait longer now.
                inquiries.denials().forget(key);
                taken = true;
            }
        }
        if (lease != null) {
            lease.answered(all[all.length - 1]);
        }
        for (int i = 0; i < batch.size(); i++) {
            Verdict verdict = all[first + i];
            if (!batch.get(i).complete(verdict) && verdict.admitted()) {
                // Whoever asked has given up and was decided otherwise; nobody else could give it back.
                inquiries.giveBack(key, batch.get(i).permits(), verdict);
            }
        }
        next();
    }

    /** Whoever waits behind an unanswered call would wait in vain too. */
    private void fail(List<Call> batch, Throwable failure) {
        List<Call> behind = List.of();
        if (failure instanceof TimeoutException) {
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
