package io.ratelimited.core;

import java.util.function.UnaryOperator;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * A caller's own numbers under a limit: a rate, and a burst where the algorithm has one. They replace those of the limit; all
 * other parameters are those of the limit. Immutable. Two with the same texts are equal.
 *
 * <p>Experimental: may change in a minor release.
 *
 * <p>Nothing is checked before a limit uses the numbers, so that numbers of a database can be passed on as they are.
 *
 * @param rate as {@link Rate#parse} reads it, such as {@code 500/m}
 * @param burst permits; null for the number in the rate
 */
public record CallerLimit(String rate, @Nullable Long burst) implements UnaryOperator<Limit> {

    private static final Pattern TEXT = Pattern.compile("(\\S.*?)\\sburst\\s++(-?\\d{1,18})", Pattern.DOTALL);

    /** Numbers as text: {@code 500/m}, or {@code 500/m burst 1000}. */
    public static CallerLimit of(String numbers) {
        String text = numbers.strip();
        Matcher matcher = TEXT.matcher(text);
        return matcher.matches()
                ? new CallerLimit(matcher.group(1).strip(), Long.parseLong(matcher.group(2)))
                : new CallerLimit(text, null);
    }

    /** The same rate with a burst. */
    public CallerLimit burst(long permits) {
        return new CallerLimit(rate, permits);
    }

    /**
     * The limit with these numbers.
     *
     * @throws InvalidLimitException when it cannot have them: the rate cannot be read, its period is not that of the limit's
     *     windows, the burst is out of range or has no meaning for the algorithm, or the limit counts calls in flight
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

    /** The numbers as they are written: {@code 500/m burst 1000}. */
    @Override
    public String toString() {
        return burst == null ? rate : rate + " burst " + burst;
    }
}
