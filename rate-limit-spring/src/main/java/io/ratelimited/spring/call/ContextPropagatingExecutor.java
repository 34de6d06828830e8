package io.ratelimited.spring.call;

import io.micrometer.context.ContextSnapshot;
import io.micrometer.context.ContextSnapshotFactory;
import java.util.Map;
import java.util.concurrent.Executor;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.MDC;
import org.springframework.util.ClassUtils;

/**
 * Runs calls that had to wait, so that they never block the thread that keeps time or reads from Redis. They have the
 * context of their caller: that of Micrometer's context propagation (security, observation), and the MDC.
 */
public final class ContextPropagatingExecutor {

    private static final boolean PROPAGATION = isPresent("io.micrometer.context.ContextSnapshotFactory");
    private static final boolean MDC_PRESENT = isPresent("org.slf4j.MDC");

    private final Supplier<Executor> executor;

    /** @param executor asked for when a call has waited */
    public ContextPropagatingExecutor(Supplier<Executor> executor) {
        this.executor = executor;
    }

    /** Runs tasks elsewhere, with the context of this thread as it is now. */
    Executor ofThisCaller() {
        Wrapper context = task -> task;
        if (MDC_PRESENT) {
            context = DiagnosticContext.capture();
        }
        if (PROPAGATION) {
            Wrapper outer = PropagatedContext.capture();
            Wrapper inner = context;
            context = task -> outer.wrap(inner.wrap(task));
        }
        Wrapper captured = context;
        return task -> executor.get().execute(captured.wrap(task));
    }

    private static boolean isPresent(String className) {
        return ClassUtils.isPresent(className, ContextPropagatingExecutor.class.getClassLoader());
    }

    /** Gives a task a context. */
    private interface Wrapper {

        Runnable wrap(Runnable task);
    }

    /** Loaded only where context-propagation is. */
    private static final class PropagatedContext {

        private static final ContextSnapshotFactory FACTORY =
                ContextSnapshotFactory.builder().build();

        private static Wrapper capture() {
            ContextSnapshot snapshot = FACTORY.captureAll();
            return snapshot::wrap;
        }
    }

    /** Loaded only where SLF4J is. */
    private static final class DiagnosticContext {

        private static Wrapper capture() {
            Map<String, String> captured = MDC.getCopyOfContextMap();
            return task -> () -> {
                Map<String, String> before = MDC.getCopyOfContextMap();
                set(captured);
                try {
                    task.run();
                } finally {
                    set(before);
                }
            };
        }

        private static void set(@Nullable Map<String, String> context) {
            if (context == null) {
                MDC.clear();
            } else {
                MDC.setContextMap(context);
            }
        }
    }
}
