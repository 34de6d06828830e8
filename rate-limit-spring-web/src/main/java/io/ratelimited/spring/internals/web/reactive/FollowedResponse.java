package io.ratelimited.spring.internals.web.reactive;

import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.reactivestreams.Subscription;
import reactor.core.CoreSubscriber;
import reactor.core.publisher.Mono;
import reactor.core.publisher.MonoOperator;
import reactor.util.context.Context;

/**
 * The response to a request, which is made with the request on the thread and in the Reactor context. In the outer filter it
 * reports its end to the request, before the server completes it. One object for what would be five operators.
 */
final class FollowedResponse extends MonoOperator<Void, Void> {

    private final ReactiveCurrentRequest call;
    private final boolean outer;

    private FollowedResponse(ReactiveCurrentRequest call, Mono<Void> response, boolean outer) {
        super(response);
        this.call = call;
        this.outer = outer;
    }

    static Mono<Void> of(ReactiveCurrentRequest call, Mono<Void> response) {
        return new FollowedResponse(call, response, call.responseEnd().tryFollow());
    }

    @Override
    public void subscribe(CoreSubscriber<? super Void> client) {
        call.run(() -> source.subscribe(new Response(call, outer, client)));
    }

    private static final class Response implements CoreSubscriber<Void>, Subscription {

        private final ResponseEnd end;
        private final boolean outer;
        private final CoreSubscriber<? super Void> client;
        private final Context context;
        private @Nullable Subscription upstream;

        private Response(ReactiveCurrentRequest call, boolean outer, CoreSubscriber<? super Void> client) {
            this.end = call.responseEnd();
            this.outer = outer;
            this.client = client;
            this.context = client.currentContext().put(ReactiveRequests.KEY, call);
        }

        @Override
        public Context currentContext() {
            return context;
        }

        @Override
        public void onSubscribe(Subscription subscription) {
            upstream = subscription;
            client.onSubscribe(this);
        }

        @Override
        public void onNext(Void none) {
            // There is no value of this type.
        }

        @Override
        public void onError(Throwable failure) {
            try {
                if (outer) {
                    end.ended(failure);
                }
            } finally {
                client.onError(failure);
            }
        }

        @Override
        public void onComplete() {
            try {
                if (outer) {
                    end.ended(null);
                }
            } finally {
                client.onComplete();
            }
        }

        @Override
        public void request(long number) {
            Objects.requireNonNull(upstream).request(number);
        }

        @Override
        public void cancel() {
            try {
                if (outer) {
                    end.aborted();
                }
            } finally {
                Objects.requireNonNull(upstream).cancel();
            }
        }
    }
}
