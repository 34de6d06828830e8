package io.ratelimited.sample.demo;

import io.ratelimited.spring.DecisionObserver;
import io.ratelimited.spring.RateLimitDecision;
import java.time.Duration;
import org.springframework.stereotype.Component;
import org.springframework.web.context.request.RequestAttributes;
import org.springframework.web.context.request.RequestContextHolder;

/**
 * What was decided about the request of this thread. Any bean of type {@link DecisionObserver} receives every
 * decision; this one keeps it with the request for the answer.
 */
@Component
class LastDecision implements DecisionObserver {

    private static final String OUTCOME = LastDecision.class.getName() + ".outcome";
    private static final String WAITED = LastDecision.class.getName() + ".waited";

    @Override
    public void onDecision(RateLimitDecision decision) {
        RequestAttributes request = RequestContextHolder.getRequestAttributes();
        if (request != null) {
            request.setAttribute(OUTCOME, decision.outcome().tag(), RequestAttributes.SCOPE_REQUEST);
            request.setAttribute(WAITED, decision.waited(), RequestAttributes.SCOPE_REQUEST);
        }
    }

    String outcome() {
        return attribute(OUTCOME, "unlimited");
    }

    long waitedMillis() {
        return attribute(WAITED, Duration.ZERO).toMillis();
    }

    private static <T> T attribute(String name, T otherwise) {
        RequestAttributes request = RequestContextHolder.currentRequestAttributes();
        Object value = request.getAttribute(name, RequestAttributes.SCOPE_REQUEST);
        @SuppressWarnings("unchecked")
        T known = (T) value;
        return known == null ? otherwise : known;
    }
}
