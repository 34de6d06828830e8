package io.ratelimited.spring.internals.call;

import io.ratelimited.core.CanonicalKey;
import io.ratelimited.core.Decision;
import io.ratelimited.spring.DecisionObserver;
import io.ratelimited.spring.Outcome;
import io.ratelimited.spring.RateLimitDecision;
import io.ratelimited.spring.internals.text.KeyMask;
import io.ratelimited.spring.internals.text.LogText;
import io.ratelimited.spring.internals.text.PropertyText;

/** The log of decisions, one line each. An observer as those of applications: a log may fail, too. */
final class DecisionLog implements DecisionObserver {

    /** Its name has no class, so that a configuration that names it lasts. */
    static final LogText.Lines LINES = LogText.lines("io.ratelimited.decisions");

    @Override
    public void onDecision(RateLimitDecision event) {
        LINES.debug(line(event, event.decision()));
    }

    private static String line(RateLimitDecision event, Decision decision) {
        Outcome outcome = event.outcome();
        StringBuilder line = new StringBuilder("Rate limit '")
                .append(event.limit().name())
                .append("': ")
                .append(PropertyText.of(outcome));
        if (event.key() != null) {
            line.append(", key ").append(KeyMask.mask(CanonicalKey.text(event.key())));
        }
        line.append(", remaining ").append(decision.remaining());
        if (!event.waited().isZero()) {
            line.append(", waited ").append(PropertyText.rounded(event.waited()));
        }
        boolean over = outcome == Outcome.REJECTED || outcome == Outcome.SHADOWED;
        if (over && decision.keyMissing()) {
            line.append(", no key (missing-key: deny)");
        } else if (over && decision.never()) {
            line.append(", never admitted");
        } else if (over && decision.retryAfter() != null) {
            line.append(", retry after ").append(PropertyText.rounded(decision.retryAfter()));
        }
        if (decision.blocked()) {
            line.append(", blocked");
        }
        return line.append(", source ")
                .append(PropertyText.of(decision.source()))
                .toString();
    }
}
