package io.ratelimited.spring.internals.aop;

import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.RateLimiter.Callbacks;
import io.ratelimited.spring.internals.aop.RateLimitAspect.LimitedCall;
import io.ratelimited.spring.internals.call.Admission;
import io.ratelimited.spring.internals.call.Continuations;
import io.ratelimited.spring.internals.expression.CallResult;
import io.ratelimited.spring.internals.request.CurrentRequest;
import java.lang.reflect.Method;
import java.util.Objects;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicReferenceFieldUpdater;
import java.util.function.Consumer;
import java.util.function.Function;
import org.aopalliance.intercept.MethodInvocation;
import org.jspecify.annotations.Nullable;
import org.reactivestreams.Publisher;
import org.reactivestreams.Subscription;
import org.springframework.core.MethodParameter;
import org.springframework.core.ReactiveAdapter;
import org.springframework.core.ReactiveAdapterRegistry;
import org.springframework.core.ReactiveTypeDescriptor;
import reactor.core.CoreSubscriber;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Operators;
import reactor.core.scheduler.Schedulers;
import reactor.util.context.Context;

/**
 * Calls that return a reactive type, or are suspended: every subscription is a call of its own, decided when it is made
 * and before the method is called; a wait holds no thread.
 *
 * <p>Suspend functions reach their advice as reactive methods: Spring's proxies make a publisher of the call before the
 * advice, and await it behind.
 */
final class ReactiveCalls implements LimitedCall {

    private static final CallResult NOTHING = new CallResult(null, null, 0);
    private static final ReactiveAdapterRegistry REGISTRY = ReactiveAdapterRegistry.getSharedInstance();

    private final LimitedMethod limited;
    private final boolean many;
    private final Function<Publisher<?>, Object> toReturnType;

    private ReactiveCalls(LimitedMethod limited, boolean many, Function<Publisher<?>, Object> toReturnType) {
        this.limited = limited;
        this.many = many;
        this.toReturnType = toReturnType;
    }

    /** The calls of a method with a return type; null when it is not reactive, or narrower than what Spring makes of a publisher. */
    static @Nullable LimitedCall of(LimitedMethod limited, Class<?> returnType) {
        ReactiveAdapter adapter = REGISTRY.getAdapter(returnType);
        if (adapter == null) {
            return null;
        }
        ReactiveTypeDescriptor type = adapter.getDescriptor();
        return returnType.isAssignableFrom(type.getReactiveType())
                ? new ReactiveCalls(limited, type.isMultiValue(), adapter::fromPublisher)
                : null;
    }

    /** A result that fails when it is subscribed to; null for a type that cannot have one. */
    static @Nullable Object failed(Class<?> returnType, RuntimeException failure) {
        ReactiveAdapter adapter = REGISTRY.getAdapter(returnType);
        Object failed = adapter == null ? null : adapter.fromPublisher(Mono.error(failure));
        return returnType.isInstance(failed) ? failed : null;
    }

    /** The calls of a suspend function. */
    static LimitedCall ofSuspending(LimitedMethod limited) {
        ReactiveAdapter adapter = REGISTRY.getAdapter(new MethodParameter(limited.method(), -1).getParameterType());
        boolean many = adapter != null
                && adapter.getDescriptor().getReactiveType().getName().equals("kotlinx.coroutines.flow.Flow");
        return new ReactiveCalls(limited, many, publisher -> publisher);
    }

    @Override
    public Method method() {
        return limited.method();
    }

    @Override
    public boolean blocks() {
        return false;
    }

    @Override
    public Object invoke(MethodInvocation made) {
        MethodInvocation call = DeferredInvocation.of(made);
        CurrentRequest caller = limited.currentRequest();
        CurrentRequest served = limited.served(caller);
        Publisher<Object> calls = subscriber -> subscribe(Operators.toCoreSubscriber(subscriber), call, caller, served);
        return toReturnType.apply(many ? Flux.from(calls) : Mono.fromDirect(calls));
    }

    private void subscribe(
            CoreSubscriber<? super Object> subscriber,
            MethodInvocation call,
            @Nullable CurrentRequest caller,
            @Nullable CurrentRequest served) {
        Subscribed made;
        try {
            made = new Subscribed(limited, call, many, caller, served, subscriber);
        } catch (Throwable ex) {
            Operators.error(subscriber, Operators.onOperatorError(ex, subscriber.currentContext()));
            return;
        }
        made.begin();
    }

