package io.ratelimited.spring.internals.web.graphql;

import graphql.ErrorClassification;
import graphql.GraphQLError;
import graphql.GraphqlErrorBuilder;
import graphql.schema.DataFetchingEnvironment;
import io.ratelimited.core.Decision;
import io.ratelimited.spring.internals.expression.InvalidCallException;
import io.ratelimited.spring.internals.limit.LimitRegistry;
import io.ratelimited.spring.internals.web.InvalidCallLog;
import io.ratelimited.spring.internals.web.Rejection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import org.springframework.graphql.execution.DataFetcherExceptionResolver;
import org.springframework.graphql.execution.ErrorType;
import org.springframework.graphql.execution.SubscriptionExceptionResolver;
import org.springframework.http.HttpStatus;
import reactor.core.publisher.Mono;

/**
 * Makes an error of a refused field or subscription: Spring for GraphQL would log each as a failure of the server, without a
 * word to the client. One request may have any number of refused fields. Behind the resolvers of the application.
 */
public record GraphQlRejections(LimitRegistry limits, InvalidCallLog log)
        implements DataFetcherExceptionResolver, SubscriptionExceptionResolver {

    private static final ErrorClassification RATE_LIMITED = ErrorClassification.errorClassification("RATE_LIMITED");

    private static final ErrorClassification UNAVAILABLE = ErrorClassification.errorClassification("UNAVAILABLE");

    @Override
    public Mono<List<GraphQLError>> resolveException(Throwable failure, DataFetchingEnvironment field) {
        return resolve(failure, () -> GraphqlErrorBuilder.newError(field));
    }

    @Override
    public Mono<List<GraphQLError>> resolveException(Throwable failure) {
        return resolve(failure, GraphqlErrorBuilder::newError);
    }

    /** Empty if it is no refusal: then the next resolver is asked. */
    private Mono<List<GraphQLError>> resolve(Throwable failure, Supplier<GraphqlErrorBuilder<?>> error) {
        Rejection refusal = Rejection.in(failure, HttpStatus.TOO_MANY_REQUESTS.value(), limits::findsItsLimit);
        if (refusal == null) {
            return Mono.empty();
        }
        if (refusal.exception() instanceof InvalidCallException invalid) {
            log.log(invalid);
        }
        Decision decision = refusal.decision();
        return Mono.just(List.of(error.get()
                .message("%s", refusal.detail())
                .errorType(classification(refusal))
                .extensions(decision == null ? Map.of() : extensions(refusal, decision))
                .build()));
    }

    private static ErrorClassification classification(Rejection refusal) {
        if (refusal.status() == HttpStatus.SERVICE_UNAVAILABLE.value()) {
            return UNAVAILABLE;
        }
        return refusal.decision() == null ? ErrorType.BAD_REQUEST : RATE_LIMITED;
    }

    private static Map<String, Object> extensions(Rejection refusal, Decision decision) {
        Map<String, Object> extensions = new LinkedHashMap<>();
        extensions.put("limit", decision.limit());
        Long seconds = refusal.retryAfter();
        if (seconds != null) {
            extensions.put("retryAfter", seconds);
        }
        if (decision.blocked()) {
            extensions.put("blocked", true);
        }
        return extensions;
    }
}
