package io.ratelimited.spring.internals.overload;

import static org.assertj.core.api.Assertions.assertThat;

import io.github.resilience4j.bulkhead.Bulkhead;
import io.github.resilience4j.bulkhead.BulkheadFullException;
import io.lettuce.core.RedisCommandTimeoutException;
import io.netty.channel.ConnectTimeoutException;
import io.netty.handler.timeout.ReadTimeoutException;
import io.r2dbc.spi.R2dbcTimeoutException;
import io.r2dbc.spi.R2dbcTransientResourceException;
import io.ratelimited.core.Decision;
import io.ratelimited.core.End;
import io.ratelimited.core.RateLimitExceededException;
import jakarta.persistence.QueryTimeoutException;
import java.io.IOException;
import java.net.SocketTimeoutException;
import java.net.http.HttpConnectTimeoutException;
import java.sql.SQLException;
import java.sql.SQLTransientConnectionException;
import java.sql.SQLTransientException;
import java.time.Duration;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletionException;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeoutException;
import java.util.stream.Stream;
import kotlinx.coroutines.TimeoutCancellationException;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.springframework.core.task.TaskRejectedException;
import org.springframework.dao.PessimisticLockingFailureException;
import org.springframework.dao.TransientDataAccessResourceException;
import org.springframework.http.HttpHeaders;
import org.springframework.http.HttpStatus;
import org.springframework.web.client.HttpClientErrorException;
import org.springframework.web.client.HttpServerErrorException;
import org.springframework.web.client.ResourceAccessException;
import org.springframework.web.client.UnknownHttpStatusCodeException;
import org.springframework.web.context.request.async.AsyncRequestTimeoutException;
import org.springframework.web.reactive.function.client.WebClientResponseException;

/** What the exception of a call says about the load. */
class CallEndTest {

    private static RateLimitExceededException refusal(@Nullable Duration retryAfter, boolean never) {
        return new RateLimitExceededException(new Decision(
                "inner", false, Duration.ZERO, retryAfter, never, 0, Duration.ZERO, Decision.Source.MEMORY));
    }

    static Stream<Throwable> signsOfOverload() {
        return Stream.of(
                new TimeoutException(),
                new SocketTimeoutException(),
                new HttpConnectTimeoutException("slow"),
                new SQLTransientConnectionException("the pool has no connection"),
                ReadTimeoutException.INSTANCE,
                new ConnectTimeoutException("no answer"),
                new RedisCommandTimeoutException(),
                new RejectedExecutionException("the pool has no thread"),
                new TaskRejectedException("the pool has no thread"),
                BulkheadFullException.createBulkheadFullException(Bulkhead.ofDefaults("reports")),
                new R2dbcTimeoutException("slow"),
                new R2dbcTransientResourceException("the pool has no connection"),
                new QueryTimeoutException("slow"),
                new AsyncRequestTimeoutException(),
                new TimeoutCancellationException("slow"),
                HttpServerErrorException.create(
                        HttpStatus.SERVICE_UNAVAILABLE, "busy", HttpHeaders.EMPTY, new byte[0], null),
                new UnknownHttpStatusCodeException(503, "busy", HttpHeaders.EMPTY, new byte[0], null),
                HttpClientErrorException.create(
                        HttpStatus.TOO_MANY_REQUESTS, "busy", HttpHeaders.EMPTY, new byte[0], null),
                WebClientResponseException.create(504, "late", HttpHeaders.EMPTY, new byte[0], null),
                new SQLTransientException("try again"),
                new PessimisticLockingFailureException("no lock"),
                new TransientDataAccessResourceException("try again"),
                new ResourceAccessException("GET", new SocketTimeoutException()),
                new CompletionException(new IllegalStateException(new TimeoutException())));
    }

    @ParameterizedTest
    @MethodSource
    void signsOfOverload(Throwable error) {
        assertThat(CallEnd.of(error, false)).isEqualTo(End.OVERLOADED);
    }

    static Stream<String> everyKnownNameIsThatOfAnException() {
        return Stream.concat(CallEnd.OVERLOADED.stream(), CallEnd.RESPONSES.stream())
                .sorted();
    }

    /** A name that is written wrongly would be found by nobody: such a call would count as a failure of its own. */
    @ParameterizedTest
    @MethodSource
    void everyKnownNameIsThatOfAnException(String name) throws ClassNotFoundException {
        assertThat(Class.forName(name, false, getClass().getClassLoader())).isAssignableTo(Throwable.class);
    }

    static Stream<Throwable> failuresOfTheCallAlone() {
        return Stream.of(
                new IllegalArgumentException(),
                new IOException("no such file"),
                HttpServerErrorException.create(
                        HttpStatus.INTERNAL_SERVER_ERROR, "broken", HttpHeaders.EMPTY, new byte[0], null),
                WebClientResponseException.create(404, "none", HttpHeaders.EMPTY, new byte[0], null),
                new SQLException("no such table"),
                // A limit that rejects is no overload: a caller who has used up a quota must not lower the limit of
                // all.
                refusal(null, false),
                new IllegalStateException(refusal(null, false)),
                refusal(Duration.ofSeconds(1), false),
                refusal(null, true));
    }

    @ParameterizedTest
    @MethodSource
    void failuresOfTheCallAlone(Throwable error) {
        assertThat(CallEnd.of(error, false)).isEqualTo(End.FAILED);
    }

    @Test
    void whatWasEndedFromOutsideSaysNothingUnlessItsTimeWasOver() {
        assertThat(CallEnd.of(null, false)).isEqualTo(End.ANSWERED);
        assertThat(CallEnd.of(null, true)).isEqualTo(End.CANCELLED);
        assertThat(CallEnd.of(new CancellationException(), true)).isEqualTo(End.CANCELLED);
        assertThat(CallEnd.of(new IOException("broken pipe"), true)).isEqualTo(End.CANCELLED);
        assertThat(CallEnd.of(new InterruptedException(), false)).isEqualTo(End.CANCELLED);
        assertThat(CallEnd.of(new TimeoutException(), true)).isEqualTo(End.OVERLOADED);
    }

    @Test
    void aChainOfCausesThatHasNoEndIsReadOnlySoFar() {
        IllegalStateException one = new IllegalStateException("one");
        one.initCause(new IllegalStateException("two", one));
        assertThat(CallEnd.of(one, false)).isEqualTo(End.FAILED);
    }

    @ParameterizedTest
    @CsvSource({
        "0,ANSWERED",
        "200,ANSWERED",
        "304,ANSWERED",
        "404,FAILED",
        "429,FAILED",
        "500,FAILED",
        "503,OVERLOADED",
        "504,OVERLOADED"
    })
    void aStatusSaysHowARequestEnded(int status, End end) {
        assertThat(CallEnd.ofStatus(status)).isEqualTo(end);
    }
}
