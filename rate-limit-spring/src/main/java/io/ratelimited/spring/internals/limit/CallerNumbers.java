package io.ratelimited.spring.internals.limit;

import io.ratelimited.core.CallerLimit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.spring.internals.text.KeyMask;
import io.ratelimited.spring.internals.text.LogText;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * The numbers that a tier expression yields instead of the name of a tier, each read once while it is remembered. Numbers of which
 * the limit can make nothing are the limit itself, with one warning until the limit changes. Thread-safe.
 */
final class CallerNumbers {

    private static final LogText.Lines LOG = LogText.lines(CallerNumbers.class);

    /** Different numbers that are remembered; more are read again. Callers keep what they have used all the same. */
    private static final int MOST = 10_000;
    /** Characters of a text that may be numbers. */
    private static final int LONGEST = 64;

    /** Texts that are no name of a tier. */
    private static final Pattern NO_NAME = Pattern.compile("[-+.\\d].*|.*/.*|unlimited", Pattern.DOTALL);
    /** Texts that can be shown: wrong numbers, and nothing else. */
    private static final Pattern SHOWN = Pattern.compile(
            "\\s*[-+]?(?:[\\d.,]{0,24}|NaN|Infinity)(?:\\s*/\\s*[\\w.]{0,12})?(?:\\s+burst\\s+[-+]?[\\d.,]{0,24})?\\s*");

    private final String name;
    private final RateLimiter limiter;
    /** Another map after each change of the limit: threads that still read numbers for the one before fill its map. */
    private volatile Map<Object, RateLimiter> known = new ConcurrentHashMap<>();

    private volatile boolean used;
    private volatile boolean warned;

    /** @param limiter of all callers */
    CallerNumbers(String name, RateLimiter limiter) {
        this.name = name;
        this.limiter = limiter;
    }

    /** The limiter for numbers that are remembered, as text or {@link CallerLimit}; null for others. */
    @Nullable
    RateLimiter known(Object value) {
        return known.get(value);
    }

    /** Returns whether callers have had their own numbers. */
    boolean isUsed() {
        return used;
    }

    /** Returns whether a value is not the name of a tier. */
    static boolean isNumbers(Object value) {
        return value instanceof CallerLimit
                || value instanceof Number
                || NO_NAME.matcher(value.toString().strip()).matches();
    }

    /** The limiter for callers with these numbers; that of all callers for those that it cannot have. */
    RateLimiter limiter(Object value) {
        String text = value.toString();
        if (text.length() > LONGEST) {
            warn(text, "is longer than " + LONGEST + " characters");
            return limiter;
        }
        Map<Object, RateLimiter> readNow = known;
        RateLimiter own = limiter;
        used = true;
        try {
            own = limiter.ofCallers(value instanceof CallerLimit stated ? stated : CallerLimit.of(text));
        } catch (IllegalArgumentException | UnsupportedOperationException ex) {
            warn(text, String.valueOf(ex.getMessage()));
        }
        if (value instanceof String || value instanceof CallerLimit) {
            if (readNow.size() >= MOST) {
                readNow.clear();
            }
            readNow.put(value, own);
        }
        return own;
    }

    /** The limiter of all callers, for numbers that a client may have chosen. */
    RateLimiter chosen(String expression) {
        if (!warned) {
            warned = true;
            LOG.warn("Rate limit '" + name + "' ignores the numbers of tier \"" + LogText.escaped(expression)
                    + "\", which clients may choose, so the limit itself applies. Look the numbers up in a bean, as in"
                    + " tier: \"@plans.limitOf(#user)\", or return a CallerLimit. [RL-281]");
        }
        return limiter;
    }

    private void warn(String text, String problem) {
        if (warned) {
            return;
        }
        warned = true;
        String shown = text.length() <= LONGEST && SHOWN.matcher(text).matches()
                ? LogText.of(text) + " (" + problem + ")"
                : KeyMask.mask(text);
        LOG.warn("Rate limit '" + name + "' cannot use the numbers of a caller, so the limit itself applies: tier is "
                + shown + ", but must be a tier, or numbers such as 500/m or \"500/m burst 1000\" that suit "
                + limiter.limit() + ". Correct the data, or return null. [RL-280]");
    }

    /** Reads all numbers again, since the limit has changed. */
    void limitChanged() {
        known = new ConcurrentHashMap<>();
        warned = false;
    }
}
