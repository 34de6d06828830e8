package io.ratelimited.spring.actuate;

import io.ratelimited.core.CanonicalKey;
import io.ratelimited.spring.DecisionObserver;
import io.ratelimited.spring.NamedLimit;
import io.ratelimited.spring.Outcome;
import io.ratelimited.spring.RateLimitDecision;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Remembers the keys that each limit refused most, or would have refused under SHADOW; at most {@value #COUNTERS} keys a
 * limit. Thread-safe.
 */
final class RejectedKeys implements DecisionObserver {

    static final int COUNTERS = 128;

    private final Map<NamedLimit, TopKeys> refused = new ConcurrentHashMap<>();

    @Override
    public void onDecision(RateLimitDecision decision) {
        Outcome outcome = decision.outcome();
        Object key = decision.key();
        if (key != null && (outcome == Outcome.REJECTED || outcome == Outcome.SHADOWED)) {
            refused.computeIfAbsent(decision.limit(), added -> new TopKeys(COUNTERS))
                    .add(CanonicalKey.text(key));
        }
    }

    /** The most refused keys, most refused first. */
    List<TopKeys.Top> top(NamedLimit limit, int number) {
        TopKeys keys = refused.get(limit);
        return keys == null ? List.of() : keys.top(number);
    }
}
