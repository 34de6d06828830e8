package io.ratelimited.spring.actuate;

import io.micrometer.core.instrument.MeterRegistry;
import io.ratelimited.spring.DecisionObserver;
import io.ratelimited.spring.NamedLimit;
import io.ratelimited.spring.RateLimitCharge;
import io.ratelimited.spring.RateLimitDecision;
import io.ratelimited.spring.internals.limit.LimitRegistry;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.springframework.beans.factory.DisposableBean;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.context.ApplicationListener;
import org.springframework.context.event.ContextRefreshedEvent;

/**
 * Counts decisions. A limit has its meters from the start of the context, or from its first decision if that is sooner,
 * until the context closes. Thread-safe.
 */
final class RateLimitMetrics implements DecisionObserver, ApplicationListener<ContextRefreshedEvent>, DisposableBean {

    private final MeterRegistry registry;
    private final ObjectProvider<LimitRegistry> limits;
    private final Map<NamedLimit, LimitMeters> meters = new ConcurrentHashMap<>();

    /** @param limits by way of a provider, so that observers do not make them */
    RateLimitMetrics(MeterRegistry registry, ObjectProvider<LimitRegistry> limits) {
        this.registry = registry;
        this.limits = limits;
    }

    @Override
    public void onApplicationEvent(ContextRefreshedEvent event) {
        limits.ifAvailable(registry -> registry.all().forEach(this::meters));
    }

    @Override
    public void onDecision(RateLimitDecision decision) {
        LimitMeters found = meters.get(decision.limit());
        (found != null ? found : meters(decision.limit())).count(decision);
    }

    @Override
    public void onCharge(RateLimitCharge charge) {
        if (charge.failure() == null) {
            meters(charge.limit()).countPermits(charge.reserved(), charge.charged());
        } else {
            meters(charge.limit()).countFailure(charge.reserved());
        }
    }

    private LimitMeters meters(NamedLimit limit) {
        return meters.computeIfAbsent(
                limit, added -> new LimitMeters(registry, limits.getObject().get(added.name())));
    }

    @Override
    public void destroy() {
        meters.values().forEach(LimitMeters::remove);
    }
}
