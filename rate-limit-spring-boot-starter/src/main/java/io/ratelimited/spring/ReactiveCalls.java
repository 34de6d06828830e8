package io.ratelimited.spring;

import io.ratelimited.core.RateLimitExceededException;
import java.lang.reflect.Method;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.function.Function;
import kotlin.coroutines.Continuation;
import kotlinx.coroutines.Job;
import org.jspecify.annotations.Nullable;
import org.reactivestreams.Publisher;
import org.springframework.core.CoroutinesUtils;
import org.springframework.core.MethodParameter;
import org.springframework.core.ReactiveAdapter;
import org.springframework.core.ReactiveAdapterRegistry;
import org.springframework.core.ReactiveTypeDescriptor;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Schedulers;
import reactor.util.context.ContextView;

/**
 * Calls that return a reactive type, or are suspended: every subscription is a call of its own, decided when it is made
 * and before the method is called; a wait holds no thread. The one class that knows Reactor.
 *
 * <p>Suspend functions reach their advice as reactive methods: Spring's proxies make a publisher of the call before the
 * advice, and await it behind.
 */
final class ReactiveCalls implements LimitedMethod.CallStyle {

    private static final ReactiveAdapterRegistry REGISTRY = ReactiveAdapterRegistry.getSharedInstance();

    private final boolean many;
    private final Function<Publisher<?>, Object> toReturnType;

    private ReactiveCalls(boolean many, Function<Publisher<?>, Object> toReturnType) {
        this.many = many;
        this.toReturnType = toReturnType;
    }

    /** The style of methods of a return type; null when it is not reactive. */
    static LimitedMethod.@Nullable CallStyle of(Class<?> returnType) {
        ReactiveAdapter adapter = REGISTRY.getAdapter(returnType);
        if (adapter == null) {
            return null;
        }
        ReactiveTypeDescriptor type = adapter.getDescriptor();
        return returnType.isAssignableFrom(type.getReactiveType())
                ? new ReactiveCalls(type.isMultiValue(), adapter::fromPublisher)
                : null;
    }

    /** The style of a suspend function. */
    static LimitedMethod.CallStyle ofSuspending(Method method) {
        ReactiveAdapter adapter = REGISTRY.getAdapter(new MethodParameter(method, -1).getParameterType());
        boolean many = adapter != null
                && adapter.getDescriptor().getReactiveType().getName().equals("kotlinx.coroutines.flow.Flow");
        return new ReactiveCalls(many, publisher -> publisher);
    }

    @Override
    public Object invoke(LimitedMethod method, Call call) {
        CurrentRequest caller = method.currentRequest();
        boolean unattended = method.isUnattended();
        return toReturnType.apply(
                many
                        ? Flux.deferContextual(
                                context -> new Subscription(method, call, unattended, caller, context).many())
                        : Mono.deferContextual(
                                context -> new Subscription(method, call, unattended, caller, context).one()));
    }

    /** Invokes a suspend function. */
    static Object invokeSuspending(Method function, @Nullable Object target, @Nullable Object[] arguments) {
        return Coroutines.invoke(function, target, arguments);
    }

    /** Whether Reactor forbids the calling thread to block. */
    static boolean isNonBlockingThread() {
        return Schedulers.isInNonBlockingThread();
    }

    private static Publisher<?> publisher(@Nullable Object value) {
        ReactiveAdapter adapter = value == null ? null : REGISTRY.getAdapter(null, value);
        return adapter == null ? Mono.justOrEmpty(value) : adapter.toPublisher(value);
    }

    /** One subscription: one call, from asking its limits to its end. */
    private static final class Subscription {

        private final LimitedMethod method;
        private final Call call;
        private final boolean unattended;
        private final CompletableFuture<Gate.Pass> entered;
        private volatile boolean started;
        private volatile boolean ended;

        private Subscription(
                LimitedMethod method,
                Call call,
                boolean unattended,
                @Nullable CurrentRequest caller,
                ContextView context) {
            this.method = method;
            this.call = call;
            this.unattended = unattended;
            CurrentRequest own = method.currentRequest(key -> context.getOrDefault(key, null));
            this.entered = method.enterAsync(call, own == null ? caller : own);
        }

        private Mono<?> one() {
            Mono<?> result = entered.isDone() ? Mono.from(admitted()) : later().flatMap(Mono::from);
            return result.doOnTerminate(this::end).doOnCancel(this::end);
        }

        private Flux<?> many() {
            Flux<?> result = entered.isDone() ? Flux.from(admitted()) : later().flatMapMany(next -> next);
            return result.doOnTerminate(this::end).doOnCancel(this::end);
        }

        /** Goes on where Reactor's own delays do, off the thread that keeps time. */
        private Mono<Publisher<?>> later() {
            CompletableFuture<Boolean> decided = new CompletableFuture<>();
            entered.whenComplete((pass, failure) -> {
                if (!ended) {
                    decided.complete(true);
                }
            });
            return Mono.fromFuture(decided, true)
                    .publishOn(Schedulers.parallel())
                    .map(done -> admitted());
        }

        /** What to subscribe to once the decision is known. */
        private Publisher<?> admitted() {
            try {
                entered.join();
            } catch (RuntimeException ex) {
                return refused(AsyncCalls.unwrap(ex));
            }
            started = true;
            try {
                return publisher(call.proceed());
            } catch (Throwable ex) {
                return Mono.error(ex);
            }
        }

        private Publisher<?> refused(Throwable failure) {
            try {
                return failure instanceof RateLimitExceededException refusal
                        ? publisher(method.refused(call, unattended, refusal))
                        : Mono.error(failure);
            } catch (Throwable ex) {
                return Mono.error(ex);
            }
        }

        /** Before the subscriber is told of the end, so that its next call finds the place of this one free. */
        private void end() {
            ended = true;
            if (entered.cancel(false) || entered.isCompletedExceptionally()) {
                return;
            }
            Gate.Pass pass = entered.join();
            if (started) {
                pass.end();
            } else {
                pass.cancel();
            }
        }
    }

    /** Loaded only where coroutines are. */
    private static final class Coroutines {

        private static Object invoke(Method function, @Nullable Object target, @Nullable Object[] arguments) {
            Continuation<?> caller = (Continuation<?>) Objects.requireNonNull(arguments[arguments.length - 1]);
            return CoroutinesUtils.invokeSuspendingFunction(
                    caller.getContext().minusKey(Job.Key), function, Objects.requireNonNull(target), arguments);
        }
    }
}
