package io.ratelimited.spring.check;

import io.ratelimited.core.Policy;
import io.ratelimited.spring.LimitProperties;
import io.ratelimited.spring.NamedLimit;
import io.ratelimited.spring.limit.LimitRegistry;
import io.ratelimited.spring.limit.LimitSettings;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.springframework.context.ApplicationListener;
import org.springframework.context.event.ContextRefreshedEvent;

/** Logs each limit once, in one line, when the context has started. */
public final class LimitLog implements ApplicationListener<ContextRefreshedEvent> {

    private static final Log LOG = LogFactory.getLog(LimitLog.class);

    private final LimitRegistry registry;
    private final Set<String> logged = ConcurrentHashMap.newKeySet();

    public LimitLog(LimitRegistry registry) {
        this.registry = registry;
    }

    /** Child contexts publish the event here too, so each limit is logged only once. */
    @Override
    public void onApplicationEvent(ContextRefreshedEvent event) {
        registry.all().stream()
                .filter(limit -> LOG.isInfoEnabled() && logged.add(limit.name()))
                .forEach(limit -> LOG.info("Rate limit " + describe(limit)));
    }

    private static String describe(NamedLimit limit) {
        StringBuilder text = new StringBuilder(limit.limit().toString())
                .append(", policy ")
                .append(LimitSettings.kebab(limit.policy()));
        if (limit.policy() == Policy.WAIT) {
            text.append(" up to ").append(limit.maxWaitNanos() / 1_000_000).append("ms");
        }
        if (limit.properties().key() != null) {
            text.append(", key ").append(limit.properties().key());
        }
        LimitProperties properties = limit.properties();
        if (!"memory".equals(properties.backend())) {
            text.append(", on ").append(properties.backend());
        }
        if (properties.onFailure() != null) {
            text.append(", on-failure ").append(LimitSettings.kebab(properties.onFailure()));
        }
        if (properties.maxOvershoot() != null) {
            text.append(", max-overshoot ").append(properties.maxOvershoot());
        }
        if (!limit.tiers().isEmpty()) {
            text.append(", tiers ")
                    .append(limit.tiers().keySet().stream().sorted().toList());
        }
        return text.append(" (").append(limit.place()).append(')').toString();
    }
}
