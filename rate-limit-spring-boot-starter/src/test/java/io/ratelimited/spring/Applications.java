package io.ratelimited.spring;

import io.ratelimited.core.Ticker;
import io.ratelimited.spring.autoconfigure.RateLimitAutoConfiguration;
import org.springframework.boot.autoconfigure.aop.AopAutoConfiguration;
import org.springframework.boot.test.util.TestPropertyValues;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;

/** Small applications with limits. */
public final class Applications {

    private Applications() {}

    /** An application of beans, under a ticker, with properties as in {@code name=value}. */
    public static AnnotationConfigApplicationContext start(Ticker ticker, Class<?>[] beans, String... properties) {
        AnnotationConfigApplicationContext context = new AnnotationConfigApplicationContext();
        TestPropertyValues.of(properties).applyTo(context);
        context.registerBean(Ticker.class, () -> ticker);
        context.register(AopAutoConfiguration.class, RateLimitAutoConfiguration.class);
        if (beans.length > 0) {
            context.register(beans);
        }
        context.refresh();
        return context;
    }
}
