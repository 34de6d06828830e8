package io.ratelimited.spring.internals.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.ratelimited.core.testing.ManualTicker;
import java.net.URI;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.springframework.core.task.TaskDecorator;
import org.springframework.http.HttpMethod;
import org.springframework.http.HttpStatus;
import org.springframework.web.reactive.function.client.ClientRequest;
import org.springframework.web.reactive.function.client.ClientResponse;
import org.springframework.web.reactive.function.client.ExchangeFilterFunction;
import org.springframework.web.reactive.function.client.ExchangeFunction;
import reactor.core.Disposable;
import reactor.core.publisher.Mono;

/** Subscriptions that end between the decision about a call and its request: nothing is sent, and nothing stays in flight. */
class ReactiveClientFilterTest {

    private static final int RACES = 500;

    private static final ClientRequest REQUEST = ClientRequest.create(
                    HttpMethod.GET, URI.create("https://partner.example/"))
            .build();

    private static final ExchangeFunction ANSWERED = request ->
            Mono.fromSupplier(() -> ClientResponse.create(HttpStatus.OK).build());

    private final ManualTicker ticker = new ManualTicker();
    /** What each task does before a call goes on that has waited. */
    private volatile Runnable before = () -> {};

    /** One call at a time. */
    private void run(Consumer<ExchangeFilterFunction> calls) {
        LimitedClientsContext.runner(
                        ticker,
                        "rate-limit.limits.few.algorithm=concurrency",
                        "rate-limit.limits.few.max-concurrent=1",
                        "rate-limit.clients.partner.hosts=partner.example",
                        "rate-limit.clients.partner.limits=few",
                        "rate-limit.clients.partner.max-wait=1m")
                .withBean(
                        TaskDecorator.class,
                        () -> task -> () -> {
                            before.run();
                            task.run();
                        })
                .run(context -> calls.accept(new ReactiveClientFilter(() -> context.getBean(LimitedClients.class))));
    }

    @Test
    void aCallBesideOneThatHasFailedAlreadyIsNotInFlight() {
        run(filter -> {
            Mono<String> failed = Mono.error(new IllegalStateException("the other has failed"));
            for (int i = 0; i < 3; i++) {
                assertThatIllegalStateException()
                        .isThrownBy(() -> Mono.zip(failed, filter.filter(REQUEST, ANSWERED))
                                .block())
                        .withMessage("the other has failed");
            }
            assertThat(status(filter)).isEqualTo(HttpStatus.OK);
        });
    }

    @Test
    void aCallThatIsCancelledBetweenItsTurnAndItsThreadIsNotInFlight() {
        run(filter -> {
            Disposable first = filter.filter(REQUEST, request -> Mono.never()).subscribe();
            AtomicReference<Disposable> second = new AtomicReference<>();
            CountDownLatch cancelled = new CountDownLatch(1);
            before = () -> {
                second.get().dispose();
                cancelled.countDown();
            };
            second.set(filter.filter(REQUEST, ANSWERED).subscribe());
            first.dispose();
            await(cancelled);
            before = () -> {};
            assertThat(status(filter)).isEqualTo(HttpStatus.OK);
        });
    }

    /** For a call without a response, {@code WebClient} has an error, which would be logged: nobody waits for it any more. */
    @Test
    @Tag("slow")
    void aCallThatIsCancelledAsItsTurnComesDoesNotCompleteWithoutAResponse() {
        run(filter -> {
            AtomicBoolean completed = new AtomicBoolean();
            Mono<Void> call = filter.filter(REQUEST, ANSWERED)
                    .switchIfEmpty(Mono.defer(() -> {
                        completed.set(true);
                        return Mono.never();
                    }))
                    .flatMap(ClientResponse::releaseBody);
            for (int i = 0; i < RACES; i++) {
                Disposable first =
                        filter.filter(REQUEST, request -> Mono.never()).subscribe();
                Disposable second = call.subscribe();
                CompletableFuture<Void> turn = CompletableFuture.runAsync(first::dispose);
                for (int spin = 0; spin < i % 200; spin++) {
                    Thread.onSpinWait();
                }
                second.dispose();
                turn.orTimeout(20, TimeUnit.SECONDS).join();
                assertThat(status(filter)).isEqualTo(HttpStatus.OK);
                assertThat(completed).as("race %s", i).isFalse();
            }
        });
    }

    /** Of a call that waits for as long as it has to, without moving the clock. */
    private static Object status(ExchangeFilterFunction filter) {
        return filter.filter(REQUEST, ANSWERED)
                .flatMap(response -> response.releaseBody().thenReturn(response.statusCode()))
                .toFuture()
                .orTimeout(20, TimeUnit.SECONDS)
                .join();
    }

    private static void await(CountDownLatch latch) {
        try {
            assertThat(latch.await(20, TimeUnit.SECONDS)).isTrue();
        } catch (InterruptedException ex) {
            throw new AssertionError(ex);
        }
    }
}
