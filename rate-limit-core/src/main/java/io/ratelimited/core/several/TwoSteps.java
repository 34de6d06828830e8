package io.ratelimited.core.several;

import io.ratelimited.core.Decision;
import io.ratelimited.core.End;
import io.ratelimited.core.RateLimiter.Callbacks;
import io.ratelimited.core.Reservation;
import java.util.Arrays;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/**
 * A call that takes places after a wait: a transaction over the limits for which it waits, then one over the places that are
 * left, as of a call that need not wait. So no sleeper holds places, and a call that waits for a place holds only those before it
 * in the {@linkplain AllOf#places order of all calls}. They are taken once, however often the caller waits. Thread-safe.
 */
final class TwoSteps extends JointReservation {

    /** {@link Later} where the second transaction decides. */
    private final Reservation[] all;
    /** What the second transaction has decided. Guarded by this. */
    private @Nullable Reservation second;
    /** Whether the call has ended: what is decided afterwards is given back. Guarded by this. */
    private boolean over;

    private TwoSteps(Reservation[] all) {
        super(Arrays.stream(all).filter(member -> !(member instanceof Later)).toArray(Reservation[]::new));
        this.all = all;
    }

    /** The reservation of a call that has taken its permits. */
    static Reservation of(Claim[] claims, Reservation[] members) {
        boolean later = false;
        for (int i = 0; i < members.length; i++) {
            later |= members[i] instanceof Later;
            if (i > 0 && members[i].waitNanos() > 0) {
                sharePosition(claims, members, i);
            }
        }
        return later ? new TwoSteps(members) : new JointReservation(members);
    }

    /**
     * Lets a member that waits in the same queue as one before it go with that, or the other way round, whichever waits longer: with
     * a position for each of them, the call could displace itself.
     */
    private static void sharePosition(Claim[] claims, Reservation[] members, int last) {
        for (int i = 0; i < last; i++) {
            if (members[i].waitNanos() > 0
                    && claims[i].limiter().budgets() == claims[last].limiter().budgets()) {
                int shorter = members[i].waitNanos() < members[last].waitNanos() ? i : last;
                members[shorter] = new WithAnother(members[shorter]);
            }
        }
    }

    private Claim[] claims() {
        return Arrays.stream(all)
                .filter(Later.class::isInstance)
                .map(later -> ((Later) later).rest())
                .toArray(Claim[]::new);
    }

    private synchronized @Nullable Reservation second() {
        return second;
    }

    /**
     * Keeps what the second transaction has decided, and gives it back if the call has ended, or has it from another wait.
     *
     * @return what the call has; null if it has ended
     */
    private @Nullable Reservation kept(Reservation decided) {
        Reservation kept;
        synchronized (this) {
            if (second == null) {
                second = decided;
            }
            kept = over ? null : second;
        }
        if (!decided.equals(kept)) {
            decided.cancel();
        }
        return kept;
    }

    /** Ends the call, and returns what the second transaction has taken. */
    private synchronized @Nullable Reservation over() {
        over = true;
        return second;
    }

    @Override
    boolean awaitNext() throws InterruptedException {
        Reservation places = second();
        places = places == null ? kept(AllOf.reserve(claims())) : places;
        boolean admitted = places != null && places.await();
        if (admitted) {
            super.waited();
        }
        return admitted;
    }

    /** The places of the second step may still reject the call. */
    @Override
    void waited() {}

    @Override
    void goOn(CompletableFuture<Boolean> answer) {
        Reservation known = second();
        if (known != null) {
            goOn(known, answer);
            return;
        }
        AllOf.reserveAsync(claims(), Callbacks.MAY_BLOCK).whenComplete((decided, failure) -> {
            Reservation places = failure == null ? kept(decided) : null;
            if (places == null) {
                fail(answer, failure);
            } else {
                goOn(places, answer);
            }
        });
    }

    private void goOn(Reservation places, CompletableFuture<Boolean> answer) {
        try {
            CompletableFuture<Boolean> wait = places.awaitAsync();
            follow(wait, () -> wait.cancel(false), answer, () -> super.goOn(answer));
        } catch (RuntimeException | Error ex) {
            fail(answer, ex);
        }
    }

    @Override
    public void cancel() {
        Reservation places = over();
        try {
            if (places != null) {
                places.cancel();
            }
        } finally {
            super.cancel();
        }
    }

    @Override
    public void release(End end) {
        Reservation places = over();
        try {
            if (places != null) {
                places.release(end);
            }
        } finally {
            super.release(end);
        }
    }

    @Override
    public void awaitCaller() {
        super.awaitCaller();
        Reservation places = second();
        if (places != null) {
            places.awaitCaller();
        }
    }

    @Override
    public void callerCame(long nanos) {
        super.callerCame(nanos);
        Reservation places = second();
        if (places != null) {
            places.callerCame(nanos);
        }
    }

    @Override
    Reservation member(int claim) {
        Reservation member = all[claim];
        Reservation places = member instanceof Later ? second() : null;
        return places == null ? member : AllOf.member(places, laterBefore(claim));
    }

    private int laterBefore(int claim) {
        return (int)
                Arrays.stream(all, 0, claim).filter(Later.class::isInstance).count();
    }

    @Override
    @Nullable
    Decision[] refusals() {
        Reservation places = second();
        @Nullable Decision[] own = places == null ? super.refusals() : AllOf.refusals(places);
        @Nullable Decision[] refusals = new Decision[all.length];
        int next = 0;
        for (int i = 0; i < all.length; i++) {
            if (all[i] instanceof Later == (places != null)) {
                refusals[i] = own[next++];
            }
        }
        return refusals;
    }

    @Override
    public boolean isRefused() {
        Reservation places = second();
        return places == null ? super.isRefused() : places.isRefused();
    }

    @Override
    public boolean mayWait() {
        return !isRefused();
    }

    /** {@inheritDoc} Of a call that was not rejected, it is that of the limit for which it waits first. */
    @Override
    public Decision decision() {
        return longest(isRefused() ? refusals() : super.refusals());
    }
}
