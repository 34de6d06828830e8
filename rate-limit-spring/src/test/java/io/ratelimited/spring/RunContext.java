package io.ratelimited.spring;

import org.assertj.core.api.AbstractObjectAssert;
import org.assertj.core.api.AbstractThrowableAssert;
import org.assertj.core.api.AssertProvider;
import org.assertj.core.api.Assertions;
import org.jspecify.annotations.Nullable;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;

/** An application of {@link ContextRunner}: it has started, or its start has failed. */
public final class RunContext extends AnnotationConfigApplicationContext implements AssertProvider<RunContext.Facts> {

    private @Nullable Throwable failure;

    void tryToRefresh() {
        try {
            refresh();
        } catch (RuntimeException | LinkageError ex) {
            failure = ex;
        }
    }

    /** The failure of the start; null if it has started. */
    public @Nullable Throwable getStartupFailure() {
        return failure;
    }

    @Override
    public Facts assertThat() {
        return new Facts(this);
    }

    /** What tests state of an application. */
    public static final class Facts extends AbstractObjectAssert<Facts, RunContext> {

        private Facts(RunContext context) {
            super(context, Facts.class);
        }

        public Facts hasNotFailed() {
            if (actual.failure != null) {
                throw new AssertionError("the start has failed", actual.failure);
            }
            return this;
        }

        public Facts hasFailed() {
            Assertions.assertThat(actual.failure).isNotNull();
            return this;
        }

        public AbstractThrowableAssert<?, ? extends Throwable> getFailure() {
            return hasFailed()
                    .extracting(context -> context.failure, org.assertj.core.api.InstanceOfAssertFactories.THROWABLE);
        }

        public Facts hasBean(String name) {
            Assertions.assertThat(actual.containsBean(name)).as(name).isTrue();
            return this;
        }

        public Facts hasSingleBean(Class<?> type) {
            Assertions.assertThat(actual.getBeanNamesForType(type)).hasSize(1);
            return this;
        }

        public Facts doesNotHaveBean(Class<?> type) {
            Assertions.assertThat(actual.getBeanNamesForType(type)).isEmpty();
            return this;
        }
    }
}
