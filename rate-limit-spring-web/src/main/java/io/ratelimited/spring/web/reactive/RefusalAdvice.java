package io.ratelimited.spring.web.reactive;

import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.RateLimiterClosedException;
import io.ratelimited.spring.call.InvalidPermitsException;
import io.ratelimited.spring.web.RefusalHandlers;
import org.springframework.core.Ordered;
import org.springframework.web.bind.annotation.ControllerAdvice;
import org.springframework.web.bind.annotation.ExceptionHandler;
import reactor.core.publisher.Mono;

/**
 * Leaves refusals to {@link ReactiveRefusals}, before advice of the application for {@code Exception} and the like can take
 * them. Only advice can keep an exception of a controller's method from other advice.
 */
public @ControllerAdvice final class RefusalAdvice implements Ordered {

    private final RefusalHandlers handlers;

    public RefusalAdvice(RefusalHandlers handlers) {
        this.handlers = handlers;
    }

    /** First, or behind an advice of the application that answers refusals itself. */
    @Override
    public int getOrder() {
        return handlers.areInAdvice(RefusalAdvice.class) ? LOWEST_PRECEDENCE : HIGHEST_PRECEDENCE;
    }

    @ExceptionHandler({RateLimitExceededException.class, InvalidPermitsException.class, RateLimiterClosedException.class
    })
    Mono<Void> refused(RuntimeException refusal) {
        return Mono.error(refusal);
    }
}
