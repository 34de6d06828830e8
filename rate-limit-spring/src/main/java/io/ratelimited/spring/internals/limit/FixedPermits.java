package io.ratelimited.spring.internals.limit;

import io.ratelimited.core.Limit;
import io.ratelimited.spring.InvalidRateLimitException;
import java.util.regex.Pattern;

/**
 * The permits that the calls of a limit ask for, where they are stated as a number and not as an expression. No change may leave
 * less room than the largest number. Thread-safe.
 */
public final class FixedPermits {

    private static final Pattern NUMBER = Pattern.compile("[+-]?\\d+([.]\\d+)?");
    private static final Pattern WHOLE_NUMBER = Pattern.compile("\\+?\\d{1,18}");

    private final ConfiguredLimit limit;
    private volatile Weight heaviest = new Weight(1, "a call");

    /** Permits that calls ask for, and the place that sets them. */
    private record Weight(long permits, String where) {}

    FixedPermits(ConfiguredLimit limit) {
        this.limit = limit;
    }

    /** Returns whether permits are stated as a number, perhaps an invalid one. */
    public static boolean isNumber(String permits) {
        return NUMBER.matcher(permits.strip()).matches();
    }

    /**
     * Reads permits that are stated as a number.
     *
     * @param where the place where they are stated
     * @throws InvalidRateLimitException when calls can never have so many
     */
    public synchronized long read(String permits, String where) {
        String text = permits.strip();
        long number = WHOLE_NUMBER.matcher(text).matches() ? Long.parseLong(text) : 0;
        if (number < 1) {
            throw new InvalidRateLimitException(
                    limit.name(),
                    where,
                    "permits is " + permits + ", but must be a whole number from 1 to 10^18",
                    "Correct the annotation or the property. [RL-103]");
        }
        Weight weight = new Weight(number, where);
        String remedy = "Reduce permits, or raise the limit. [RL-103]";
        requireRoom(weight, limit.limit(), "", where, remedy);
        limit.tiers().forEach((tier, own) -> requireRoom(weight, own, " of tier '" + tier + "'", where, remedy));
        if (number > heaviest.permits) {
            heaviest = weight;
        }
        return number;
    }

    /**
     * Checks that calls can still have the permits that they ask for.
     *
     * @param changed the limit or that of a tier, as it shall be
     * @throws InvalidRateLimitException when they never could
     */
    void requireRoom(Limit changed, String whose, String where, String remedy) {
        requireRoom(heaviest, changed, whose, where, remedy);
    }

    private void requireRoom(Weight weight, Limit changed, String whose, String where, String remedy) {
        if (changed.capacity() != 0 && weight.permits > changed.capacity()) {
            throw new InvalidRateLimitException(
                    limit.name(),
                    where,
                    "permits is " + weight.permits + (where.equals(weight.where) ? "" : " (" + weight.where + ")")
                            + ", but this limit admits at most " + changed.capacity() + " per call (" + changed + ")"
                            + whose,
                    remedy);
        }
    }
}
