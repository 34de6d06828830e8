package io.ratelimited.spring.internals.web;

import java.util.List;
import org.springframework.context.ApplicationContext;
import org.springframework.context.ApplicationListener;
import org.springframework.context.event.ContextRefreshedEvent;

/**
 * Runs checks when a context has started: not when a child of it has.
 *
 * @param checks of the context, in their order
 */
public record StartedChecks(ApplicationContext context, List<Runnable> checks)
        implements ApplicationListener<ContextRefreshedEvent> {

    @Override
    public void onApplicationEvent(ContextRefreshedEvent event) {
        if (event.getApplicationContext() == context) {
            checks.forEach(Runnable::run);
        }
    }
}