    private static Publisher<?> publisher(@Nullable Object value) {
        if (value instanceof Publisher<?> publisher) {
            return publisher;
        }
        ReactiveAdapter adapter = value == null ? null : REGISTRY.getAdapter(null, value);
        return adapter == null ? Mono.justOrEmpty(value) : adapter.toPublisher(value);
    }

    private enum Phase {
        ENTERING,
        STARTED,
        ENDED
    }

    /**
     * One subscription: one call, from asking its limits to its end. It is between the publisher of the method and the
     * subscriber, since operators would cost more than the decision.
     */
    private static final class Subscribed implements CoreSubscriber<Object>, Subscription {

        /** The phase of the call: either the body is entered first, or the subscription ends first. */
        private static final AtomicReferenceFieldUpdater<Subscribed, Phase> PHASE =
                AtomicReferenceFieldUpdater.newUpdater(Subscribed.class, Phase.class, "phase");

        private final LimitedMethod method;
        private final MethodInvocation call;
        private final @Nullable CurrentRequest request;
        /** The request whose response is made of the result, if its end may come before that of the call; null for other calls. */
        private final @Nullable CurrentRequest served;

        private final CompletableFuture<Admission> entered;
        private final boolean many;
        private final CoreSubscriber<? super Object> subscriber;
        private @Nullable Subscription upstream;
        private volatile Phase phase = Phase.ENTERING;
        /** Whether the publisher has come to its end: a {@code Mono} with its value. */
        private volatile boolean complete;
        /**
         * The result so far, if something depends on it. Written by elements, which come one after the other, and never by a
         * cancellation, which may come at the same time: neither overwrites the other.
         */
        private volatile CallResult known = NOTHING;

        private Subscribed(
                LimitedMethod method,
                MethodInvocation call,
                boolean many,
                @Nullable CurrentRequest caller,
                @Nullable CurrentRequest served,
                CoreSubscriber<? super Object> subscriber) {
            this.method = method;
            this.many = many;
            this.call = call;
            Context context = subscriber.currentContext();
            CurrentRequest own = method.currentRequest(key -> context.getOrDefault(key, null));
            this.request = own == null ? caller : own;
            this.entered = method.reserveAsync(call, request, Callbacks.NEVER_BLOCK);
            this.served = Admission.mayFollow(entered) ? served : null;
            // The end of the request may come beside a signal of the publisher.
            this.subscriber = this.served == null ? subscriber : Operators.serialize(subscriber);
        }

        private void begin() {
            try {
                if (many) {
                    (entered.isDone() ? Flux.from(admitted()) : later().flatMapMany(this::ending)).subscribe(this);
                } else {
                    (entered.isDone()
                                    ? Mono.from(admitted())
                                    : later().flatMap(next -> Mono.fromDirect(ending(Mono.from(next)))))
                            .subscribe(this);
                }
            } catch (Throwable ex) {
                end(ex);
                throw ex;
            }
        }

        /** Ends the call if the publisher throws: Reactor throws fatal errors, instead of passing them to the subscriber. */
        private <T> Publisher<T> ending(Publisher<T> publisher) {
            return next -> {
                try {
                    publisher.subscribe(next);
                } catch (Throwable ex) {
                    end(ex);
                    throw ex;
                }
            };
        }

        @Override
        public Context currentContext() {
            return subscriber.currentContext();
        }

        @Override
        public void onSubscribe(Subscription subscription) {
            upstream = subscription;
            subscriber.onSubscribe(this);
            if (served != null && !complete) {
                served.atEnd(this::requestEnded);
            }
        }

        /** Nobody awaits the result any more. What is between this and Spring MVC learns it as an error. */
        private void requestEnded() {
            if (complete || !Admission.mayFollow(entered)) {
                return;
            }
            try {
                cancel();
                subscriber.onError(new CancellationException("the request ended before the result of its handler"));
            } catch (RuntimeException ex) {
                Operators.onErrorDropped(ex, currentContext()); // other calls end with the request, too
            }
        }

        @Override
        public void onNext(Object value) {
            if (complete) {
                Operators.onNextDropped(value, currentContext());
                return;
            }
            if (method.charges() || (!many && method.countsInFlight())) {
                known = new CallResult(value, null, known.count() + 1);
            }
            if (many) {
                subscriber.onNext(value);
                return;
            }
            complete = true;
            try {
                end(null);
            } finally {
                subscriber.onNext(value);
            }
        }

