package io.ratelimited.spring.web;

import io.ratelimited.core.Decision;
import io.ratelimited.core.Decision.Source;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.RateLimiterClosedException;
import io.ratelimited.spring.call.InvalidPermitsException;
import io.ratelimited.spring.limit.LimitRegistry;
import java.net.URI;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.BiConsumer;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;
import org.springframework.http.HttpHeaders;
import org.springframework.http.HttpStatus;
import org.springframework.http.HttpStatusCode;
import org.springframework.http.InvalidMediaTypeException;
import org.springframework.http.MediaType;
import org.springframework.util.InvalidMimeTypeException;
import org.springframework.util.MimeTypeUtils;
import org.springframework.web.ErrorResponse;

/**
 * The answer to a request that its limits refused, on both stacks: status, header fields and problem detail of RFC
 * 9457. The problem is of the type {@code quota-exceeded} that draft-ietf-httpapi-ratelimit-headers registers, or {@code
 * abnormal-usage-detected} if a limit has blocked the caller; a request for a number of permits that no call can have is a bad
 * request instead, and one that waited when the application stopped, or that nobody could decide, finds the service
 * unavailable. So does one that a limit refuses which finds by itself how much the service can do: its problem is of the type
 * {@code temporary-reduced-capacity}.
 *
 * @param exception a {@link RateLimitExceededException}, an {@link InvalidPermitsException} or a {@link
 *     RateLimiterClosedException}
 * @param status the HTTP status of the answer
 * @param overloaded whether it is the service that has too much to do, and not the caller who asks too much
 */
public record Refusal(RuntimeException exception, int status, boolean overloaded) {

    public static final String TYPE = "https://iana.org/assignments/http-problem-types#quota-exceeded";

    /** The type of a refusal by a limit that has blocked the key of the caller. */
    public static final String BLOCKED_TYPE = "https://iana.org/assignments/http-problem-types#abnormal-usage-detected";

    public static final String TYPE_OVERLOADED =
            "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity";

    /** The longest time to retry, in seconds, after an overload, whose end nobody knows. */
    private static final int LONGEST_OVERLOAD = 3;

    private static final List<MediaType> PROBLEMS =
            List.of(MediaType.APPLICATION_PROBLEM_JSON, MediaType.APPLICATION_JSON, MediaType.APPLICATION_PROBLEM_XML);

    private static final String UNAVAILABLE = ".unavailable";
    private static final String BLOCKED = ".blocked";
    private static final String OVERLOADED = ".overloaded";

    private static final int DEEPEST = 32;

    /**
     * The refusal that an exception is or was caused by, as exception handlers look for causes; null if none.
     *
     * @param status of requests over a limit
     * @param findsItsLimit whether the limit of a name finds by itself how many calls to admit
     */
    public static @Nullable Refusal in(Throwable failure, int status, Predicate<String> findsItsLimit) {
        Throwable cause = failure;
        for (int depth = 0; cause != null && depth < DEEPEST; depth++, cause = cause.getCause()) {
            if (cause instanceof RateLimitExceededException exceeded) {
                boolean undecided = exceeded.decision().source() == Source.UNAVAILABLE;
                boolean overloaded = !undecided && findsItsLimit.test(exceeded.limit());
                boolean unavailable = undecided || overloaded;
                return new Refusal(exceeded, unavailable ? HttpStatus.SERVICE_UNAVAILABLE.value() : status, overloaded);
            }
            if (cause instanceof InvalidPermitsException invalid) {
                return new Refusal(invalid, HttpStatus.BAD_REQUEST.value(), false);
            }
            if (cause instanceof RateLimiterClosedException closed) {
                return new Refusal(closed, HttpStatus.SERVICE_UNAVAILABLE.value(), false);
            }
        }
        return null;
    }

    /**
     * Returns whether a client wants to read a page rather than a problem detail: it accepts HTML, and no JSON or problem
     * before it. Browsers do where they show a page; programs and scripts do not.
     *
     * @param accept the {@code Accept} field of the request
     */
    public static boolean isPageWanted(@Nullable String accept) {
        if (accept == null || !accept.contains("text/")) {
            return false;
        }
        for (MediaType range : accepted(accept)) {
            if (PROBLEMS.stream().anyMatch(range::includes)) {
                return false;
            }
            if (range.includes(MediaType.TEXT_HTML)) {
                return range.getQualityValue() > 0;
            }
        }
        return false;
    }

    /** Returns the types that a client accepts, the most wanted first; all types if the field is missing or unreadable. */
    static List<MediaType> accepted(@Nullable String accept) {
        try {
            List<MediaType> ranges = MediaType.parseMediaTypes(accept);
            MimeTypeUtils.sortBySpecificity(ranges);
            return ranges.isEmpty() ? List.of(MediaType.ALL) : ranges;
        } catch (InvalidMediaTypeException | InvalidMimeTypeException ex) {
            return List.of(MediaType.ALL);
        }
    }

    /** The decision that refused the request; null if it never came to one. */
    public @Nullable Decision decision() {
        return exception instanceof RateLimitExceededException exceeded ? exceeded.decision() : null;
    }

    /** Returns whether nobody could decide, so that nothing is known of the budget of the caller. */
    public boolean isUndecided() {
        Decision decision = decision();
        return decision != null && decision.source() == Source.UNAVAILABLE;
    }

