package io.ratelimited.spring.internals.limit;

import org.springframework.context.ApplicationContext;
import org.springframework.context.ApplicationListener;
import org.springframework.context.event.ContextClosedEvent;
import org.springframework.core.Ordered;

/**
 * Ends the calls that wait for their turn when the context of the limits begins to close. That is before the web server
 * lets requests end, which it does for those that are under way: a call that waits would take up the whole time that they
 * are given, and run on beans that are gone if its turn came later. Its client still gets an answer.
 */
public record EndOfWaits(ApplicationContext context, LimitRegistry registry)
        implements ApplicationListener<ContextClosedEvent>, Ordered {

    /** Before executors, which take no more tasks once they know. */
    @Override
    public int getOrder() {
        return HIGHEST_PRECEDENCE;
    }

    /** A child may close, such as that of a management port, and the limits go on. */
    @Override
    public void onApplicationEvent(ContextClosedEvent event) {
        if (event.getApplicationContext() == context) {
            registry.close();
        }
    }
}
