package io.ratelimited.spring.internals.overload;

import io.ratelimited.core.End;
import io.ratelimited.core.RateLimitExceededException;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** Finds the {@link End} of a call from what it has thrown. */
public final class CallEnd {

    private static final int DEEPEST = 32;

    /**
     * Supertypes of timeouts, and of rejections by others that are overloaded; by name, since their libraries need not be
     * there. A subclass counts as its supertype does.
     */
    static final Set<String> OVERLOADED = Set.of(
            "java.net.http.HttpTimeoutException",
            "java.sql.SQLTimeoutException",
            "java.sql.SQLTransientException",
            "java.util.concurrent.RejectedExecutionException",
            "java.util.concurrent.TimeoutException",
            "io.github.resilience4j.bulkhead.BulkheadFullException",
            "io.lettuce.core.RedisCommandTimeoutException",
            "io.netty.channel.ConnectTimeoutException",
            "io.netty.handler.timeout.TimeoutException",
            "io.r2dbc.spi.R2dbcTransientException",
            "jakarta.persistence.QueryTimeoutException",
            "kotlinx.coroutines.TimeoutCancellationException",
            "org.springframework.dao.TransientDataAccessException",
            "org.springframework.transaction.TransactionTimedOutException",
            "org.springframework.web.context.request.async.AsyncRequestTimeoutException");

    /** Supertypes of responses of remote services, whose status tells whether they are overloaded. */
    static final Set<String> RESPONSES = Set.of(
            "org.springframework.web.client.RestClientResponseException",
            "org.springframework.web.reactive.function.client.WebClientResponseException");

    private CallEnd() {}

    /**
     * The end of a call. A timeout or a rejection by another service counts also as the cause of another exception. A
     * rejection by a limit of the application is no sign of overload: otherwise one caller who has used up a quota could lower
     * the limit of all.
     *
     * @param error null if the call returned
     * @param cancelled whether the call was ended from outside
     */
    public static End of(@Nullable Throwable error, boolean cancelled) {
        Throwable cause = error;
        for (int depth = 0; cause != null && depth < DEEPEST; depth++, cause = cause.getCause()) {
            if (cause instanceof RateLimitExceededException) {
                return End.FAILED;
            }
            if (End.of(cause) == End.OVERLOADED
                    || isOneOf(OVERLOADED, cause.getClass())
                    || (isOneOf(RESPONSES, cause.getClass()) && isOverloaded(statusOf(cause)))) {
                return End.OVERLOADED;
            }
        }
        return cancelled ? End.CANCELLED : End.of(error);
    }

    private static boolean isOneOf(Set<String> supertypes, Class<?> thrown) {
        for (Class<?> type = thrown; type != null; type = type.getSuperclass()) {
            if (supertypes.contains(type.getName())) {
                return true;
            }
        }
        return false;
    }

    /** 503, 504, and the 429 of a remote service. */
    private static boolean isOverloaded(int status) {
        return status == 429 || status == 503 || status == 504;
    }

    /** The status of a response that was thrown, by the method that both clients of Spring have; 0 if it has none. */
    private static int statusOf(Throwable response) {
        try {
            Object status = response.getClass().getMethod("getStatusCode").invoke(response);
            return (int) status.getClass().getMethod("value").invoke(status);
        } catch (ReflectiveOperationException | RuntimeException ex) {
            return 0;
        }
    }

    /** The end of a request that a limit of the application has rejected, perhaps with a status of its own. */
    public static End ofRejection(int status) {
        return status >= 400 ? End.FAILED : End.ANSWERED;
    }

    /** The end of a request, from the status of its answer; what the client has done wrong says nothing about the load. */
    public static End ofStatus(int status) {
        if (status == 503 || status == 504) {
            return End.OVERLOADED;
        }
        return status >= 400 ? End.FAILED : End.ANSWERED;
    }
}
