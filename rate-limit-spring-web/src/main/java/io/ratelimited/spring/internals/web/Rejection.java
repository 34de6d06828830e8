package io.ratelimited.spring.internals.web;

import io.ratelimited.core.Decision;
import io.ratelimited.core.Decision.Source;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.RateLimiterClosedException;
import io.ratelimited.spring.internals.expression.InvalidCallException;
import io.ratelimited.spring.internals.limit.LimitRegistry;
import java.net.URI;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.BiConsumer;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;
import org.springframework.core.annotation.AnnotatedElementUtils;
import org.springframework.http.HttpHeaders;
import org.springframework.http.HttpStatus;
import org.springframework.http.HttpStatusCode;
import org.springframework.http.InvalidMediaTypeException;
import org.springframework.http.MediaType;
import org.springframework.util.InvalidMimeTypeException;
import org.springframework.util.MimeTypeUtils;
import org.springframework.web.ErrorResponse;
import org.springframework.web.bind.annotation.ResponseStatus;
import org.springframework.web.server.ResponseStatusException;

/**
 * A rejection as an exception of Spring that knows its response, on both stacks: status, headers and problem detail of RFC
 * 9457. The problem is of the type {@code quota-exceeded} that draft-ietf-httpapi-ratelimit-headers registers, or {@code
 * abnormal-usage-detected} if a limit has blocked the caller; a request for a number of permits that no call can have is a bad
 * request instead, and one that waited when the application stopped, or that nobody could decide, finds the service
 * unavailable. So does one that a limit rejects which finds by itself how much the service can do: its problem is of the type
 * {@code temporary-reduced-capacity}. Has no stack trace.
 */
public final class Rejection extends ResponseStatusException {

    private static final long serialVersionUID = 1L;

    public static final String TYPE = "https://iana.org/assignments/http-problem-types#quota-exceeded";

    /** The type of a refusal by a limit that has blocked the key of the caller. */
    public static final String BLOCKED_TYPE = "https://iana.org/assignments/http-problem-types#abnormal-usage-detected";

    public static final String TYPE_OVERLOADED =
            "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity";

    /** Not parsed for each rejection. */
    private static final URI QUOTA_URI = URI.create(TYPE);

    private static final URI BLOCKED_URI = URI.create(BLOCKED_TYPE);
    private static final URI OVERLOADED_URI = URI.create(TYPE_OVERLOADED);

    /** The longest time to retry, in seconds, after an overload, whose end nobody knows. */
    private static final int LONGEST_OVERLOAD = 3;

    private static final List<MediaType> PROBLEMS =
            List.of(MediaType.APPLICATION_PROBLEM_JSON, MediaType.APPLICATION_JSON, MediaType.APPLICATION_PROBLEM_XML);

    /** Causes may go in circles. */
    private static final int DEEPEST = 32;

    private final boolean overloaded;
    private final @Nullable Decision decision;
    private final @Nullable Long retryAfter;

    /**
     * @param rejection a {@link RateLimitExceededException}, an {@link InvalidCallException} or a {@link
     *     RateLimiterClosedException}
     * @param status the HTTP status of the response
     * @param overloaded whether it is the service that has too much to do, and not the caller who asks too much
     */
    public Rejection(RuntimeException rejection, int status, boolean overloaded) {
        super(HttpStatusCode.valueOf(status), detail(rejection, overloaded), rejection);
        this.overloaded = overloaded;
        this.decision = decision(rejection);
        this.retryAfter = decision == null ? null : retryAfter(decision, overloaded);
        if (overloaded) {
            setType(OVERLOADED_URI);
            setTitle("Request cannot be satisfied due to temporary server capacity constraints");
        } else if (rejection instanceof RateLimitExceededException exceeded && !isUndecided()) {
            setType(isBlocked() ? BLOCKED_URI : QUOTA_URI);
            setTitle(
                    isBlocked()
                            ? "Request not satisfied due to detection of abnormal request pattern"
                            : "Request cannot be satisfied as assigned quota has been exceeded");
            getBody().setProperty("violated-policies", exceeded.limits());
        }
    }

