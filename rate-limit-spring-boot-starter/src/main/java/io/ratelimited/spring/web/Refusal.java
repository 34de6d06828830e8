package io.ratelimited.spring.web;

import io.ratelimited.core.Decision;
import io.ratelimited.core.RateLimitExceededException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.springframework.http.InvalidMediaTypeException;
import org.springframework.http.MediaType;
import org.springframework.util.InvalidMimeTypeException;
import org.springframework.util.MimeTypeUtils;

/**
 * The answer to a refused request: a problem detail of RFC 9457, of the type {@code quota-exceeded} that
 * draft-ietf-httpapi-ratelimit-headers registers.
 */
public record Refusal(RateLimitExceededException exception) {

    public static final String TYPE = "https://iana.org/assignments/http-problem-types#quota-exceeded";

    public static final String CONTENT_TYPE = "application/problem+json";

    private static final int DEEPEST = 32;

    /** The refusal that an exception is or was caused by, as exception handlers look for causes; null if none. */
    public static @Nullable Refusal in(Throwable failure) {
        Throwable cause = failure;
        for (int depth = 0; cause != null && depth < DEEPEST; depth++, cause = cause.getCause()) {
            if (cause instanceof RateLimitExceededException exception) {
                return new Refusal(exception);
            }
        }
        return null;
    }

    /**
     * Whether a client wants to read a page rather than a problem detail: it accepts HTML, and no JSON before it. Browsers
     * do where they show a page; programs and scripts do not.
     *
     * @param accept the {@code Accept} field of the request
     */
    public static boolean isPageWanted(@Nullable String accept) {
        if (accept == null || !accept.contains("text/")) {
            return false;
        }
        try {
            List<MediaType> ranges = MediaType.parseMediaTypes(accept);
            MimeTypeUtils.sortBySpecificity(ranges);
            for (MediaType range : ranges) {
                if (range.includes(MediaType.APPLICATION_PROBLEM_JSON) || range.includes(MediaType.APPLICATION_JSON)) {
                    return false;
                }
                if (range.includes(MediaType.TEXT_HTML)) {
                    return range.getQualityValue() > 0;
                }
            }
        } catch (InvalidMediaTypeException | InvalidMimeTypeException ex) {
            // Whoever sends this is no browser.
        }
        return false;
    }

    /** The value of {@code Retry-After}; null when no retry can succeed, or nobody knows when. */
    @Nullable
    public String retryAfter() {
        Long seconds = LimitFields.retryAfter(exception.decision());
        return seconds == null ? null : seconds.toString();
    }

    /** The body, in UTF-8. Written here, so that it is the same whatever converts other bodies. */
    public byte[] body(int status) {
        String name = json(exception.limit());
        String text = """
                {"type":"%s",\
                "title":"Request cannot be satisfied as assigned quota has been exceeded",\
                "status":%s,"detail":%s,"violated-policies":[%s]}""".formatted(TYPE, status, json(detail()), name);
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private String detail() {
        Decision decision = exception.decision();
        String start = "Rate limit '" + decision.limit() + "' is exceeded; ";
        String seconds = retryAfter();
        if (seconds != null) {
            return start + "retry after " + seconds + " s.";
        }
        return start + (decision.never() ? "no retry of this request can succeed." : "retry later.");
    }

    private static String json(String text) {
        StringBuilder json = new StringBuilder(text.length() + 2).append('"');
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (c == '"' || c == '\\') {
                json.append('\\').append(c);
            } else if (c < ' ') {
                json.append(String.format("\\u%04x", (int) c));
            } else {
                json.append(c);
            }
        }
        return json.append('"').toString();
    }
}
