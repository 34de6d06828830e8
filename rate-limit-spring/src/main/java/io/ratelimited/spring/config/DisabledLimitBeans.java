package io.ratelimited.spring.config;

import io.ratelimited.core.Ticker;
import io.ratelimited.core.internals.threads.CallbackThreads;
import io.ratelimited.spring.RateLimitOperations;
import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.backend.LimiterFactory;
import io.ratelimited.spring.internals.bean.InternalBean;
import io.ratelimited.spring.internals.bean.InternalConfiguration;
import io.ratelimited.spring.internals.block.BlockReports;
import io.ratelimited.spring.internals.call.Continuations;
import io.ratelimited.spring.internals.call.LimitEnforcer;
import io.ratelimited.spring.internals.call.UnlimitedCalls;
import io.ratelimited.spring.internals.limit.ChangeReports;
import io.ratelimited.spring.internals.limit.InMemoryLimiterFactory;
import io.ratelimited.spring.internals.limit.LimitOperations;
import io.ratelimited.spring.internals.limit.LimitProperty;
import io.ratelimited.spring.internals.limit.LimitRegistry;
import io.ratelimited.spring.internals.limit.RequestThreads;
import io.ratelimited.spring.internals.limit.SettingsSource;
import io.ratelimited.spring.internals.text.LogText;
import java.util.List;
import java.util.stream.Stream;
import org.springframework.beans.factory.InitializingBean;
import org.springframework.context.ApplicationContext;
import org.springframework.context.ApplicationEventPublisher;
import org.springframework.context.annotation.Conditional;
import org.springframework.context.annotation.Fallback;
import org.springframework.context.annotation.Lazy;

/**
 * Applies when {@code rate-limit.enabled} is false: no method is limited, and the {@link RateLimits} bean, which
 * code depends on, admits every call. Operators see and change the limits of the properties.
 */
@InternalConfiguration
@Conditional(ByProperty.Disabled.class)
class DisabledLimitBeans {

    @InternalBean("io.ratelimited.rateLimits")
    @ConditionalOnNone(RateLimits.class)
    @Fallback
    RateLimits rateLimits() {
        LogText.lines(DisabledLimitBeans.class).warn("Nothing is rate limited: rate-limit.enabled is false. [RL-205]");
        return new UnlimitedCalls(new LimitEnforcer(
                List::of,
                Ticker.system(),
                new Continuations(() -> CallbackThreads.SHARED, List::of, null),
                () -> RequestThreads.UNBOUNDED));
    }

    @InternalBean("io.ratelimited.rateLimitOperations")
    @ConditionalOnNone(RateLimitOperations.class)
    @Fallback
    RateLimitOperations rateLimitOperations(SettingsSource settings, ApplicationEventPublisher events) {
        LimitRegistry registry = new LimitRegistry(
                settings.settings(),
                backends(settings),
                null,
                RequestThreads.UNBOUNDED,
                new ChangeReports(events),
                new BlockReports(events, Ticker.system()),
                Ticker.system());
        return new LimitOperations(false, registry, null);
    }

    @InternalBean("io.ratelimited.inheritedLimits")
    @Lazy(false)
    InitializingBean inheritedLimits(ApplicationContext context, SettingsSource settings) {
        return () -> {
            ByProperty.requireEnabled(false, context.getEnvironment());
            HierarchyMember.requireSameLimits(context, settings);
        };
    }

    /** Limits can be looked at and changed, in memory whatever their backend: none of them decides about a call. */
    private static List<LimiterFactory> backends(SettingsSource settings) {
        return Stream.concat(Stream.of("memory"), settings.settings().backends().stream())
                .distinct()
                .<LimiterFactory>map(name -> new InMemoryLimiterFactory(
                        name,
                        LimitProperty.ofSomeBackends(),
                        Ticker.system(),
                        limit -> settings.memory().maximumKeys(limit, false, 1)))
                .toList();
    }
}
