package io.ratelimited.spring.client;

import io.ratelimited.spring.fields.Answer;
import io.ratelimited.spring.fields.Answer.Quota;
import java.time.DateTimeException;
import java.time.Duration;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.OptionalLong;
import java.util.function.Function;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * Reads the fields by which servers tell their limits: {@code Retry-After} of RFC 9110; {@code RateLimit} and {@code
 * RateLimit-Policy} of draft-ietf-httpapi-ratelimit-headers-10; and where these are missing, {@code X-RateLimit-Limit},
 * {@code -Remaining} and {@code -Reset}. A field that is sent twice, is not as its specification says, or has a value that
 * no server can mean, is ignored: it neither stops nor hurries a call.
 *
 * <p>This class is the only reader of the draft, as {@code LimitFields} and {@code QuotaPolicy} are its only writers. The
 * names of the fields and the parameters {@code q}, {@code w}, {@code qu}, {@code r} and {@code t} are what a later draft
 * may change: a bean of type {@link io.ratelimited.spring.fields.RateLimitFieldReader} reads them instead.
 */
public final class AnswerFields {

    /** Longer times are no times that a server can mean; as seconds, less than any date since 1971. */
    private static final long LONGEST_SECONDS = Duration.ofDays(366).toSeconds();

    private static final long NANOS = 1_000_000_000L;
    private static final long MILLIS = 1_000;
    private static final Pattern DIGITS = Pattern.compile("\\d{1,15}");
    private static final List<String> DIALECTS = List.of("X-RateLimit-", "X-Rate-Limit-");

    private AnswerFields() {}

    /**
     * Reads an answer.
     *
     * @param status the HTTP status
     * @param fields the values of a field by its name, one for each line of the field; null or empty without the field
     * @param epochMillis the time of this side, for an answer without {@code Date}
     */
    public static Answer read(int status, Function<String, @Nullable List<String>> fields, long epochMillis) {
        long now = date(single(fields, "Date")).orElse(epochMillis);
        long retryAfter = status == 429 || status == 503 ? retryAfter(single(fields, "Retry-After"), now) : 0;
        List<Quota> quotas = standard(fields);
        if (quotas.isEmpty()) {
            quotas = dialect(fields, now);
        }
        return retryAfter == 0 && quotas.isEmpty() ? Answer.SILENT : new Answer(retryAfter, quotas);
    }

    /** The value of a field that is sent once; null otherwise. */
    private static @Nullable String single(Function<String, @Nullable List<String>> fields, String name) {
        List<String> values = fields.apply(name);
        return values == null || values.size() != 1 || values.get(0) == null
                ? null
                : values.get(0).strip();
    }

    private static long retryAfter(@Nullable String value, long nowMillis) {
        OptionalLong seconds = number(value);
        if (seconds.isPresent()) {
            return nanos(seconds.getAsLong());
        }
        OptionalLong date = date(value);
        return date.isPresent() ? nanosUntil(date.getAsLong(), nowMillis) : 0;
    }

    private static OptionalLong number(@Nullable String value) {
        return value != null && DIGITS.matcher(value).matches()
                ? OptionalLong.of(Long.parseLong(value))
                : OptionalLong.empty();
    }

    /** In milliseconds since 1970. */
    private static OptionalLong date(@Nullable String value) {
        if (value == null || value.isEmpty() || !Character.isLetter(value.charAt(0))) {
            return OptionalLong.empty();
        }
        try {
            return OptionalLong.of(ZonedDateTime.parse(value, DateTimeFormatter.RFC_1123_DATE_TIME)
                    .toInstant()
                    .toEpochMilli());
        } catch (DateTimeException | ArithmeticException ex) {
            return OptionalLong.empty();
        }
    }

    /** 0 for a time that no server can mean. */
    private static long nanos(long seconds) {
        return seconds >= 0 && seconds <= LONGEST_SECONDS ? seconds * NANOS : 0;
    }

    /** 0 for a time that is over or that no server can mean. */
    private static long nanosUntil(long epochMillis, long nowMillis) {
        long millis = epochMillis - nowMillis;
        return millis > 0 && millis <= LONGEST_SECONDS * MILLIS ? millis * (NANOS / MILLIS) : 0;
    }

    private static List<Quota> standard(Function<String, @Nullable List<String>> fields) {
        Map<String, Map<String, Object>> states = items(fields.apply("RateLimit"));
        if (states.isEmpty()) {
            return List.of();
        }
        Map<String, Map<String, Object>> policies = items(fields.apply("RateLimit-Policy"));
        List<Quota> quotas = new ArrayList<>(states.size());
        states.forEach((name, state) -> {
            Map<String, Object> policy = policies.getOrDefault(name, Map.of());
            Quota quota = quota(name, state, policy);
            if (quota != null) {
                quotas.add(quota);
            }
        });
        return quotas;
    }

    private static @Nullable Quota quota(String name, Map<String, Object> state, Map<String, Object> policy) {
        if (!policy.getOrDefault("qu", "requests").equals("requests")) {
            return null; // what calls in flight or bytes are left says nothing about time
        }
        long remaining = natural(state.get("r"));
        long window = nanos(natural(policy.get("w")));
        long reset = state.containsKey("t") ? nanos(natural(state.get("t"))) : window;
        return remaining < 0 || reset == 0
                ? null
                : new Quota(name, natural(policy.get("q")), remaining, window == 0 ? Quota.UNKNOWN : window, reset);
    }

    private static long natural(@Nullable Object value) {
        return value instanceof Long number && number >= 0 ? number : Quota.UNKNOWN;
    }

    private static Map<String, Map<String, Object>> items(@Nullable List<String> lines) {
        return lines == null || lines.isEmpty() ? Map.of() : StructuredItems.parse(String.join(",", lines));
    }

    private static List<Quota> dialect(Function<String, @Nullable List<String>> fields, long nowMillis) {
        for (String dialect : DIALECTS) {
            OptionalLong remaining = number(single(fields, dialect + "Remaining"));
            if (remaining.isPresent()) {
                long reset = reset(number(single(fields, dialect + "Reset")), nowMillis);
                long limit = number(single(fields, dialect + "Limit")).orElse(Quota.UNKNOWN);
                return reset == 0
                        ? List.of()
                        : List.of(new Quota(
                                dialect.toLowerCase(Locale.ROOT), limit, remaining.getAsLong(), Quota.UNKNOWN, reset));
            }
        }
        return List.of();
    }

    /**
     * Seconds from now, or seconds or milliseconds since 1970: the three cannot be confused, since no window is longer than a
     * year. Other numbers are ignored.
     */
    private static long reset(OptionalLong value, long nowMillis) {
        long number = value.orElse(0);
        if (number <= LONGEST_SECONDS) {
            return nanos(number);
        }
        return nanosUntil(number < nowMillis / 10 ? number * MILLIS : number, nowMillis);
    }
}