        @Override
        public void onError(Throwable thrown) {
            if (complete) {
                Operators.onErrorDropped(thrown, currentContext());
                return;
            }
            complete = true;
            try {
                end(thrown);
            } finally {
                subscriber.onError(thrown);
            }
        }

        @Override
        public void onComplete() {
            if (!complete) {
                complete = true;
                try {
                    end(null);
                } finally {
                    subscriber.onComplete();
                }
            } else if (!many) {
                subscriber.onComplete();
            }
        }

        @Override
        public void request(long number) {
            Objects.requireNonNull(upstream).request(number);
        }

        @Override
        public void cancel() {
            try {
                Objects.requireNonNull(upstream).cancel();
            } finally {
                cancelled();
            }
        }

        /**
         * The call ends once its publisher has been cancelled. Code of it that ignores the cancellation, such as a blocking
         * query on another thread, goes on beside the next call. A {@code Mono} that has its value has returned, even if its
         * subscriber cancels it then.
         */
        private void cancelled() {
            boolean returned = !many && known.count() > 0;
            boolean cancelled = method.followsResult() && !returned;
            end(cancelled ? new CancellationException("the subscription was cancelled") : null, cancelled);
        }

        /**
         * Goes on as part of the request, where {@link Continuations#ofSubscriber} says. Does not complete if the subscription is
         * cancelled meanwhile, as Reactor may: a call that is not made has no result.
         */
        private Mono<Publisher<?>> later() {
            Executor there = method.enforcer().continuations().ofSubscriber(request);
            CompletableFuture<Boolean> decided = new CompletableFuture<>();
            entered.whenComplete((admission, failure) -> {
                if (phase == Phase.ENTERING) {
                    decided.complete(true);
                }
            });
            return Mono.fromFuture(decided, true)
                    .publishOn(Schedulers.fromExecutor(there))
                    .<Publisher<?>>map(done -> admitted())
                    .switchIfEmpty(Mono.never());
        }

        /** The publisher to subscribe to once the decision is known. */
        private Publisher<?> admitted() {
            if (!entered.isCompletedExceptionally()) {
                return proceed();
            }
            // To join a future that has failed would make an exception of the failure.
            return entered.handle((admission, failure) -> refused(CallResult.unwrap(failure)))
                    .join();
        }

        private Publisher<?> proceed() {
            if (!PHASE.compareAndSet(this, Phase.ENTERING, Phase.STARTED)) {
                // Cancelled meanwhile: the permits have been given back.
                return Mono.never();
            }
            try {
                return publisher(call.proceed());
            } catch (Throwable ex) {
                return Mono.error(ex);
            }
        }

        private Publisher<?> refused(Throwable failure) {
            try {
                return failure instanceof RateLimitExceededException refusal ? instead(refusal) : Mono.error(failure);
            } catch (Throwable ex) {
                return Mono.error(ex);
            }
        }

        private Publisher<?> instead(RateLimitExceededException refusal) throws Throwable {
            Publisher<?> instead = publisher(method.refused(call, refusal, request));
            Consumer<Throwable> failed = failure -> LimitedMethod.fallbackFailed(failure, refusal, request);
            return many
                    ? Flux.from(instead).doOnError(failed)
                    : Mono.from(instead).doOnError(failed);
        }

        private void end(@Nullable Throwable error) {
            end(error, false);
        }

        /** Runs before the subscriber sees the end, so that its next call finds the place of this one free. */
        private void end(@Nullable Throwable error, boolean cancelled) {
            boolean early = PHASE.compareAndSet(this, Phase.ENTERING, Phase.ENDED);
            if (entered.cancel(false) || entered.isCompletedExceptionally()) {
                return;
            }
            Admission admission = entered.join();
            if (early) {
                admission.cancel();
            } else if (phase == Phase.STARTED) {
                CallResult came = known;
                CallResult result =
                        many ? new CallResult(came.value(), error, came.count()) : CallResult.of(came.value(), error);
                if (cancelled) {
                    result = result.asCancelled();
                }
                if (many) {
                    admission.end(result);
                } else {
                    admission.endWithResponse(result);
                }
            }
        }
    }
}
