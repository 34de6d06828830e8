package io.ratelimited.core;

import io.ratelimited.core.calendar.CalendarPeriod;
import java.math.BigDecimal;
import java.math.RoundingMode;
import java.time.Duration;
import java.time.format.DateTimeParseException;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * Permits per period, as in {@code 100/s}. Immutable.
 *
 * @param permits permits per period; 0 means closed, {@link Long#MAX_VALUE} unlimited
 * @param period the period, from 1 nanosecond to 3650 days; for a calendar period only an estimate, its {@link
 *     CalendarPeriod#longest longest} length
 * @param calendar the week, month or year; null for a period of fixed length
 */
public record Rate(long permits, Duration period, @Nullable CalendarPeriod calendar) {

    private static final long MAX_PERMITS = 1_000_000_000_000_000L;
    private static final String TOO_MANY = "must be at most 10^15 permits, and at most 10 permits per nanosecond";
    private static final Duration LONGEST_IN_NANOS = Duration.ofNanos(Long.MAX_VALUE);
    private static final Duration MAX_PERIOD = Duration.ofDays(3_650);
    /** Of a text without blanks around it; no pattern may read a run of blanks in more than one way. */
    private static final Pattern RATE = Pattern.compile("(\\d+)\\s*+/\\s*+(\\S.*+)");

    private static final Pattern DECIMAL = Pattern.compile("(\\d{1,15}[.]\\d{1,15})\\s*+/\\s*+(\\S.*+)");
    /** Rates as other libraries and people write them: {@code 5/minute}, {@code 10/sec}, {@code 5 per minute}. */
    private static final Pattern WORDS = Pattern.compile(
            "(\\d+)\\s*+(?:/|\\bper\\b|\\ban?\\b|\\beach\\b)\\s*+(\\d{0,9}+)\\s*+"
                    + "(secs?|seconds?|mins?|minutes?|hrs?|hours?|days?|millis|milliseconds?|weeks?|months?|years?|[smhd])",
            Pattern.CASE_INSENSITIVE);

    private static final Pattern PERIOD = Pattern.compile("(\\d*)\\s*(ns|us|µs|ms|s|m|min|h|d)");

    /** Admits every call, for exempt callers. Its text is {@code unlimited}. */
    public static final Rate UNLIMITED = new Rate(Long.MAX_VALUE, Duration.ofSeconds(1));

    /**
     * @throws InvalidLimitException if the permits are negative or above 10<sup>15</sup>, if the period is not positive,
     *     above 3650 days, or not the longest of the calendar period, or if there are more than 10 permits per nanosecond
     */
    public Rate {
        String flaw = calendar == null || calendar.longest().equals(period)
                ? flaw(permits, period)
                : "per " + calendar + " must have its longest period";
        if (flaw != null) {
            throw new InvalidLimitException("rate", "is " + permits + " per " + period + ", but " + flaw);
        }
    }

    /** Permits per period of fixed length. */
    public Rate(long permits, Duration period) {
        this(permits, period, null);
    }

    /** Permits per week, month or year. */
    public Rate(long permits, CalendarPeriod period) {
        this(permits, period.longest(), period);
    }

    private static @Nullable String flaw(long permits, Duration period) {
        if (permits < 0) {
            return "must be 0 (closed) or more permits";
        }
        if (period.isNegative() || period.isZero() || period.compareTo(MAX_PERIOD) > 0) {
            return "must have a period from 1ns to 3650d";
        }
        return permits != Long.MAX_VALUE && (permits > MAX_PERMITS || (permits - 1) / 10 >= period.toNanos())
                ? TOO_MANY
                : null;
    }

    /**
     * Parses {@code "<number>/<period>"} or {@code "unlimited"}. The period is a unit ({@code ns us ms s m h d}), a number of
     * units ({@code 500ms}), an ISO-8601 duration ({@code PT1M}), or {@code week}, {@code month} or {@code year}.
     *
     * @throws InvalidLimitException if the text is not a rate; the message shows the forms of a rate
     */
    public static Rate parse(String text) {
        String stripped = text.strip();
        if (stripped.equalsIgnoreCase("unlimited")) {
            return UNLIMITED;
        }
        Matcher matcher = RATE.matcher(stripped);
        if (!matcher.matches()) {
            throw unparsable(text, null);
        }
        try {
            long permits = Long.parseLong(matcher.group(1));
            CalendarPeriod calendar = CalendarPeriod.of(matcher.group(2));
            Duration period = calendar == null ? parsePeriod(matcher.group(2)) : calendar.longest();
            // No number means unlimited: that has to be written out.
            String flaw = permits == Long.MAX_VALUE ? TOO_MANY : flaw(permits, period);
            if (flaw != null) {
                throw new InvalidLimitException("rate", "is \"" + text + "\", but " + flaw);
            }
            return new Rate(permits, period, calendar);
        } catch (NumberFormatException | ArithmeticException | DateTimeParseException ex) {
            throw unparsable(text, ex);
        }
    }

    private static Duration parsePeriod(String text) {
        Matcher matcher = PERIOD.matcher(text);
        if (!matcher.matches()) {
            return Duration.parse(text.toUpperCase(Locale.ROOT));
        }
        long amount = matcher.group(1).isEmpty() ? 1 : Long.parseLong(matcher.group(1));
        return switch (matcher.group(2)) {
            case "ns" -> Duration.ofNanos(amount);
            case "us", "µs" -> Duration.ofNanos(Math.multiplyExact(amount, 1_000));
            case "ms" -> Duration.ofMillis(amount);
            case "s" -> Duration.ofSeconds(amount);
            case "m", "min" -> Duration.ofMinutes(amount);
            case "h" -> Duration.ofHours(amount);
            default -> Duration.ofDays(amount);
        };
    }

    private static InvalidLimitException unparsable(String text, @Nullable Exception cause) {
        return new InvalidLimitException(
                "rate",
                "is \"" + text
                        + "\", but must be \"<number>/<period>\" such as 100/s, 5/m, 20/500ms or 100/PT1M, per week,"
                        + " month or year, or \"unlimited\"" + remedy(text.strip()),
                cause);
    }

    private static String remedy(String text) {
        Matcher words = WORDS.matcher(text);
        if (!words.matches()) {
            return wholeNumber(text);
        }
        String written =
                words.group(1) + "/" + period(words.group(2), words.group(3).toLowerCase(Locale.ROOT));
        return !written.equals(text) && isRate(written) ? "; write " + written : "";
    }

    /** Weeks, months and years take no number; weeks are days, too. */
    private static String period(String number, String unit) {
        if (!unit.matches("(week|month|year)s?")) {
            return number + (unit.startsWith("mil") ? "ms" : unit.substring(0, 1));
        }
        if (number.isEmpty() || number.equals("1")) {
            return unit.replaceFirst("s$", "");
        }
        return unit.startsWith("week") ? 7 * Long.parseLong(number) + "d" : number + unit;
    }

    private static boolean isRate(String text) {
        try {
            parse(text);
            return true;
        } catch (InvalidLimitException ex) {
            return false;
        }
    }

    /** Returns the remedy for a rate whose number is not whole: {@code "; write 30/m"} for 0.5/s. Empty for other texts. */
    private static String wholeNumber(String text) {
        Matcher matcher = DECIMAL.matcher(text);
        if (!matcher.matches()) {
            return "";
        }
        try {
            BigDecimal perPeriod = new BigDecimal(matcher.group(1));
            BigDecimal period = BigDecimal.valueOf(parsePeriod(matcher.group(2)).toNanos());
            for (String unit : new String[] {"s", "m", "h", "d"}) {
                BigDecimal unitNanos = BigDecimal.valueOf(parsePeriod(unit).toNanos());
                BigDecimal[] number = perPeriod.multiply(unitNanos).divideAndRemainder(period);
                if (number[1].signum() == 0 && number[0].signum() > 0) {
                    return "; write " + number[0].toBigInteger() + "/" + unit;
                }
            }
        } catch (NumberFormatException | ArithmeticException | DateTimeParseException ex) {
            // Its period is wrong too, as the message says.
        }
        return "; write a whole number per longer period";
    }

    /** Returns whether no call is admitted. */
    public boolean isClosed() {
        return permits == 0;
    }

    /** Returns whether every call is admitted. */
    public boolean isUnlimited() {
        return permits == Long.MAX_VALUE;
    }

    /** Returns the rate as text: {@code 100/s}, {@code 20/500ms}, {@code 1000/month}, {@code unlimited}. */
    @Override
    public String toString() {
        return isUnlimited() ? "unlimited" : permits + "/" + (calendar == null ? describe(period.toNanos()) : calendar);
    }

    /** Returns a duration as text: {@code 10s}. */
    static String text(Duration duration) {
        if (duration.isZero()) {
            return "0s";
        }
        if (duration.abs().compareTo(LONGEST_IN_NANOS) > 0) {
            return duration.toString();
        }
        String text = describe(duration.toNanos());
        return Character.isLetter(text.charAt(0)) ? "1" + text : text;
    }

    /** Returns a measured time as text: it is rounded up to the millisecond, as in {@code 19.72s}. */
    static String rounded(Duration duration) {
        BigDecimal seconds = BigDecimal.valueOf(duration.getSeconds()).add(BigDecimal.valueOf(duration.getNano(), 9));
        return seconds.setScale(3, RoundingMode.CEILING).stripTrailingZeros().toPlainString() + "s";
    }

    private static String describe(long nanos) {
        String[] units = {"d", "h", "m", "s", "ms", "us", "ns"};
        long[] sizes = {86_400_000_000_000L, 3_600_000_000_000L, 60_000_000_000L, 1_000_000_000L, 1_000_000L, 1_000L, 1L
        };
        for (int i = 0; ; i++) {
            if (nanos % sizes[i] == 0) {
                long amount = nanos / sizes[i];
                return amount == 1 ? units[i] : amount + units[i];
            }
        }
    }
}
