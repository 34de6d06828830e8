package io.ratelimited.spring.client;

import io.ratelimited.core.Policy;
import java.time.Duration;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Limits on calls to others.
 *
 * @param hosts Hosts that the client calls, such as api.partner.example, api.partner.example:8443 or *.partner.example.
 * @param limits Names of limits under rate-limit.limits that pace the calls; all of them must agree.
 * @param obey What the calls obey that answers say.
 * @param maxPause Longest pause that an answer can ask for.
 * @param policy What becomes of a call that may not go at once.
 * @param maxWait Longest wait under wait; a call that could not go by then is refused at once.
 * @param key SpEL expression that divides the state of the client: host, method, uri, header('X-Account'); one state without it.
 */
public record ClientProperties(
        @Nullable List<String> hosts,
        @Nullable List<String> limits,
        List<Obey> obey,
        Duration maxPause,
        Policy policy,
        Duration maxWait,
        @Nullable String key) {

    /** Makes a record; what is left out, and so null, has its default. */
    @SuppressWarnings("ConstantValue") // properties that are not set are bound as null
    public ClientProperties {
        obey = obey == null ? List.of(Obey.RETRY_AFTER, Obey.RATE_LIMIT) : List.copyOf(obey);
        maxPause = maxPause == null ? Duration.ofMinutes(1) : maxPause;
        policy = policy == null ? Policy.WAIT : policy;
        maxWait = maxWait == null ? Duration.ofSeconds(5) : maxWait;
    }

    /** Answers of the other side that calls obey. */
    public enum Obey {
        /** Calls pause after a 429 or 503 with Retry-After. */
        RETRY_AFTER,
        /** Calls keep within what RateLimit, RateLimit-Policy and the X-RateLimit fields say is left. */
        RATE_LIMIT
    }
}
