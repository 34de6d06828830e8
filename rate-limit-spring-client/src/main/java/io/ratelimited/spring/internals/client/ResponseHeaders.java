package io.ratelimited.spring.internals.client;

import io.ratelimited.spring.fields.ResponseLimits;
import io.ratelimited.spring.fields.ResponseLimits.Quota;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.Function;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Reads the fields by which servers report their limits: {@code Retry-After} of RFC 9110; {@code RateLimit} and {@code
 * RateLimit-Policy} of draft-ietf-httpapi-ratelimit-headers-10; and where these are missing, the limit, the rest and the
 * reset in the dialects of large services. A field that is sent twice, is not as its specification says, or has a value that
 * no server can mean, is ignored: it neither stops nor hurries a call.
 *
 * <p>This class is the only reader of the draft, as {@code LimitHeaders} and {@code QuotaPolicy} are its only writers. The
 * names of the fields and the parameters {@code q}, {@code w}, {@code qu}, {@code r} and {@code t} may change in a later
 * draft: a bean of type {@link io.ratelimited.spring.fields.RateLimitHeaderReader} reads them instead.
 */
public final class ResponseHeaders {

    private static final int REDIRECTION = 300;
    private static final Pattern COUNT = Pattern.compile("(\\d{1,15})(?:\\.\\d{1,9})?(?:\\s*;\\s*w=(\\d{1,9}))?");

    /** Names of the three fields of a quota of calls or tokens. */
    private record Dialect(String before, String after, boolean ofCalls) {

        private String field(String name) {
            return before + name + after;
        }

        private String name() {
            return (before + after).toLowerCase(Locale.ROOT);
        }
    }

    private static final List<Dialect> DIALECTS = List.of(
            new Dialect("X-RateLimit-", "", true),
            new Dialect("X-Rate-Limit-", "", true),
            new Dialect("RateLimit-", "", true),
            new Dialect("X-RateLimit-", "-Requests", true),
            new Dialect("Anthropic-RateLimit-Requests-", "", true),
            new Dialect("X-RateLimit-", "-Tokens", false),
            new Dialect("Anthropic-RateLimit-Tokens-", "", false),
            new Dialect("Anthropic-RateLimit-Input-Tokens-", "", false),
            new Dialect("Anthropic-RateLimit-Output-Tokens-", "", false));

    private ResponseHeaders() {}

    /**
     * Reads an answer.
     *
     * @param status the HTTP status
     * @param fields the values of a field by its name, one for each line of the field; null or empty without the field
     * @param epochMillis the time of this side, for an answer without {@code Date}
     */
    public static ResponseLimits read(int status, Function<String, @Nullable List<String>> fields, long epochMillis) {
        long now = AnswerTimes.date(single(fields, "Date")).orElse(epochMillis);
        long retryAfter = status == 429 || status == 503 || status == 403 ? retryAfter(fields, now) : 0;
        List<Quota> quotas = standard(fields);
        if (quotas.isEmpty()) {
            quotas = dialects(fields, now);
        }
        if (status < REDIRECTION) {
            // What admits nothing would not have admitted this call.
            quotas = quotas.stream().filter(quota -> quota.quota() != 0).toList();
        }
        return retryAfter == 0 && quotas.isEmpty() ? ResponseLimits.SILENT : new ResponseLimits(retryAfter, quotas);
    }

    /** Returns whether a response has fields of quotas, even if they are ignored. */
    static boolean haveQuotas(Function<String, @Nullable List<String>> fields) {
        return Stream.concat(
                        Stream.of("RateLimit", "RateLimit-Policy"),
                        DIALECTS.stream()
                                .flatMap(dialect ->
                                        Stream.of("Limit", "Remaining", "Reset").map(dialect::field)))
                .map(fields)
                .anyMatch(values -> values != null && !values.isEmpty());
    }

    /** Returns whether a cache has given the response, which states what was left when the cache got it. */
    static boolean isOfCache(Function<String, @Nullable List<String>> fields) {
        return AnswerTimes.millis(single(fields, "Age")) > 0;
    }

    /** The value of a field that is sent once; null otherwise. */
    private static @Nullable String single(Function<String, @Nullable List<String>> fields, String name) {
        List<String> values = fields.apply(name);
        return values == null || values.size() != 1 || values.get(0) == null
                ? null
                : values.get(0).strip();
    }

    private static long retryAfter(Function<String, @Nullable List<String>> fields, long nowMillis) {
        for (String name : List.of("Retry-After-Ms", "X-Ms-Retry-After-Ms")) {
            long millis = AnswerTimes.millis(single(fields, name));
            if (millis > 0) {
                return millis;
            }
        }
        return AnswerTimes.retryAfter(single(fields, "Retry-After"), nowMillis);
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
        long window = AnswerTimes.seconds(natural(policy.get("w")));
        long reset = state.containsKey("t") ? AnswerTimes.seconds(natural(state.get("t"))) : window;
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

    /** The first quota of calls, and all of tokens. */
    private static List<Quota> dialects(Function<String, @Nullable List<String>> fields, long nowMillis) {
        List<Quota> quotas = new ArrayList<>();
        for (Dialect dialect : DIALECTS) {
            Quota quota = dialect.ofCalls && !quotas.isEmpty() ? null : quota(dialect, fields, nowMillis);
            if (quota != null) {
                quotas.add(quota);
            }
        }
        return quotas;
    }

    private static @Nullable Quota quota(
            Dialect dialect, Function<String, @Nullable List<String>> fields, long nowMillis) {
        Matcher remaining = count(single(fields, dialect.field("Remaining")));
        if (!remaining.matches()) {
            return null;
        }
        // A limit may be followed by a list of all, as in "100, 100;w=60".
        String stated = single(fields, dialect.field("Limit"));
        Matcher limit = count(stated == null ? null : stated.split(",", 2)[0].strip());
        long window = remaining.group(2) == null ? 0 : AnswerTimes.seconds(Long.parseLong(remaining.group(2)));
        long after = AnswerTimes.retryAfter(single(fields, dialect.field("Reset-After")), nowMillis);
        long reset = after > 0 ? after : AnswerTimes.reset(single(fields, dialect.field("Reset")), nowMillis);
        return reset > 0 || window > 0
                ? new Quota(
                        dialect.name(),
                        limit.matches() ? Long.parseLong(limit.group(1)) : Quota.UNKNOWN,
                        Long.parseLong(remaining.group(1)),
                        window > 0 ? window : Quota.UNKNOWN,
                        reset > 0 ? reset : window,
                        dialect.ofCalls)
                : null;
    }

    private static Matcher count(@Nullable String value) {
        return COUNT.matcher(value == null ? "" : value);
    }
}