    /** Returns whether a limit has blocked the key of the caller. */
    public boolean isBlocked() {
        Decision decision = decision();
        return decision != null && decision.blocked();
    }

    /** Reports the decision to a request that does not know it, since it was made on another thread. */
    public void report(LimitRegistry limits, Predicate<String> known, BiConsumer<Limit, Decision> request) {
        Decision decision = decision();
        if (decision != null && !known.test(decision.limit())) {
            limits.all().stream()
                    .filter(limit -> limit.name().equals(decision.limit()) && limit.showsHeaders())
                    .forEach(limit -> request.accept(limit.limit(), decision));
        }
    }

    /**
     * The seconds of {@code Retry-After}; null when no retry can succeed, or nobody knows when. After an overload from 1 to 3,
     * by chance, so that the clients that are refused at one time do not come back at one time.
     */
    public @Nullable Long retryAfter() {
        Decision decision = decision();
        if (decision == null) {
            return null;
        }
        // The number of the object is random, and stays the same for all parts of the answer.
        return overloaded && decision.retryAfter() == null && !decision.never()
                ? Long.valueOf(1 + System.identityHashCode(decision) % LONGEST_OVERLOAD)
                : LimitFields.retryAfter(decision);
    }

    /** The fields that every answer to the refusal has, the application's own too. */
    public Map<String, String> fields() {
        Map<String, String> fields = new LinkedHashMap<>();
        fields.put(HttpHeaders.CACHE_CONTROL, "no-store");
        Long seconds = retryAfter();
        if (seconds != null) {
            fields.put(HttpHeaders.RETRY_AFTER, seconds.toString());
        }
        return fields;
    }

    /**
     * The value of {@code Access-Control-Expose-Headers} that lets scripts of an origin that CORS allows read the refusal.
     *
     * @param exposed the fields that the application exposes itself
     * @param style the fields that responses have
     */
    public static String exposed(Collection<String> exposed, LimitFields.Style style) {
        Set<String> names = new TreeSet<>(String.CASE_INSENSITIVE_ORDER);
        exposed.forEach(list -> names.addAll(List.of(list.strip().split("\\s*,\\s*"))));
        names.add(HttpHeaders.RETRY_AFTER);
        names.addAll(style.names());
        return String.join(", ", names);
    }

    /** The refusal in a sentence, for people. */
    public String detail() {
        Decision decision = decision();
        if (exception instanceof RateLimiterClosedException) {
            return "The application stops.";
        }
        if (decision == null) {
            return "The request asks for a number of permits that is no number of at least 0.";
        }
        if (isUndecided()) {
            return "Rate limit '" + decision.limit() + "' cannot be decided at present; retry later.";
        }
        String start = overloaded
                ? "The service has too much to do (rate limit '" + decision.limit() + "'); "
                : "Rate limit '" + decision.limit() + (isBlocked() ? "' has blocked this caller; " : "' is exceeded; ");
        Long seconds = retryAfter();
        if (seconds != null) {
            return start + "retry after " + seconds + " s.";
        }
        return start + (decision.never() ? "no retry of this request can succeed." : "retry later.");
    }

    /** Returns the attributes of error pages: {@code message}, and {@code retryAfter} in seconds where that is known. */
    public Map<String, Object> attributes() {
        Map<String, Object> attributes = new LinkedHashMap<>();
        attributes.put("message", detail());
        Long seconds = retryAfter();
        if (seconds != null) {
            attributes.put("retryAfter", seconds);
        }
        return attributes;
    }

    /**
     * The answer to programs, with the message codes of the exception: the arguments of its detail are the name of the limit and
     * the seconds to wait, 0 if nobody knows them. The codes for a request that nobody could decide end with {@code
     * .unavailable}, those for one that the service has no room for with {@code .overloaded}, and those for a caller who is
     * blocked with {@code .blocked}.
     */
    ErrorResponse.Builder problem() {
        Decision decision = decision();
        Long seconds = retryAfter();
        ErrorResponse.Builder problem = ErrorResponse.builder(exception, HttpStatusCode.valueOf(status), detail())
                .detailMessageArguments(decision == null ? "" : decision.limit(), seconds == null ? 0L : seconds);
        if (isUndecided()) {
            return withCodes(problem, UNAVAILABLE);
        }
        if (overloaded) {
            return withCodes(problem, OVERLOADED)
                    .type(URI.create(TYPE_OVERLOADED))
                    .title("Request cannot be satisfied due to temporary server capacity constraints");
        }
        if (!(exception instanceof RateLimitExceededException exceeded)) {
            return problem;
        }
        problem.property("violated-policies", exceeded.limits());
        return isBlocked()
                ? withCodes(problem, BLOCKED)
                        .type(URI.create(BLOCKED_TYPE))
                        .title("Request not satisfied due to detection of abnormal request pattern")
                : problem.type(URI.create(TYPE))
                        .title("Request cannot be satisfied as assigned quota has been exceeded");
    }

    private ErrorResponse.Builder withCodes(ErrorResponse.Builder problem, String ending) {
        Class<?> type = exception.getClass();
        return problem.typeMessageCode(ErrorResponse.getDefaultTypeMessageCode(type) + ending)
                .titleMessageCode(ErrorResponse.getDefaultTitleMessageCode(type) + ending)
                .detailMessageCode(ErrorResponse.getDefaultDetailMessageCode(type, null) + ending);
    }
}
