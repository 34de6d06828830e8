package io.ratelimited.core;

import java.util.function.UnaryOperator;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * A caller's own numbers under a limit: a rate, and a burst if the algorithm supports it. They replace those of the limit;
 * all other parameters stay. Immutable. Instances with the same text are equal.
 *
 * <p>Experimental: may change in a minor release.
 *
 * <p>The numbers are only checked when a limit uses them, so values of a database can be passed on unchanged.
 *
 * @param rate in the form of {@link Rate#parse}, such as {@code 500/m}
 * @param burst permits; null for the number in the rate
 */
public record CallerLimit(String rate, @Nullable Long burst) implements UnaryOperator<Limit> {

    private static final Pattern TEXT = Pattern.compile("(\\S.*?)\\sburst\\s++(-?\\d{1,18})", Pattern.DOTALL);

    /** Creates numbers from text: {@code 500/m}, or {@code 500/m burst 1000}. */
    public static CallerLimit of(String numbers) {
        String text = numbers.strip();
        Matcher matcher = TEXT.matcher(text);
        return matcher.matches()
                ? new CallerLimit(matcher.group(1).strip(), Long.parseLong(matcher.group(2)))
                : new CallerLimit(text, null);
    }

    /** Returns the same rate with a burst. */
    public CallerLimit burst(long permits) {
        return new CallerLimit(rate, permits);
    }

    /**
     * Returns the limit with these numbers.
     *
     * @throws InvalidLimitException if the limit does not support them: the rate cannot be parsed, its period differs from
     *     the windows of the limit, the burst is out of range or not supported by the algorithm, or the limit counts calls in
     *     flight
     */
    @Override
    public Limit apply(Limit limit) {
        if (limit.algorithm().countsCallsInFlight()) {
            throw LimitRanges.meaningless(limit.algorithm(), Limit.Attribute.RATE, rate);
        }
        Rate own = Rate.parse(rate);
        Rate whole = limit.rate();
        boolean counts = !own.isClosed() && !own.isUnlimited() && !limit.isClosed() && !limit.isUnlimited();
        if (counts
                && limit.algorithm().family() == Algorithm.Family.WINDOW
                && !(own.period().equals(whole.period()) && own.calendar() == whole.calendar())) {
            throw new InvalidLimitException(
                    "rate", "is " + own + ", but must have the period of the limit, which is " + whole);
        }
        return limit.toBuilder().rate(own).set(Limit.Attribute.BURST, burst).build();
    }

    /** Returns the numbers as text: {@code 500/m burst 1000}. */
    @Override
    public String toString() {
        return burst == null ? rate : rate + " burst " + burst;
    }
}
