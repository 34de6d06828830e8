package io.ratelimited.spring.diagnostics;

import io.ratelimited.spring.InvalidRateLimitException;
import org.springframework.boot.diagnostics.AbstractFailureAnalyzer;
import org.springframework.boot.diagnostics.FailureAnalysis;
import org.springframework.core.Ordered;
import org.springframework.core.annotation.Order;

/** Explains an invalid limit, before Spring Boot explains a failure around it, or its cause, such as an invalid pattern. */
@Order(Ordered.HIGHEST_PRECEDENCE)
final class InvalidRateLimitFailureAnalyzer extends AbstractFailureAnalyzer<InvalidRateLimitException> {

    @Override
    protected FailureAnalysis analyze(Throwable rootFailure, InvalidRateLimitException cause) {
        return new FailureAnalysis(cause.getMessage(), cause.remedy(), cause);
    }
}