    /**
     * The rejection that an exception is or was caused by; null if none.
     *
     * @param status of requests over a limit
     * @param findsItsLimit whether the limit of a name finds by itself how many calls to admit
     */
    public static @Nullable Rejection in(Throwable failure, int status, Predicate<String> findsItsLimit) {
        RuntimeException cause = cause(failure);
        if (cause instanceof RateLimitExceededException exceeded) {
            boolean undecided = exceeded.decision().source() == Source.UNAVAILABLE;
            boolean overloaded = !undecided && findsItsLimit.test(exceeded.limit());
            boolean unavailable = undecided || overloaded;
            return new Rejection(exceeded, unavailable ? HttpStatus.SERVICE_UNAVAILABLE.value() : status, overloaded);
        }
        if (cause == null) {
            return null;
        }
        HttpStatus own =
                cause instanceof InvalidCallException ? HttpStatus.BAD_REQUEST : HttpStatus.SERVICE_UNAVAILABLE;
        return new Rejection(cause, own.value(), false);
    }

    private static @Nullable RuntimeException cause(Throwable failure) {
        Throwable cause = failure;
        for (int depth = 0; cause != null && depth < DEEPEST; depth++, cause = cause.getCause()) {
            if (cause instanceof RateLimitExceededException
                    || cause instanceof InvalidCallException
                    || cause instanceof RateLimiterClosedException) {
                return (RuntimeException) cause;
            }
        }
        return null;
    }

    /** Returns whether an exception is a rejection, or was caused by one. */
    public static boolean isCauseOf(Throwable failure) {
        return cause(failure) != null;
    }

    /** Returns whether this is the rejection that an exception is or was caused by. */
    public boolean isIn(Throwable failure) {
        Throwable cause = failure;
        for (int depth = 0; cause != null && depth < DEEPEST; depth++, cause = cause.getCause()) {
            if (cause == getCause()) {
                return true;
            }
        }
        return false;
    }

    /** Returns whether an exception, or one that has caused it, knows its status: it is the application that has said so. */
    public static boolean hasStatus(Throwable failure) {
        Throwable cause = failure;
        for (int depth = 0; cause != null && depth < DEEPEST; depth++, cause = cause.getCause()) {
            if (cause instanceof ErrorResponse
                    || AnnotatedElementUtils.hasAnnotation(cause.getClass(), ResponseStatus.class)) {
                return true;
            }
        }
        return false;
    }

    /** The same rejection, not yet worded by the application. */
    Rejection unworded() {
        return new Rejection(exception(), status(), overloaded);
    }

    /** Rejections are many, and their traces say where limits are decided. */
    @Override
    public synchronized Throwable fillInStackTrace() {
        return this;
    }

    /** The rejection that the application sees. */
    public RuntimeException exception() {
        return (RuntimeException) Objects.requireNonNull(getCause());
    }

