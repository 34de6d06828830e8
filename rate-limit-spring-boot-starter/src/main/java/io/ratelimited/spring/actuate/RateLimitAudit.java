package io.ratelimited.spring.actuate;

import io.ratelimited.spring.RateLimitChangedEvent;
import io.ratelimited.spring.RateLimitChangedEvent.Scope;
import io.ratelimited.spring.RateLimitResetEvent;
import io.ratelimited.spring.internals.text.PropertyText;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.actuate.audit.listener.AuditApplicationEvent;
import org.springframework.context.ApplicationEventPublisher;
import org.springframework.context.ApplicationListener;
import org.springframework.context.PayloadApplicationEvent;
import org.springframework.core.Ordered;

/** Publishes every change of a limit, and every reset of a key, as an audit event of Spring Boot. Thread-safe. */
record RateLimitAudit(ApplicationEventPublisher events)
        implements ApplicationListener<PayloadApplicationEvent<?>>, Ordered {

    private static final String CHANGED = "RATE_LIMIT_CHANGED";
    private static final String RESET = "RATE_LIMIT_RESET";

    /** Before all others: one that throws keeps the event from those behind it. */
    @Override
    public int getOrder() {
        return HIGHEST_PRECEDENCE;
    }

    @Override
    public void onApplicationEvent(PayloadApplicationEvent<?> published) {
        if (published.getPayload() instanceof RateLimitChangedEvent change) {
            Map<String, Object> values = new LinkedHashMap<>();
            values.put("before", change.before());
            values.put("after", change.after());
            publish(CHANGED, change.limit(), change.key(), values, change.scope(), change.principal());
        } else if (published.getPayload() instanceof RateLimitResetEvent reset) {
            publish(RESET, reset.limit(), reset.key(), Map.of(), reset.scope(), reset.principal());
        }
    }

    private void publish(
            String type,
            String limit,
            @Nullable String key,
            Map<String, Object> values,
            Scope scope,
            @Nullable String principal) {
        Map<String, Object> data = new LinkedHashMap<>();
        data.put("limit", limit);
        if (key != null) {
            data.put("key", key);
        }
        data.putAll(values);
        data.put("scope", PropertyText.of(scope));
        events.publishEvent(new AuditApplicationEvent(Objects.requireNonNullElse(principal, ""), type, data));
    }
}
