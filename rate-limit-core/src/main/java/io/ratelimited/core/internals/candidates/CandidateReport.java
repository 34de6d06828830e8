package io.ratelimited.core.internals.candidates;

import io.ratelimited.core.Limit;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Collectors;

/**
 * What candidates would have done until now. Immutable.
 *
 * @param calls calls that were tried
 * @param candidates the smallest rate first
 */
public record CandidateReport(long calls, List<Candidate> candidates) {

    /**
     * One candidate.
     *
     * @param name its rate, as in {@code 100/m}
     * @param rejected the share of calls that it would have rejected, from 0 to 1
     * @param error by how much the share may be off in 19 of 20 cases; 0 if every key was followed
     * @param callers the keys of which it would have rejected a call; estimated if not every key was followed
     * @param mostRejected the keys with most rejected calls, among those that were followed; none for a limit without keys
     */
    public record Candidate(
            Limit limit, String name, double rejected, double error, long callers, List<Caller> mostRejected) {

        /** As in {@code 50/m rejects 12.5 % ± 0.2 % (3 callers)}. */
        @Override
        public String toString() {
            return name + " rejects " + percent(rejected) + (error > 0 ? " ± " + percent(error) : "")
                    + (callers > 0 ? " (" + number(callers, "caller") + ")" : "");
        }
    }

    /** A key, as {@link io.ratelimited.core.CanonicalKey#text} makes it, and the calls of it that would have been rejected. */
    public record Caller(String key, long rejected) {}

    /**
     * The smallest candidate that would have rejected less than a share of the calls, its error included.
     *
     * @param share above 0, at most 1
     * @return its name; empty if none would have, or there were no calls
     */
    public Optional<String> smallestBelow(double share) {
        return candidates.stream()
                .filter(one -> calls > 0 && one.rejected + one.error < share)
                .map(Candidate::name)
                .findFirst();
    }

    /** The share that each would have rejected, by its name. */
    public Map<String, Double> shares() {
        return candidates.stream().collect(Collectors.toMap(Candidate::name, Candidate::rejected));
    }

    /** As in {@code the smallest below 1 % is 100/m}. */
    String advice(double share) {
        return smallestBelow(share)
                .map(name -> "the smallest below " + percent(share) + " is " + name)
                .orElse("none of them rejects less than " + percent(share));
    }

    /** One line, as in {@code 1200 calls: 50/m rejects 12.5 % (3 callers), 100/m rejects 0 %; the smallest below 1 % is 100/m}. */
    @Override
    public String toString() {
        return number(calls, "call") + ": "
                + candidates.stream().map(Candidate::toString).collect(Collectors.joining(", ")) + "; " + advice(0.01);
    }

    /** As in {@code 1 call}, {@code 2 calls}. */
    static String number(long number, String of) {
        return number + " " + of + (number == 1 ? "" : "s");
    }

    /** A share in percent, with two digits after the point where there are any. */
    public static String percent(double share) {
        return String.format(Locale.ROOT, "%.2f", share * 100).replaceFirst("\\.?0+$", "") + " %";
    }
}
