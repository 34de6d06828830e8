package io.ratelimited.redis.internals.limiter;

import io.ratelimited.core.Decision.Source;
import io.ratelimited.core.Ticker;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/**
 * One key on this node: the calls that wait for Redis, and the answers that decide about later ones. All of it is guarded by
 * this.
 *
 * <ol>
 *   <li>K1 One script call is pending at the most, unless the server is too far for a call to wait for the reply to another.
 *       The calls that come meanwhile are decided together by the next one, in their order, those of other numbers by one of
 *       their own. No call is held back to fill a batch.
 *   <li>K2 A decision is remembered only if its command was sent after this state was made, and not before the last that took
 *       permits or gave them back: otherwise there are other permits than it says.
 *   <li>K3 Nothing that is remembered outlasts a decision that contradicts it: permits that are taken or come back end it.
 *   <li>K4 Nothing is sent and no caller is answered while this is locked.
 *   <li>K5 No decision needs this memory: a state that is dropped costs a command, or the rest of a lease.
 * </ol>
 */
final class KeyState {

    /** Calls decided by one script call at the most, so that it stays short. */
    private static final int MAX_CALLS = 256;
    /** Different questions about one key whose answers are remembered. */
    private static final int MOST_PEEKS = 4;

    private static final long LONGEST_PEEK = TimeUnit.SECONDS.toNanos(1);

    private final String name;
    /** Empty and unchangeable until a call joins: most states outlive their calls. */
    private List<PermitRequest> waiting = List.of();
    /** Script calls that are pending, or whose calls are being answered. */
    private int busy;
    /** Out of {@link Keys}, and of no more use. */
    private boolean ended;
    /** K2: decisions of commands that were sent before this are not remembered. */
    private long since;
    /** Written under the lock. Read without it, since callers of an exhausted key come by the million. */
    private volatile @Nullable Denial denial;
    /** The newest first. Like {@link #denial}; unchangeable. */
    private volatile List<Peek> peeks = List.of();
    /** Null until somebody asks under a limit that tolerates leases. */
    private @Nullable Lease lease;
    /** A wish for permits in advance is pending. */
    private boolean wishing;

    private KeyState(String name, long now) {
        this.name = name;
        this.since = now;
    }

    /** The key's name in Redis, whatever the limit becomes. */
    String name() {
        return name;
    }

    /** The outcome for a call that joins. */
    enum Joined {
        /** The state has ended: the key has to be looked up again. */
        NOT,
        /** Somebody else sends it. */
        WAITS,
        /** The thread that has added it sends the calls that wait: {@link #next}. */
        SENDS
    }

    /** @param mayWait whether the call has the time to wait for the reply to another one */
    synchronized Joined join(PermitRequest call, boolean mayWait) {
        if (ended) {
            return Joined.NOT;
        }
        if (waiting.isEmpty()) {
            waiting = new ArrayList<>(4);
        }
        waiting.add(call);
        if (busy > 0 && mayWait) {
            return Joined.WAITS;
        }
        busy++;
        return Joined.SENDS;
    }

    /** The calls of the next command, for one who sends; null if there are none, and it sends no more. */
    synchronized @Nullable List<PermitRequest> next() {
        if (waiting.isEmpty()) {
            busy--;
            return null;
        }
        List<PermitRequest> all = waiting;
        int calls = 1;
        while (calls < Math.min(MAX_CALLS, all.size()) && all.get(calls).hasNumbersOf(all.get(0))) {
            calls++;
        }
        if (calls == all.size()) {
            waiting = List.of();
            return all;
        }
        waiting = new ArrayList<>(all.subList(calls, all.size()));
        return new ArrayList<>(all.subList(0, calls));
    }

    /** The calls behind an unanswered one would wait in vain too. */
    synchronized List<PermitRequest> giveUp() {
        List<PermitRequest> behind = waiting;
        waiting = List.of();
        return behind;
    }

    /**
     * Remembers the decisions of a script about calls.
     *
     * @param replies about them, which begin at {@code first}; the last is about the wish, if there is one
     */
    synchronized void decided(
            List<PermitRequest> batch, ScriptReply[] replies, int first, long sentAt, Lease.@Nullable Wish wish) {
        int refused = -1;
        for (int i = 0; i < batch.size(); i++) {
            ScriptReply reply = replies[first + i];
            if (reply.hasRetry()) {
                refused = i;
            } else if (reply.admitted()) {
                refused = -1;
                changed(sentAt);
            }
        }
        if (refused >= 0) {
            refused(batch.get(refused), replies[first + refused], sentAt, Lease.Wish.hold(wish));
        }
        settled(wish);
        if (wish != null && lease != null) {
            lease.answered(wish, replies[replies.length - 1]);
        }
    }

