package io.ratelimited.core.several;

import io.ratelimited.core.Decision;
import io.ratelimited.core.End;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.internals.Permits;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The reservation of a call with several claims of one limit and key. They are decided as one claim for all of their permits: it
 * needs one queue position and one command, its rejection has the time for all, and no other call comes between. Each of the
 * claims has its own cost, and is a {@link Use} of the permits. Thread-safe.
 */
final class JoinedReservation extends JointReservation {

    private static final Comparator<Limit> SMALLER = Comparator.comparingLong(Limit::capacity)
            .thenComparingDouble(limit ->
                    (double) limit.rate().permits() / limit.rate().period().toNanos());

    /** The reservation of the joined claims. */
    private final Reservation joined;
    /** By claim: the number of its joined claim. */
    private final int[] numbers;
    /** By claim: its part of joined permits; null if its reservation is not shared, or has no cost. */
    private final @Nullable Use[] uses;

    private JoinedReservation(Claim[] claims, int[] numbers, Reservation joined) {
        super(joined);
        this.joined = joined;
        this.numbers = numbers;
        this.uses = new Use[claims.length];
        for (int number = 0; number < claims.length; number++) {
            int[] same = claimsOf(number);
            if (same.length > 1
                    && !claims[same[0]].limiter().limit().algorithm().countsCallsInFlight()) {
                Shared shared = new Shared(memberOfJoined(number), same.length);
                for (int claim : same) {
                    uses[claim] = new Use(shared, claims[claim].permits());
                }
            }
        }
    }

    private int[] claimsOf(int number) {
        return IntStream.range(0, numbers.length)
                .filter(claim -> numbers[claim] == number)
                .toArray();
    }

    /** Returns the claims with those of the same limit and key as one. */
    static Claim[] join(Claim[] claims) {
        List<Claim> joined = new ArrayList<>(claims.length);
        for (Claim claim : claims) {
            int number = number(joined, claim);
            if (number == joined.size()) {
                joined.add(claim);
            } else {
                joined.set(number, both(joined.get(number), claim));
            }
        }
        return joined.toArray(Claim[]::new);
    }

    private static int number(List<Claim> joined, Claim claim) {
        int number = 0;
        while (number < joined.size() && !isSameBudget(joined.get(number), claim)) {
            number++;
        }
        return number;
    }

    /** The claim that is admitted if both can proceed. Of a caller's own numbers the smaller ones count, in either order. */
    private static Claim both(Claim one, Claim other) {
        return new StatedClaim(
                Stream.of(one.limiter(), other.limiter())
                        .min(Comparator.comparing(RateLimiter::limit, SMALLER))
                        .get(),
                one.key(),
                sum(one.permits(), other.permits()),
                Math.min(one.maxWaitNanos(), other.maxWaitNanos()),
                one.rank(),
                Math.min(one.patienceNanos(), other.patienceNanos()),
                one.isExemptFromBlocks() && other.isExemptFromBlocks(),
                one.isUndecided() || other.isUndecided());
    }

    private static long sum(long one, long other) {
        long sum = one + other;
        return sum < one ? Long.MAX_VALUE : sum;
    }

    /**
     * Returns the reservation of the claims.
     *
     * @param joined what {@link #join} has made of them
     * @param decided the reservation of these
     */
    static Reservation of(Claim[] claims, Claim[] joined, Reservation decided) {
        List<Claim> list = Arrays.asList(joined);
        int[] numbers =
                Arrays.stream(claims).mapToInt(claim -> number(list, claim)).toArray();
        return decided.isRefused()
                ? new JointReservation(refusals(decided, numbers))
                : new JoinedReservation(claims, numbers, decided);
    }

    private static @Nullable Decision[] refusals(Reservation joined, int[] numbers) {
        @Nullable
        Decision[] own = joined instanceof JointReservation all ? all.refusals() : new Decision[] {joined.decision()};
        @Nullable Decision[] refusals = new Decision[numbers.length];
        for (int claim = 0; claim < numbers.length; claim++) {
            refusals[claim] = own[numbers[claim]];
        }
        return refusals;
    }

    @Override
    @Nullable
    Decision[] refusals() {
        return refusals(joined, numbers);
    }

    @Override
    public boolean isRefused() {
        return joined.isRefused();
    }

    @Override
    Reservation member(int claim) {
        Use use = uses[claim];
        return use == null ? memberOfJoined(numbers[claim]) : use;
    }

    private Reservation memberOfJoined(int number) {
        return joined instanceof JointReservation all ? all.member(number) : joined;
    }

    @Override
    public void settle(long permits, boolean mayBlock) {
        settle(
                IntStream.range(0, numbers.length).mapToObj(this::member).toArray(Reservation[]::new),
                permits,
                mayBlock);
    }

    @Override
    public void cancel() {
        endOthers(Use::cancel);
        super.cancel();
    }

    @Override
    public void release(End end) {
        endOthers(Use::release);
        super.release(end);
    }

    /** Where the end of one use is known, the others end now: their permits are charged together. */
    private void endOthers(Consumer<Use> end) {
        for (Use use : uses) {
            if (use != null && use.shared.isEnding()) {
                end.accept(use);
            }
        }
    }

    private enum Ending {
        SETTLED,
        CANCELLED,
        RELEASED
    }

    /** Permits of several uses, which are charged once: when all of these have ended. */
    private static final class Shared {

        private final Reservation own;
        /** How uses have ended. Guarded by this, as the fields below. */
        private final Set<Ending> endings = EnumSet.noneOf(Ending.class);

        private int open;
        private long cost;
        private boolean mayBlock;

        private Shared(Reservation own, int uses) {
            this.own = own;
            this.open = uses;
        }

        private synchronized boolean isEnding() {
            return !endings.isEmpty();
        }

        /** Notes the end of a use. Returns what is left to do: nothing, unless it is the last. */
        private synchronized Runnable ended(Ending ending, long permits, boolean judged) {
            endings.add(ending);
            cost = sum(cost, permits);
            mayBlock |= judged;
            open--;
            if (open > 0) {
                return () -> {};
            }
            if (endings.equals(EnumSet.of(Ending.CANCELLED))) {
                return own::cancel;
            }
            long total = cost;
            boolean isJudged = mayBlock;
            return endings.equals(EnumSet.of(Ending.RELEASED)) ? own::release : () -> own.settle(total, isJudged);
        }
    }

    /** A part of joined permits, with its own end. A use that is released costs its permits. */
    private static final class Use extends JointReservation {

        private final Shared shared;
        private final long permits;
        private final AtomicBoolean ended = new AtomicBoolean();

        private Use(Shared shared, long permits) {
            super(shared.own);
            this.shared = shared;
            this.permits = permits;
        }

        private void end(Ending ending, long cost, boolean judged) {
            if (ended.compareAndSet(false, true)) {
                shared.ended(ending, cost, judged).run();
            }
        }

        @Override
        public boolean isRefused() {
            return shared.own.isRefused();
        }

        @Override
        public void settle(long cost, boolean mayBlock) {
            end(Ending.SETTLED, Permits.requireCharge(cost), mayBlock && cost > 0);
        }

        @Override
        public void cancel() {
            end(Ending.CANCELLED, 0, false);
        }

        @Override
        public void release(End end) {
            end(Ending.RELEASED, permits, false);
        }
    }
}
