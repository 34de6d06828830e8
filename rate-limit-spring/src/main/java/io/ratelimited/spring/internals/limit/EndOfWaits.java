package io.ratelimited.spring.internals.limit;

import org.springframework.context.ApplicationContext;
import org.springframework.context.ApplicationListener;
import org.springframework.context.event.ContextClosedEvent;
import org.springframework.core.Ordered;

/**
 * Ends the calls that wait for their turn when the context of their limits or clients begins to close. That is before the web
 * server lets requests end, which it does for those that are under way: a call that waits would take up the whole time that
 * they are given, and run on beans that are gone if its turn came later. Its client still gets an answer.
 *
 * @param end ends the calls
 */
public record EndOfWaits(ApplicationContext context, Runnable end)
        implements ApplicationListener<ContextClosedEvent>, Ordered {

    /** Before executors, which take no more tasks once they know. */
    @Override
    public int getOrder() {
        return HIGHEST_PRECEDENCE;
    }

    /** An application may give its events to an executor, of which all threads may wait. */
    @Override
    public boolean supportsAsyncExecution() {
        return false;
    }

    /** A child may close, such as that of a management port, and the limits go on. */
    @Override
    public void onApplicationEvent(ContextClosedEvent event) {
        if (event.getApplicationContext() == context) {
            end.run();
        }
    }
}