    /** Remembers a refusal with a retry-after. */
    synchronized void refused(PermitRequest call, ScriptReply reply, long sentAt, long hold) {
        if (sentAt - since >= 0) {
            denial = Denial.of(call, reply, sentAt, hold);
        }
    }

    /** Remembers that a call would have been admitted, which took nothing because another of its limits has refused it. */
    synchronized void wouldAdmit(PermitRequest call, ScriptReply reply, long sentAt) {
        if (sentAt - since >= 0 && call.complete(reply)) {
            remember(new Peek(reply.parameters(), call, sentAt, sentAt + LONGEST_PEEK));
        }
    }

    /** Returns whether an answer that is remembered says that a call would be admitted. */
    boolean admits(ScriptParameters current, PermitRequest call, long now) {
        for (Peek peek : peeks) {
            if (peek.serves(current, call, now)
                    && peek.call().isDone()
                    && peek.call().join().admitted()) {
                return true;
            }
        }
        return false;
    }

    /** The last refusal that is remembered, which may be over. */
    @Nullable
    Denial denial() {
        return denial;
    }

    /** Notes that a command that was sent at a time has taken permits, or given them back. */
    synchronized void changed(long sentAt) {
        denial = null;
        peeks = List.of();
        since = sentAt - since > 0 ? sentAt : since;
    }

    /** Counts a call, and hands out permits that this node holds; null when Redis has to be asked. */
    synchronized @Nullable ScriptReply takeLeased(ScriptParameters current, long permits, long now) {
        if (lease == null) {
            lease = new Lease(now);
        }
        lease.count(permits, now);
        return lease.handOut(current, permits, now);
    }

    /** Hands out permits that came to this node while a counted call waited for its turn. */
    synchronized @Nullable ScriptReply takeLate(ScriptParameters current, long permits, Ticker ticker) {
        return lease == null ? null : lease.handOut(current, permits, ticker.nanos());
    }

    synchronized void returnLeased(long permits, ScriptReply taken) {
        if (lease != null) {
            lease.takeBack(permits, taken);
        }
    }

    /** See {@link Lease#wish}. None while another one is pending, of which the permits would be lost. */
    synchronized Lease.@Nullable Wish wish(ScriptParameters current, long length, int sharers, long now) {
        if (lease == null || length == 0 || wishing) {
            return null;
        }
        Lease.Wish wish = lease.wish(current, length, sharers, now);
        wishing = wish != null;
        return wish;
    }

    /** Notes that the command of a wish has been decided, or has failed. */
    synchronized void settled(Lease.@Nullable Wish wish) {
        wishing &= wish == null;
    }

    /**
     * A question to Redis.
     *
     * @param call done when Redis has answered
     * @param until the time at which it is to be forgotten
     */
    record Peek(ScriptParameters parameters, PermitRequest call, long sentAt, long until) {

        /** Returns whether the answer serves another call: one that asks for less than an admitted call is admitted, too. */
        private boolean serves(ScriptParameters current, PermitRequest other, long now) {
            if (parameters != current
                    || call.maxWaitMicros() != other.maxWaitMicros()
                    || call.permits() < other.permits()
                    || now - until >= 0
                    || call.isCompletedExceptionally()) {
                return false;
            }
            if (!call.isDone()) {
                return call.permits() == other.permits();
            }
            ScriptReply reply = call.join();
            return reply.admitted()
                    || (call.permits() == other.permits() && (!reply.hasRetry() || now - sentAt < reply.retryNanos()));
        }

        /** The answer at a later time. */
        ScriptReply at(long now, ScriptReply reply) {
            long elapsed = now - sentAt;
            return new ScriptReply(
                    reply.hasRetry() ? ~Math.max(1, ~reply.outcome() - elapsed) : reply.outcome(),
                    reply.remaining(),
                    Math.max(0, reply.reset() - elapsed),
                    reply.mark(),
                    reply.parameters(),
                    Source.DENY_CACHE,
                    reply.decidedAt(),
                    reply.block() == null ? null : reply.block().after(elapsed));
        }
    }

