package io.ratelimited.spring.diagnostics;

import io.ratelimited.spring.InvalidRateLimitException;
import org.springframework.boot.diagnostics.AbstractFailureAnalyzer;
import org.springframework.boot.diagnostics.FailureAnalysis;

/** Explains an invalid limit. */
final class InvalidRateLimitFailureAnalyzer extends AbstractFailureAnalyzer<InvalidRateLimitException> {

    @Override
    protected FailureAnalysis analyze(Throwable rootFailure, InvalidRateLimitException cause) {
        return new FailureAnalysis(cause.getMessage(), cause.remedy(), cause);
    }
}
