package io.ratelimited.spring.check;

import io.ratelimited.core.Policy;
import io.ratelimited.spring.LimitProperties;
import io.ratelimited.spring.NamedLimit;
import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.limit.LimitSettings;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.springframework.context.ApplicationListener;
import org.springframework.context.event.ContextRefreshedEvent;

/** Says once what limits there are, one line a limit, when the context has started. */
public final class LimitLog implements ApplicationListener<ContextRefreshedEvent> {

    private static final Log LOG = LogFactory.getLog(LimitLog.class);

    private final RateLimits rateLimits;
    private final Set<String> said = ConcurrentHashMap.newKeySet();

    public LimitLog(RateLimits rateLimits) {
        this.rateLimits = rateLimits;
    }

    /** Child contexts publish the event here too, which is why each limit is said once. */
    @Override
    public void onApplicationEvent(ContextRefreshedEvent event) {
        rateLimits.all().stream()
                .filter(limit -> LOG.isInfoEnabled() && said.add(limit.name()))
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
        if (properties.backend() == LimitProperties.Backend.REDIS) {
            text.append(", on redis, on-failure ").append(LimitSettings.kebab(properties.onFailure()));
            if (properties.maxOvershoot() != null) {
                text.append(", max-overshoot ").append(properties.maxOvershoot());
            }
        }
        if (!limit.tiers().isEmpty()) {
            text.append(", tiers ")
                    .append(limit.tiers().keySet().stream().sorted().toList());
        }
        return text.append(" (").append(limit.place()).append(')').toString();
    }
}
