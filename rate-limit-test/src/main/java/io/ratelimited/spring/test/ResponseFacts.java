package io.ratelimited.spring.test;

import io.ratelimited.spring.internals.web.LimitHeaders;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;
import java.util.regex.MatchResult;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.assertj.core.api.WritableAssertionInfo;
import org.assertj.core.error.BasicErrorMessageFactory;
import org.jspecify.annotations.Nullable;

/**
 * The limits that a response states, whichever client received it.
 *
 * @param pending whether an asynchronous handler has still to respond; until its response is committed, the status is 200, also of a rejection
 * @param header the first value of a field
 * @param body text, bytes, or an object that a converter made; read only of errors, because others may be streams without end
 */
record ResponseFacts(
        WritableAssertionInfo info,
        boolean pending,
        int status,
        UnaryOperator<@Nullable String> header,
        Supplier<? extends @Nullable Object> body) {

    /** In the types of the problems that a rejection can be, whatever its status is. */
    private static final List<String> REJECTIONS =
            List.of("#quota-exceeded", "#abnormal-usage-detected", "#temporary-reduced-capacity");

    private static final String LIST = "violated-policies";

    private static final Pattern JSON_LIST = Pattern.compile('"' + LIST + "\"\\s*:\\s*\\[");
    private static final Pattern JSON_ITEM = Pattern.compile("\\G\\s*\"((?:[^\"\\\\]++|\\\\.)*+)\"\\s*,?");
    private static final Pattern JSON_ESCAPE = Pattern.compile("\\\\(?:u(\\p{XDigit}{4})|(.))");

    private static final Pattern REMAINING = Pattern.compile(";r=(\\d+)");

    void isRateLimited(int expected) {
        require(status == expected, "a rejection with status " + expected);
    }

    void isNotRateLimited() {
        require(
                status != 429 && REJECTIONS.stream().noneMatch(text(bodyOfError())::contains),
                "a response that is not a rejection by a rate limit");
    }

    /**
     * The list of the problem detail of an error, as JSON or as the text of an object or a map. A page for a browser has none:
     * there the limit is the one in {@code RateLimit} whose time is that of {@code Retry-After}.
     */
    void by(String limit) {
        Object value = bodyOfError();
        String text = text(value);
        boolean found;
        if (text.contains(LIST)) {
            boolean isObject = !(value instanceof CharSequence || value instanceof byte[]);
            found = namesInJson(text).contains(limit) || (isObject && isInObject(text, limit));
        } else {
            String field = header.apply("RateLimit");
            found = field != null
                    && Pattern.compile(
                                    "(^|, )" + Pattern.quote(LimitHeaders.nameOf(limit)) + ";r=\\d+" + time() + "(,|$)")
                            .matcher(field)
                            .find();
        }
        require(found, "violated-policies, or RateLimit with the time of Retry-After, to name '" + limit + "'");
    }

    private static List<String> namesInJson(String text) {
        Matcher list = JSON_LIST.matcher(text);
        return list.find()
                ? JSON_ITEM
                        .matcher(text)
                        .region(list.end(), text.length())
                        .results()
                        .map(item -> unescaped(item.group(1)))
                        .toList()
                : List.of();
    }

    /** Serializers may escape any character. */
    private static String unescaped(String json) {
        return JSON_ESCAPE
                .matcher(json)
                .replaceAll(escape -> Matcher.quoteReplacement(
                        escape.group(1) == null
                                ? escape.group(2)
                                : String.valueOf((char) Integer.parseInt(escape.group(1), 16))));
    }

    /** The text of a list has its elements as they are, separated by a comma and a space. */
    private static boolean isInObject(String text, String limit) {
        return Pattern.compile(LIST + "[:=]\\s*\\[(?:[^]]*, )?" + Pattern.quote(limit) + "(?:, [^]]*)?]")
                .matcher(text)
                .find();
    }

    private String time() {
        String seconds = header.apply("Retry-After");
        return seconds == null ? "" : ";t=" + seconds;
    }

    void retryAfter(Duration expected) {
        String seconds = String.valueOf(LimitHeaders.retryAfterSeconds(expected));
        require(seconds.equals(header.apply("Retry-After")), "Retry-After: " + seconds);
    }

    void noRetryAfter() {
        require(header.apply("Retry-After") == null, "no Retry-After");
    }

    /** The least of all limits that the response names. */
    void remaining(long expected) {
        String field = header.apply("RateLimit");
        String legacy = header.apply("X-RateLimit-Remaining");
        Long least = field == null
                ? legacy == null ? null : Long.valueOf(legacy)
                : REMAINING
                        .matcher(field)
                        .results()
                        .map(MatchResult::group)
                        .map(item -> Long.valueOf(item.substring(";r=".length())))
                        .min(Long::compare)
                        .orElse(null);
        require(least != null && least == expected, expected + " remaining in RateLimit or X-RateLimit-Remaining");
    }

    private @Nullable Object bodyOfError() {
        return isError() ? body.get() : null;
    }

    private boolean isError() {
        return status >= 400;
    }

    private static String text(@Nullable Object value) {
        return value instanceof byte[] bytes ? new String(bytes, StandardCharsets.UTF_8) : String.valueOf(value);
    }

    private void require(boolean condition, String expected) {
        if (pending) {
            throw failure(
                    "%nExpected %s, but the response is still to come: the handler returned a Mono, a future or another"
                            + " asynchronous result. Use MockMvcTester, whose exchange() waits for the response, or assert"
                            + " on the result of mvc.perform(asyncDispatch(result)).",
                    expected);
        }
        if (!condition) {
            throw failure(
                    "%nExpected %s, but this was the response:%n  status: %s%n  Retry-After: %s%n  RateLimit: %s%n"
                            + "  X-RateLimit-Remaining: %s"
                            + (isError() ? "%n  body: %s" : ""),
                    expected,
                    status,
                    header.apply("Retry-After"),
                    header.apply("RateLimit"),
                    header.apply("X-RateLimit-Remaining"),
                    text(bodyOfError()));
        }
    }

    private AssertionError failure(String message, @Nullable Object... parts) {
        String stated = info.overridingErrorMessage();
        return new AssertionError(
                stated != null
                        ? stated
                        : new BasicErrorMessageFactory(message, parts)
                                .create(info.description(), info.representation()));
    }
}
