package io.ratelimited.core;

import io.ratelimited.core.memory.CellRateLimiter;
import io.ratelimited.core.memory.MemoryLimiter;
import io.ratelimited.core.memory.concurrency.ConcurrencyLimiter;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Decides in the memory of this process. Checks the arguments and passes them to a {@link CellRateLimiter} for a limit that
 * counts over time, or to a {@link ConcurrencyLimiter} for calls in flight. Thread-safe; no lock is held while waiting, and
 * {@link #tryAcquire} on a known key allocates nothing.
 */
public final class InMemoryRateLimiter implements RateLimiter {

    /** Keys remembered by a limit for which no other number is set. */
    public static final long DEFAULT_MAXIMUM_KEYS = 1_000_000;

    private final MemoryLimiter limiter;
    private final boolean countsCallsInFlight;

    /** A limiter on the system's clock that remembers up to {@value #DEFAULT_MAXIMUM_KEYS} keys. */
    public InMemoryRateLimiter(Limit limit) {
        this(limit, Ticker.system(), DEFAULT_MAXIMUM_KEYS);
    }

    /**
     * @param maximumKeys the largest number of keys to remember, 1 or more; an evicted key is folded into shared
     *     state, so that a flood of keys gives nobody more than the limit
     * @throws IllegalArgumentException when it is less
     */
    public InMemoryRateLimiter(Limit limit, Ticker ticker, long maximumKeys) {
        if (maximumKeys < 1) {
            throw new IllegalArgumentException("maximumKeys must be at least 1: " + maximumKeys);
        }
        this.countsCallsInFlight = limit.algorithm().countsCallsInFlight();
        this.limiter = countsCallsInFlight
                ? new ConcurrencyLimiter(limit, ticker)
                : new CellRateLimiter(limit, ticker, maximumKeys);
    }

    @Override
    public Limit limit() {
        return limiter.limit();
    }

    @Override
    public boolean tryAcquire(@Nullable Object key, long permits) {
        return limiter.tryAcquire(canonical(key), Permits.requireAsked(permits));
    }

    @Override
    public Reservation reserve(@Nullable Object key, long permits, long maxWaitNanos) {
        return limiter.reserve(canonical(key), Permits.requireAsked(permits), maxWaitNanos);
    }

    /** Whether the limit counts calls in flight, which no change of it alters. */
    boolean countsCallsInFlight() {
        return countsCallsInFlight;
    }

    /** As {@link MemoryLimiter#ask}. */
    Reservation ask(@Nullable Object key, long permits, long maxWaitNanos, @Nullable Reservation earlier) {
        return limiter.ask(canonical(key), Permits.requireAsked(permits), maxWaitNanos, earlier);
    }

    /** As {@link MemoryLimiter#reserveAsked}. */
    Reservation reserveAsked(Reservation asked, long maxWaitNanos) {
        return limiter.reserveAsked(asked, maxWaitNanos);
    }

    @Override
    public Decision peek(@Nullable Object key, long permits, long maxWaitNanos) {
        return limiter.peek(canonical(key), Permits.requireAsked(permits), maxWaitNanos);
    }

    @Override
    public void reset(@Nullable Object key) {
        limiter.reset(canonical(key));
    }

    @Override
    public void update(Limit limit) {
        limiter.update(limit);
    }

    @Override
    public void close() {
        limiter.close();
    }

    @Override
    public long keys() {
        return limiter.keys();
    }

    @Override
    public int waiting() {
        return limiter.waiting();
    }

    @Override
    public Stream<Object> knownKeys() {
        return limiter.knownKeys().map(text -> CanonicalKey.ofText(text.toString()));
    }

    @Override
    public Decision.Source source() {
        return Decision.Source.MEMORY;
    }

    /** As {@link AllOf#reserve(Claim[])}, for claims on limits in memory. */
    static Reservation reserveAll(Claim[] claims) {
        Reservation[] members = new Reservation[claims.length];
        @Nullable Decision[] refusals = askAll(claims, members);
        if (refusals != null) {
            return JointReservation.refused(refusals);
        }
        try {
            int refused = reserveAsked(claims, members, false, 0);
            if (refused < 0) {
                refused = reserveAsked(claims, members, true, longestWait(claims, members));
            }
            if (refused < 0) {
                return new JointReservation(members);
            }
            JointReservation.undo(members);
            return refusedMeanwhile(claims, refused, members[refused].decision());
        } catch (RuntimeException | Error ex) {
            JointReservation.undo(members);
            throw ex;
        }
    }

    /**
     * Asks every limit.
     *
     * @param members receives what {@link #reserveAsked} needs
     * @return null when all limits would admit the call
     */
    private static @Nullable Decision @Nullable [] askAll(Claim[] claims, Reservation[] members) {
        @Nullable Decision[] refusals = null;
        for (int i = 0; i < claims.length; i++) {
            Claim claim = claims[i];
            InMemoryRateLimiter limiter = (InMemoryRateLimiter) claim.limiter();
            long together = AllOf.permitsTogether(claims, i);
            members[i] =
                    limiter.ask(claim.key(), claim.permits(), claim.maxWaitNanos(), i == 0 ? null : members[i - 1]);
            Decision decision = together > claim.permits()
                    ? limiter.peek(claim.key(), together, claim.maxWaitNanos())
                    : members[i].isRefused() ? members[i].decision() : null;
            if (decision != null && !decision.admitted()) {
                refusals = refusals == null ? new Decision[claims.length] : refusals;
                refusals[i] = decision;
            }
        }
        return refusals;
    }

    /** Another caller has made one claim impossible, and perhaps others too. */
    private static Reservation refusedMeanwhile(Claim[] claims, int refused, Decision decision) {
        @Nullable Decision[] refusals = askAll(claims, new Reservation[claims.length]);
        if (refusals == null) {
            refusals = new Decision[claims.length];
        }
        if (refusals[refused] == null) {
            refusals[refused] = decision;
        }
        return JointReservation.refused(refusals);
    }

    /**
     * Reserves what has been asked for.
     *
     * @param places whether to reserve the places for calls in flight, or all other claims
     * @return the number of the claim that another caller has made impossible meanwhile; -1 for none
     */
    private static int reserveAsked(Claim[] claims, Reservation[] members, boolean places, long othersWaitNanos) {
        for (int i = 0; i < claims.length; i++) {
            Claim claim = claims[i];
            InMemoryRateLimiter limiter = (InMemoryRateLimiter) claim.limiter();
            if (limiter.countsCallsInFlight() != places) {
                continue;
            }
            Reservation later =
                    othersWaitNanos > 0 ? AllOf.placeLater(claim, othersWaitNanos, members[i].decision()) : null;
            members[i] = later != null ? later : limiter.reserveAsked(members[i], claim.maxWaitNanos());
            if (members[i].isRefused()) {
                return i;
            }
        }
        return -1;
    }

    private static long longestWait(Claim[] claims, Reservation[] members) {
        long longest = 0;
        for (int i = 0; i < claims.length; i++) {
            if (!((InMemoryRateLimiter) claims[i].limiter()).countsCallsInFlight()) {
                longest = Math.max(longest, members[i].waitNanos());
            }
        }
        return longest;
    }

    /** Caches see short strings only, whatever a caller makes keys of: their hash codes are cheap, and they can be compared. */
    private static @Nullable String canonical(@Nullable Object key) {
        return key == null ? null : CanonicalKey.text(key);
    }
}
