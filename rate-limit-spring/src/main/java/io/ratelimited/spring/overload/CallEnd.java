package io.ratelimited.spring.overload;

import io.ratelimited.core.Decision;
import io.ratelimited.core.End;
import io.ratelimited.core.RateLimitExceededException;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** Finds the {@link End} of a call from what it has thrown. */
public final class CallEnd {

    private static final int DEEPEST = 32;

    /** Timeouts, and refusals by others that have too much to do, of libraries that need not be there. */
    static final Set<String> OVERLOADED = Set.of(
            "java.net.http.HttpTimeoutException",
            "java.sql.SQLTimeoutException",
            "java.sql.SQLTransientConnectionException",
            "java.util.concurrent.RejectedExecutionException",
            "io.github.resilience4j.bulkhead.BulkheadFullException",
            "io.lettuce.core.RedisCommandTimeoutException",
            "io.netty.channel.ConnectTimeoutException",
            "io.netty.handler.timeout.TimeoutException",
            "io.r2dbc.spi.R2dbcTimeoutException",
            "io.r2dbc.spi.R2dbcTransientResourceException",
            "jakarta.persistence.QueryTimeoutException",
            "kotlinx.coroutines.TimeoutCancellationException",
            "org.springframework.dao.QueryTimeoutException",
            "org.springframework.transaction.TransactionTimedOutException",
            "org.springframework.web.client.HttpServerErrorException$ServiceUnavailable",
            "org.springframework.web.client.HttpServerErrorException$GatewayTimeout",
            "org.springframework.web.client.HttpClientErrorException$TooManyRequests",
            "org.springframework.web.context.request.async.AsyncRequestTimeoutException",
            "org.springframework.web.reactive.function.client.WebClientResponseException$ServiceUnavailable",
            "org.springframework.web.reactive.function.client.WebClientResponseException$GatewayTimeout",
            "org.springframework.web.reactive.function.client.WebClientResponseException$TooManyRequests");

    private CallEnd() {}

    /**
     * The end of a call. A timeout or a refusal counts also as the cause of another exception. A caller who has used up a quota
     * is no sign of overload: otherwise one such caller could lower the limit of all.
     *
     * @param error null if the call returned
     * @param cancelled whether the call was ended from outside
     */
    public static End of(@Nullable Throwable error, boolean cancelled) {
        Throwable cause = error;
        for (int depth = 0; cause != null && depth < DEEPEST; depth++, cause = cause.getCause()) {
            if (cause instanceof RateLimitExceededException refusal) {
                return isQuota(refusal.decision()) ? End.FAILED : End.OVERLOADED;
            }
            if (End.of(cause) == End.OVERLOADED || isKnown(cause.getClass())) {
                return End.OVERLOADED;
            }
        }
        return cancelled ? End.CANCELLED : End.of(error);
    }

    /** A refusal by a limit of calls in flight knows no time to retry. */
    private static boolean isQuota(Decision refusal) {
        return refusal.never() || refusal.retryAfter() != null || refusal.source() == Decision.Source.UNAVAILABLE;
    }

    private static boolean isKnown(Class<?> thrown) {
        for (Class<?> type = thrown; type != null; type = type.getSuperclass()) {
            if (OVERLOADED.contains(type.getName())) {
                return true;
            }
        }
        return false;
    }

    /** The end of a request, from the status of its answer; what the client has done wrong says nothing about the load. */
    public static End ofStatus(int status) {
        if (status == 503 || status == 504) {
            return End.OVERLOADED;
        }
        return status >= 400 ? End.FAILED : End.ANSWERED;
    }
}
