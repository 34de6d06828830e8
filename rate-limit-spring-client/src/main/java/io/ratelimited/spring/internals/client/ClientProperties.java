package io.ratelimited.spring.internals.client;

import io.ratelimited.core.Policy;
import java.time.Duration;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Limits on outgoing HTTP calls.
 *
 * @param hosts Remote hosts of the client, such as api.partner.example, api.partner.example:8443 or *.partner.example.
 * @param limits Names of limits under rate-limit.limits; all of them must admit a call.
 * @param obey Which response headers are honored.
 * @param maxPause Maximum time for which a response can delay calls.
 * @param policy How a call is handled that cannot proceed immediately.
 * @param maxWait Maximum wait under WAIT; a call that would have to wait longer is rejected immediately.
 * @param key SpEL expression for the key of a call: host, method, uri, header('X-Account'); without it, all calls of the client share one state.
 */
public record ClientProperties(
        @Nullable List<String> hosts,
        @Nullable List<String> limits,
        List<Obey> obey,
        Duration maxPause,
        Policy policy,
        Duration maxWait,
        @Nullable String key) {

    /** Creates a record; a property that is not set, and so null, has its default. */
    @SuppressWarnings("ConstantValue") // properties that are not set are bound as null
    public ClientProperties {
        obey = obey == null ? List.of(Obey.RETRY_AFTER, Obey.RATE_LIMIT) : List.copyOf(obey);
        maxPause = maxPause == null ? Duration.ofMinutes(1) : maxPause;
        policy = policy == null ? Policy.WAIT : policy;
        maxWait = maxWait == null ? Duration.ofSeconds(5) : maxWait;
    }

    /** Response headers of the remote service that calls honor. */
    public enum Obey {
        /** Calls pause after a 429, 503 or 403 with Retry-After. */
        RETRY_AFTER,
        /** Calls stay within the quota that RateLimit, RateLimit-Policy and the X-RateLimit headers report. */
        RATE_LIMIT
    }
}
