package io.ratelimited.spring.internals.web.reactive;

import io.ratelimited.spring.internals.call.CallerWait;
import org.reactivestreams.Subscription;
import reactor.core.CoreSubscriber;
import reactor.core.publisher.Flux;
import reactor.core.publisher.FluxOperator;
import reactor.core.publisher.Operators;
import reactor.util.context.Context;

/**
 * A body whose waits for the client are measured. Of a request: from when something is asked for until it is here, without
 * the time that who has asked works with it before he returns. Of a response: while the server asks for nothing more, since
 * its client takes nothing, and from the end of the body until the server has written it.
 */
final class TimedBody<T> extends FluxOperator<T, T> {

    private final CallerWait wait;
    private final boolean isRequest;

    TimedBody(Flux<? extends T> body, CallerWait wait, boolean isRequest) {
        super(body);
        this.wait = wait;
        this.isRequest = isRequest;
    }

    @Override
    public void subscribe(CoreSubscriber<? super T> actual) {
        source.subscribe(new Parts<>(actual, wait, isRequest));
    }

    private static final class Parts<T> implements CoreSubscriber<T>, Subscription {

        private final CoreSubscriber<? super T> actual;
        private final CallerWait wait;
        private final boolean isRequest;
        /** Parts that were asked for and have not come. Guarded by this, as the fields below. */
        private long asked;

        private int delivering;
        private boolean over;

        private Parts(CoreSubscriber<? super T> actual, CallerWait wait, boolean isRequest) {
            this.actual = actual;
            this.wait = wait;
            this.isRequest = isRequest;
        }

        private Subscription upstream = Operators.emptySubscription();

        @Override
        public Context currentContext() {
            return actual.currentContext();
        }

        @Override
        public void onSubscribe(Subscription subscription) {
            upstream = subscription;
            actual.onSubscribe(this);
        }

        @Override
        public void request(long number) {
            synchronized (this) {
                asked = Operators.addCap(asked, number);
                follow();
            }
            upstream.request(number);
        }

        @Override
        public void onNext(T part) {
            synchronized (this) {
                asked = asked == Long.MAX_VALUE ? asked : asked - 1;
                delivering++;
                wait.end();
            }
            actual.onNext(part);
            synchronized (this) {
                delivering--;
                follow();
            }
        }

        /** Guarded by this. */
        private void follow() {
            boolean waits = !over && delivering == 0 && asked > 0 == isRequest;
            if (waits) {
                wait.begin();
            } else if (!over) {
                wait.end();
            }
        }

        /** What was sent of a response has still to be written; whoever writes it ends that wait. */
        private synchronized void over(boolean isComplete) {
            over = true;
            if (isComplete && !isRequest) {
                wait.begin();
            } else {
                wait.end();
            }
        }

        @Override
        public void onComplete() {
            over(true);
            actual.onComplete();
        }

        @Override
        public void onError(Throwable failure) {
            over(false);
            actual.onError(failure);
        }

        @Override
        public void cancel() {
            over(false);
            upstream.cancel();
        }
    }
}
