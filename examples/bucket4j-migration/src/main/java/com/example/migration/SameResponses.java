package com.example.migration;

import io.ratelimited.core.Decision;
import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.spring.fields.RateLimitHeaderWriter;
import java.util.List;
import java.util.Map;
import java.util.function.BiConsumer;
import org.springframework.http.HttpStatus;
import org.springframework.stereotype.Component;
import org.springframework.web.bind.annotation.ExceptionHandler;
import org.springframework.web.bind.annotation.ResponseStatus;
import org.springframework.web.bind.annotation.RestControllerAdvice;

/** Header and body as clients know them. Retry-After is set in addition. */
@RestControllerAdvice
class SameResponses {

    @ExceptionHandler
    @ResponseStatus(HttpStatus.TOO_MANY_REQUESTS)
    Map<String, String> rejected(RateLimitExceededException rejection) {
        return Map.of("message", "Too many requests!");
    }

    @Component
    static class SameHeaders implements RateLimitHeaderWriter {

        @Override
        public void write(List<AppliedLimit> limits, BiConsumer<String, String> setter) {
            Decision decision = limits.get(0).decision();
            if (decision != null) {
                setter.accept("X-Rate-Limit-Remaining", String.valueOf(decision.remaining()));
            }
        }

        @Override
        public List<String> names() {
            return List.of("X-Rate-Limit-Remaining");
        }
    }
}
