package io.ratelimited.spring.internals.call;

import io.micrometer.context.ContextSnapshot;
import io.micrometer.context.ContextSnapshotFactory;
import io.ratelimited.core.internals.threads.CallbackThreads;
import io.ratelimited.spring.internals.request.CurrentRequest;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;
import org.slf4j.MDC;
import org.springframework.context.i18n.LocaleContextHolder;
import org.springframework.core.task.TaskDecorator;
import org.springframework.security.core.context.SecurityContext;
import org.springframework.security.core.context.SecurityContextHolder;
import org.springframework.util.ClassUtils;
import reactor.core.scheduler.Schedulers;

/**
 * Where calls go on that were not decided at once, and with what. Never on the thread that brings the decision, which keeps
 * time or reads from Redis for all limits. A call finds what it would have found without a wait: its request, the contexts
 * of its caller, and a thread that may block if the caller's may. Thread-safe.
 */
public final class Continuations {

    private static final boolean PROPAGATION = isPresent("io.micrometer.context.ContextSnapshotFactory");
    private static final boolean MDC_PRESENT = isPresent("org.slf4j.MDC");
    private static final boolean SECURITY =
            isPresent("org.springframework.security.core.context.SecurityContextHolder");
    private static final boolean REACTOR = isPresent("reactor.core.scheduler.Schedulers");

    private final Supplier<Executor> executor;
    private final Supplier<List<TaskDecorator>> decorators;
    private final CurrentRequest.@Nullable Source requests;

    /**
     * @param executor runs calls that return a future; asked for when a call has waited
     * @param decorators of the application, the innermost first, as for an executor of Spring Boot; asked for in the thread of
     *     each caller whose call waits
     * @param requests finds the request of a subscription; null outside web applications
     */
    public Continuations(
            Supplier<Executor> executor,
            Supplier<List<TaskDecorator>> decorators,
            CurrentRequest.@Nullable Source requests) {
        this.executor = executor;
        this.decorators = decorators;
        this.requests = requests;
    }

    /**
     * Where a call of this thread goes on that returns a future: on the executor of the application.
     *
     * @param request of the call; null outside of one
     * @return takes one task; throws what the executor throws, or that a decorator has failed
     */
    Executor ofCaller(@Nullable CurrentRequest request) {
        UnaryOperator<Runnable> context;
        Decorated handedOver;
        Decorated decorated;
        try {
            context = contextOfThisThread(request);
            handedOver = new Decorated(decorators.get());
            decorated = new Decorated(decorators.get());
        } catch (RuntimeException | Error ex) {
            return failing(ex);
        }
        // The executor may decorate its tasks itself, with what it finds where it gets them.
        return task -> context.apply(
                        () -> handedOver.runWith(() -> executor.get().execute(context.apply(decorated.of(task)))))
                .run();
    }

    /**
     * Where a reactive call goes on that is subscribed to in this thread, and who reserves permits without a call. If the
     * thread must not block: on the event loop of its request, else on Reactor's parallel threads. If it may: on threads that
     * have no bound, since each of them may be what another one waits for with {@code block()}.
     *
     * @param request of the call; null outside of one
     * @return takes one task; rejects it if a decorator has failed
     */
    public Executor ofSubscriber(@Nullable CurrentRequest request) {
        if (!REACTOR || !EventLoops.isCurrentThread()) {
            try {
                UnaryOperator<Runnable> context = contextOfThisThread(request);
                Decorated decorated = new Decorated(decorators.get());
                return task -> CallbackThreads.SHARED.execute(context.apply(decorated.of(task)));
            } catch (RuntimeException | Error ex) {
                return failing(ex);
            }
        }
        Executor loop = request == null ? null : request.eventLoop();
        Executor thread = loop == null ? Parallel::schedule : loop;
        if (request == null) {
            return thread;
        }
        Executor scope = request.scopeOfThisThread();
        return task -> thread.execute(() -> scope.execute(task));
    }

    /**
     * Finds the request of a subscription.
     *
     * @param reactorContext looks up a key in the context of the subscription; null if it is absent
     * @return null outside of one
     */
    public @Nullable CurrentRequest request(Function<Object, @Nullable Object> reactorContext) {
        return requests == null ? null : requests.current(reactorContext);
    }

    /** The call is not made, and ends as one that an executor rejects. */
    private static Executor failing(Throwable failure) {
        return task -> {
            throw new RejectedExecutionException(
                    "the contexts of a caller could not be captured, perhaps because of a TaskDecorator: " + failure,
                    failure);
        };
    }

