package io.ratelimited.spring.actuate;

import io.ratelimited.spring.RateLimitChangedEvent;
import io.ratelimited.spring.internals.text.PropertyText;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import org.springframework.boot.actuate.audit.listener.AuditApplicationEvent;
import org.springframework.context.ApplicationEventPublisher;
import org.springframework.context.ApplicationListener;
import org.springframework.context.PayloadApplicationEvent;
import org.springframework.core.Ordered;

/** Publishes every change of a limit as an audit event of Spring Boot. Thread-safe. */
record RateLimitAudit(ApplicationEventPublisher events)
        implements ApplicationListener<PayloadApplicationEvent<RateLimitChangedEvent>>, Ordered {

    private static final String TYPE = "RATE_LIMIT_CHANGED";

    /** Before all others: one that throws keeps the event from those behind it. */
    @Override
    public int getOrder() {
        return HIGHEST_PRECEDENCE;
    }

    @Override
    public void onApplicationEvent(PayloadApplicationEvent<RateLimitChangedEvent> published) {
        RateLimitChangedEvent change = published.getPayload();
        Map<String, Object> data = new LinkedHashMap<>();
        data.put("limit", change.limit());
        if (change.key() != null) {
            data.put("key", change.key());
        }
        data.put("before", change.before());
        data.put("after", change.after());
        data.put("scope", PropertyText.of(change.scope()));
        events.publishEvent(new AuditApplicationEvent(Objects.requireNonNullElse(change.principal(), ""), TYPE, data));
    }
}