    /**
     * Returns the question whose answer serves a call. If there is none, it is the call's own, and its caller asks it.
     *
     * @param knownNanos time for which the answer serves equal calls, one second at the most, also those that come before it
     */
    synchronized Peek peek(ScriptParameters current, PermitRequest call, long knownNanos, long now) {
        for (Peek peek : peeks) {
            if (peek.serves(current, call, now)) {
                return peek;
            }
        }
        Peek mine = new Peek(current, call, now, now + Math.min(LONGEST_PEEK, knownNanos));
        remember(mine);
        return mine;
    }

    private void remember(Peek mine) {
        List<Peek> all = new ArrayList<>(MOST_PEEKS);
        all.add(mine);
        all.addAll(peeks.subList(0, Math.min(peeks.size(), MOST_PEEKS - 1)));
        peeks = all;
    }

    private synchronized boolean end() {
        ended |= busy == 0 && denial == null && lease == null && peeks.isEmpty();
        return ended;
    }

    /**
     * The states of keys on this node, in two generations: the young one becomes the old one after a second, or when it is
     * full, and states that nobody has looked for meanwhile are dropped with the old one. A timer does so when no caller comes
     * any more, so that a state outlives the last call of its key by three seconds at most. Thread-safe.
     */
    static final class Keys {

        /** No answer is remembered for longer. */
        static final long GENERATION = TimeUnit.SECONDS.toNanos(1);

        private static final long GENERATION_MILLIS = TimeUnit.NANOSECONDS.toMillis(GENERATION);

        /** Runs a task once, after a time; one that belongs to something closed may never run it. */
        interface Timer {

            void later(long millis, Runnable task);
        }

        private final Ticker ticker;
        private final Timer timer;
        private final long most;
        private volatile ConcurrentHashMap<String, KeyState> young = new ConcurrentHashMap<>();
        private volatile ConcurrentHashMap<String, KeyState> old = new ConcurrentHashMap<>();
        private volatile long begunAt;
        /** The timer is going to look: never while there are no states, so that nothing holds an unused limiter. */
        private final AtomicBoolean watched = new AtomicBoolean();

        /** @param maximumKeys that are remembered at the most, beside those with calls on their way */
        Keys(Ticker ticker, Timer timer, long maximumKeys) {
            this.ticker = ticker;
            this.timer = timer;
            this.most = Math.max(1, maximumKeys / 2);
            this.begunAt = ticker.nanos();
        }

        /** The key's state; null if there is none. */
        @Nullable
        KeyState find(String name) {
            KeyState found = young.get(name);
            if (found != null) {
                return found;
            }
            found = old.get(name);
            return found == null ? null : keep(found, ticker.nanos());
        }

        /** The key's state, which is made if there is none. */
        KeyState of(String name) {
            KeyState found = find(name);
            if (found != null) {
                return found;
            }
            long now = ticker.nanos();
            return keep(new KeyState(name, now), now);
        }

        private KeyState keep(KeyState state, long now) {
            ConcurrentHashMap<String, KeyState> all = young;
            KeyState present = all.putIfAbsent(state.name, state);
            if (now - begunAt >= GENERATION || all.mappingCount() >= most) {
                grow(all);
            }
            watch();
            return present == null ? state : present;
        }

        /** A generation is a map, and not its entries. */
        @SuppressWarnings("ReferenceEquality")
        private synchronized void grow(ConcurrentHashMap<String, KeyState> seen) {
            if (young == seen) {
                // In this order: a thread that finds the new generation without a key finds the key in the old one.
                old = seen;
                young = new ConcurrentHashMap<>();
                begunAt = ticker.nanos();
            }
        }

        private void watch() {
            if (!watched.get() && watched.compareAndSet(false, true)) {
                timer.later(GENERATION_MILLIS, this::look);
            }
        }

        private void look() {
            if (ticker.nanos() - begunAt >= GENERATION) {
                grow(young);
            }
            watched.set(false);
            if (!young.isEmpty() || !old.isEmpty()) {
                watch();
            }
        }

        /** {@link KeyState#changed}, if the key has a state. */
        void changed(String name, long sentAt) {
            KeyState state = find(name);
            if (state != null) {
                state.changed(sentAt);
                release(state);
            }
        }

        /** Drops a state that remembers nothing and that nobody uses. */
        void release(KeyState state) {
            if (state.end()) {
                young.remove(state.name, state);
                old.remove(state.name, state);
            }
        }

        long size() {
            ConcurrentHashMap<String, KeyState> all = young;
            return all.mappingCount()
                    + old.keySet().stream()
                            .filter(name -> !all.containsKey(name))
                            .count();
        }
    }
}