    /** Gives tasks the contexts that this thread has now. */
    private static UnaryOperator<Runnable> contextOfThisThread(@Nullable CurrentRequest request) {
        List<UnaryOperator<Runnable>> contexts = new ArrayList<>();
        if (request != null) {
            Executor scope = request.scopeOfThisThread();
            contexts.add(task -> () -> scope.execute(task));
        }
        contexts.add(ofThisThread(LocaleContextHolder::getLocaleContext, LocaleContextHolder::setLocaleContext));
        if (MDC_PRESENT) {
            contexts.add(DiagnosticContext.ofThisThread());
        }
        if (SECURITY) {
            contexts.add(UserContext.ofThisThread());
        }
        if (PROPAGATION) {
            contexts.add(PropagatedContext.ofThisThread());
        }
        return task -> {
            Runnable wrapped = task;
            for (UnaryOperator<Runnable> context : contexts) {
                wrapped = context.apply(wrapped);
            }
            return wrapped;
        };
    }

    /** Gives tasks one context that this thread has now. Afterwards, their thread has the one that it had before. */
    private static <T extends @Nullable Object> UnaryOperator<Runnable> ofThisThread(
            Supplier<T> current, Consumer<T> set) {
        T captured = current.get();
        return task -> () -> {
            T before = current.get();
            set.accept(captured);
            try {
                task.run();
            } finally {
                set.accept(before);
            }
        };
    }

    private static boolean isPresent(String className) {
        return ClassUtils.isPresent(className, Continuations.class.getClassLoader());
    }

    /** A task that is decorated before it is known: decorators take the context of the thread that calls them. */
    private static final class Decorated implements Runnable {

        private final Runnable decorated;
        private volatile Runnable task = () -> {};

        private Decorated(List<TaskDecorator> decorators) {
            Runnable all = this;
            for (TaskDecorator decorator : decorators) {
                all = decorator.decorate(all);
            }
            this.decorated = all;
        }

        private Runnable of(Runnable known) {
            task = known;
            return decorated;
        }

        /** Runs a task, and throws what it throws: a decorator may keep that to itself. */
        private void runWith(Runnable known) {
            AtomicReference<@Nullable Throwable> thrown = new AtomicReference<>();
            of(() -> {
                        try {
                            known.run();
                        } catch (RuntimeException | Error ex) {
                            thrown.set(ex);
                        }
                    })
                    .run();
            Throwable failure = thrown.get();
            if (failure instanceof Error error) {
                throw error;
            }
            if (failure instanceof RuntimeException exception) {
                throw exception;
            }
        }

        @Override
        public void run() {
            task.run();
        }
    }

    /** Loaded only where Reactor is. */
    private static final class Parallel {

        private static void schedule(Runnable task) {
            Schedulers.parallel().schedule(task);
        }
    }

    /** Loaded only where context-propagation is. */
    private static final class PropagatedContext {

        private static final ContextSnapshotFactory FACTORY =
                ContextSnapshotFactory.builder().build();

        private static UnaryOperator<Runnable> ofThisThread() {
            ContextSnapshot snapshot = FACTORY.captureAll();
            return snapshot::wrap;
        }
    }

    /** Loaded only where SLF4J is. */
    private static final class DiagnosticContext {

        private static UnaryOperator<Runnable> ofThisThread() {
            return Continuations.ofThisThread(MDC::getCopyOfContextMap, DiagnosticContext::set);
        }

        private static void set(@Nullable Map<String, String> context) {
            if (context == null) {
                MDC.clear();
            } else {
                MDC.setContextMap(context);
            }
        }
    }

    /** Loaded only where Spring Security is. */
    private static final class UserContext {

        private static UnaryOperator<Runnable> ofThisThread() {
            return Continuations.ofThisThread(UserContext::current, UserContext::set);
        }

        /** Null for an empty context, which its thread may fill later. */
        private static @Nullable SecurityContext current() {
            SecurityContext context = SecurityContextHolder.getContext();
            return context.equals(SecurityContextHolder.createEmptyContext()) ? null : context;
        }

        private static void set(@Nullable SecurityContext context) {
            if (context == null) {
                SecurityContextHolder.clearContext();
            } else {
                SecurityContextHolder.setContext(context);
            }
        }
    }
}
