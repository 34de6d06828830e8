package io.ratelimited.core.internals.candidates;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.InvalidLimitException;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Rate;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** Rates that are tried beside a limit. Each is the limit with that rate; all else stays, as in a change of the rate. */
public final class Candidates {

    /** The text for rates around the present one, which are replaced once by rates around those that matter. */
    public static final String AUTO = "auto";

    /** The most permits of a candidate of SLIDING_LOG, which stores each call. */
    private static final long MOST_OF_A_LOG = 10_000;

    private static final int MOST = 16;
    private static final int STEPS = 9;
    private static final int BELOW = 4;
    /** Of the steps around the present rate, four of which are below it. */
    private static final double FACTOR = 4;

    private static final double PRECISION = 1e-6;

    private Candidates() {}

    /**
     * The limits that a text describes, the smallest first.
     *
     * @param live the limit beside which they are tried
     * @param text rates such as {@code 100/m, 200/m burst 300}, with commas or semicolons; or {@value #AUTO}
     * @throws InvalidLimitException when one is no rate of such a limit, or there are too many
     */
    public static List<Limit> of(Limit live, String text) {
        String[] rates = text.split("[,;]");
        List<Limit> limits = text.strip().equals(AUTO)
                ? steps(live, live.rate().permits() * Math.pow(FACTOR, -BELOW), FACTOR)
                : sorted(Stream.of(rates).map(rate -> candidate(live, rate.strip())));
        if (limits.isEmpty() || rates.length > MOST) {
            throw invalid("are " + text + ", but must be 1 to " + MOST + " rates, or auto if the limit has a number");
        }
        return limits;
    }

    private static InvalidLimitException invalid(String problem) {
        return new InvalidLimitException("candidates", problem);
    }

    private static Limit candidate(Limit live, String text) {
        String[] parts = text.split("\\s+burst\\s+", 2);
        try {
            Limit.Builder builder = live.toBuilder().withoutBlocks().rate(parts[0]);
            Limit limit = (parts.length == 1 ? builder : builder.burst(Long.parseLong(parts[1]))).build();
            long most = limit.algorithm() == Algorithm.SLIDING_LOG ? MOST_OF_A_LOG : Long.MAX_VALUE - 1;
            if (limit.isClosed() || limit.rate().permits() > most) {
                throw new IllegalArgumentException("it must have a number above 0, under SLIDING_LOG at most "
                        + MOST_OF_A_LOG + " permits, because that stores each call");
            }
            return limit;
        } catch (IllegalArgumentException ex) {
            throw invalid("contain \"" + text + "\", which is not a rate that this limit can have: " + ex.getMessage());
        }
    }

    /** Without those that would decide as another one does. */
    private static List<Limit> sorted(Stream<Limit> limits) {
        Comparator<Limit> bySize =
                Comparator.comparingDouble(Candidates::perNano).thenComparing(Limit::burst);
        return List.copyOf(limits.collect(Collectors.toCollection(() -> new TreeSet<>(bySize))));
    }

    /** Permits per nanosecond. */
    private static double perNano(Limit limit) {
        return (double) limit.rate().permits() / limit.rate().period().toNanos();
    }

    /** The name of a candidate: its rate, and its burst where that is not the limit's. */
    static String name(Limit candidate, Limit live) {
        long burst = live.toBuilder().rate(candidate.rate()).build().burst();
        return candidate.rate() + (candidate.burst() == burst ? "" : " burst " + candidate.burst());
    }

    /** Nine steps, each of a factor; fewer where they would be the same, or no rate of the limit. */
    private static List<Limit> steps(Limit live, double first, double factor) {
        List<Limit> limits = new ArrayList<>();
        for (int i = 0; i < STEPS; i++) {
            long permits = (long) Math.ceil(first * Math.pow(factor, i) - PRECISION);
            try {
                Rate rate = new Rate(permits, live.rate().period(), live.rate().calendar());
                limits.add(candidate(live, rate.toString()));
            } catch (IllegalArgumentException ignored) {
                // Such a rate the limit cannot have: its burst would not fit, for example.
            }
        }
        return sorted(limits.stream());
    }

    /**
     * Nine steps between the rates that matter: from the largest that would have rejected a tenth of the calls to the smallest that
     * would have rejected none.
     *
     * @param seen what coarser steps have shown
     */
    public static List<Limit> around(Limit live, CandidateReport seen) {
        double low = 0;
        double high = 0;
        for (CandidateReport.Candidate one : seen.candidates()) {
            high = perNano(one.limit()) * live.rate().period().toNanos();
            low = low == 0 || one.rejected() >= 0.1 ? high : low;
            if (one.rejected() == 0) {
                break;
            }
        }
        low = Math.min(low, high / 2);
        return steps(live, low, Math.pow(high / low, 1.0 / (STEPS - 1)));
    }
}
