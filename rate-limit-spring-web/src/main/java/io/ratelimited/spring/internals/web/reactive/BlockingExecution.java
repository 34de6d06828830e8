package io.ratelimited.spring.internals.web.reactive;

import org.springframework.beans.factory.ObjectProvider;
import org.springframework.core.Ordered;
import org.springframework.core.task.AsyncTaskExecutor;
import org.springframework.web.reactive.config.BlockingExecutionConfigurer;
import org.springframework.web.reactive.config.WebFluxConfigurer;

/**
 * Handler methods that Spring calls on an executor of the application have their request there: this asks the other
 * configurers for their executor, and hands it on with tasks that carry the request of the thread they come from.
 */
public final class BlockingExecution extends BlockingExecutionConfigurer implements WebFluxConfigurer, Ordered {

    private final ObjectProvider<WebFluxConfigurer> configurers;

    public BlockingExecution(ObjectProvider<WebFluxConfigurer> configurers) {
        this.configurers = configurers;
    }

    /** After the others, whose executor this one replaces. */
    @Override
    public int getOrder() {
        return LOWEST_PRECEDENCE;
    }

    @Override
    public void configureBlockingExecution(BlockingExecutionConfigurer configurer) {
        configurers
                .orderedStream()
                .filter(other -> other != this)
                .forEach(other -> other.configureBlockingExecution(this));
        AsyncTaskExecutor executor = getExecutor();
        if (executor != null) {
            configurer.setExecutor(task -> executor.execute(ReactiveCurrentRequest.carrying(task)));
        }
    }
}