    /** The HTTP status of the response. */
    public int status() {
        return getStatusCode().value();
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
    private static List<MediaType> accepted(@Nullable String accept) {
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
        return decision;
    }

    private static @Nullable Decision decision(RuntimeException rejection) {
        return rejection instanceof RateLimitExceededException exceeded ? exceeded.decision() : null;
    }

    private boolean isUndecided() {
        return decision != null && decision.source() == Source.UNAVAILABLE;
    }

    private boolean isBlocked() {
        return decision != null && decision.blocked();
    }

    /**
     * Reports the decision to a request that does not know it, since it was made on another thread. Not where the caller may
     * have had other numbers than the limit, which nobody knows here.
     */
    public void report(LimitRegistry limits, Predicate<String> known, BiConsumer<Limit, Decision> request) {
        Decision rejection = decision;
        if (rejection != null && !known.test(rejection.limit())) {
            limits.all().stream()
                    .filter(limit -> limit.name().equals(rejection.limit()) && limit.showsHeaders())
                    .filter(limit -> !limit.isUsedWithTiers() && limit.ownBudgets() == 0)
                    .forEach(limit -> request.accept(limit.limit(), rejection));
        }
    }

    /**
     * The seconds of {@code Retry-After}; null when no retry can succeed, or nobody knows when. After an overload from 1 to 3,
     * by chance, so that the clients that are refused at one time do not come back at one time.
     */
    public @Nullable Long retryAfter() {
        return retryAfter;
    }

    private static @Nullable Long retryAfter(Decision decision, boolean overloaded) {
        // The number of the object is random, and stays the same for all parts of the answer.
        return overloaded && decision.retryAfter() == null && !decision.never()
                ? Long.valueOf(1 + System.identityHashCode(decision) % LONGEST_OVERLOAD)
                : LimitHeaders.retryAfter(decision);
    }

    /** The headers that every response to the rejection has, the application's own too. */
    public Map<String, String> fields() {
        return fields(retryAfter);
    }

    /** The headers that every response to a rejection has, the application's own too. */
    public static Map<String, String> fields(Decision rejection, boolean overloaded) {
        return fields(retryAfter(rejection, overloaded));
    }

    private static Map<String, String> fields(@Nullable Long seconds) {
        return seconds == null
                ? Map.of(HttpHeaders.CACHE_CONTROL, "no-store")
                : Map.of(HttpHeaders.CACHE_CONTROL, "no-store", HttpHeaders.RETRY_AFTER, seconds.toString());
    }

    /** None: the response has its {@link #fields() headers} before anybody writes its body. */
    @Override
    public HttpHeaders getHeaders() {
        return new HttpHeaders(); // a handler of the application may add its own
    }

    /**
     * The value of {@code Access-Control-Expose-Headers} that lets scripts of an origin that CORS allows read the refusal.
     *
     * @param exposed the fields that the application exposes itself
     * @param style the fields that responses have
     */
    public static String exposed(Collection<String> exposed, LimitHeaders.Style style) {
        Set<String> names = new TreeSet<>(String.CASE_INSENSITIVE_ORDER);
        exposed.forEach(list -> names.addAll(List.of(list.strip().split("\\s*,\\s*"))));
        names.add(HttpHeaders.RETRY_AFTER);
        names.addAll(style.names());
        return String.join(", ", names);
    }

    /** The rejection in a sentence, for people. */
    public String detail() {
        return Objects.requireNonNull(getReason());
    }

    private static String detail(RuntimeException rejection, boolean overloaded) {
        Decision decision = decision(rejection);
        if (decision == null) {
            return rejection instanceof InvalidCallException invalid
                    ? invalid.detail()
                    : "The application is stopping.";
        }
        if (decision.source() == Source.UNAVAILABLE) {
            return "Rate limit '" + decision.limit() + "' is unavailable; retry later.";
        }
        if (decision.keyMissing()) {
            return "The request has no key for rate limit '" + decision.limit()
                    + "', which rejects such requests; no retry of this request can succeed.";
        }
        String start = overloaded
                ? "The service is overloaded (rate limit '" + decision.limit() + "'); "
                : "Rate limit '" + decision.limit()
                        + (decision.blocked() ? "' has blocked this caller; " : "' is exceeded; ");
        Long seconds = retryAfter(decision, overloaded);
        if (seconds != null) {
            return start + "retry after " + seconds + " s.";
        }
        return start + (decision.never() ? "no retry of this request can succeed." : "retry later.");
    }

    /** Returns the attributes of error pages: {@code message}, and {@code retryAfter} in seconds where that is known. */
    public Map<String, Object> attributes() {
        Map<String, Object> attributes = new LinkedHashMap<>();
        attributes.put("message", detail());
        if (retryAfter != null) {
            attributes.put("retryAfter", retryAfter);
        }
        return attributes;
    }

    @Override
    public String getTypeMessageCode() {
        return ErrorResponse.getDefaultTypeMessageCode(exception().getClass()) + ending();
    }

    @Override
    public String getTitleMessageCode() {
        return ErrorResponse.getDefaultTitleMessageCode(exception().getClass()) + ending();
    }

    @Override
    public String getDetailMessageCode() {
        return ErrorResponse.getDefaultDetailMessageCode(exception().getClass(), null) + ending();
    }

    /**
     * The codes for a request that nobody could decide end with {@code .unavailable}, those for one that the service has no room
     * for with {@code .overloaded}, and those for a caller who is blocked with {@code .blocked}.
     */
    private String ending() {
        if (isUndecided()) {
            return ".unavailable";
        }
        return overloaded ? ".overloaded" : isBlocked() ? ".blocked" : "";
    }

    /** The name of the limit, and the seconds to wait: 0 if nobody knows them. */
    @Override
    public Object[] getDetailMessageArguments() {
        return new Object[] {decision == null ? "" : decision.limit(), retryAfter == null ? 0L : retryAfter};
    }
}
