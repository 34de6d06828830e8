package io.ratelimited.spring.autoconfigure;

import io.ratelimited.spring.InvalidRateLimitException;
import io.ratelimited.spring.internals.limit.LimitRegistry;
import io.ratelimited.spring.internals.text.LogText;
import org.springframework.boot.context.properties.bind.BindException;
import org.springframework.boot.context.properties.bind.BindHandler;
import org.springframework.boot.context.properties.bind.Bindable;
import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.boot.context.properties.bind.handler.NoUnboundElementsBindHandler;
import org.springframework.boot.context.properties.source.UnboundElementsSourceFilter;
import org.springframework.context.ApplicationEvent;
import org.springframework.context.event.SmartApplicationListener;
import org.springframework.core.NestedExceptionUtils;
import org.springframework.core.env.Environment;

/**
 * Changes limits in use when the configuration has changed, as Spring Cloud announces it by its {@code
 * EnvironmentChangeEvent}; that class is known by name only. An invalid value is logged, and nothing is changed.
 */
record ConfigurationRefresh(LimitRegistry registry, Environment environment) implements SmartApplicationListener {

    private static final LogText.Lines LOG = LogText.lines(ConfigurationRefresh.class);
    private static final String EVENT = "org.springframework.cloud.context.environment.EnvironmentChangeEvent";

    /** As at the start: a property that does not exist is an error. */
    private static final BindHandler STRICT = new UnboundProperties(
            new NoUnboundElementsBindHandler(BindHandler.DEFAULT, new UnboundElementsSourceFilter()));

    @Override
    public boolean supportsEventType(Class<? extends ApplicationEvent> type) {
        for (Class<?> candidate = type; candidate != null; candidate = candidate.getSuperclass()) {
            if (candidate.getName().equals(EVENT)) {
                return true;
            }
        }
        return false;
    }

    /** Binds everything again instead of asking the event for its keys: an unchanged value changes nothing. */
    @Override
    public void onApplicationEvent(ApplicationEvent event) {
        try {
            RateLimitProperties refreshed =
                    Binder.get(environment).bindOrCreate("rate-limit", Bindable.of(RateLimitProperties.class), STRICT);
            PropertyRanges.check(refreshed);
            registry.refresh(refreshed.limitSettings());
        } catch (InvalidRateLimitException ex) {
            LOG.error("The configuration was not applied. " + ex.getMessage() + " " + ex.remedy());
        } catch (BindException ex) {
            String reason = NestedExceptionUtils.getMostSpecificCause(ex).getMessage();
            LOG.error("The configuration was not applied: " + ex.getMessage() + " (" + reason + ")");
        }
    }
}
