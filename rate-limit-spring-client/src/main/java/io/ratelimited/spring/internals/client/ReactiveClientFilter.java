package io.ratelimited.spring.internals.client;

import io.ratelimited.spring.internals.request.CurrentRequest;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.SmartInitializingSingleton;
import org.springframework.web.reactive.function.client.ClientRequest;
import org.springframework.web.reactive.function.client.ClientResponse;
import org.springframework.web.reactive.function.client.ExchangeFilterFunction;
import org.springframework.web.reactive.function.client.ExchangeFunction;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Schedulers;

/**
 * Limits the calls of {@code WebClient}. Stands innermost, next to the network: each subscription of a filter that retries
 * counts. Thread-safe.
 */
public final class ReactiveClientFilter implements ExchangeFilterFunction, SmartInitializingSingleton {

    private final Supplier<LimitedClients> clients;

    /** @param clients as for {@link BlockingClientInterceptor} */
    public ReactiveClientFilter(Supplier<LimitedClients> clients) {
        this.clients = clients;
    }

    @Override
    public void afterSingletonsInstantiated() {
        clients.get().all().forEach(client -> client.usedBy(false));
    }

    /** Returns whether calls pass the limits. */
    public static boolean isIn(List<ExchangeFilterFunction> all) {
        return all.stream().anyMatch(ReactiveClientFilter.class::isInstance);
    }

    /** Limits calls that do not yet pass the limits, behind the filters that are there. */
    public void addTo(List<ExchangeFilterFunction> all) {
        if (!isIn(all)) {
            all.add(this);
        }
    }

    @Override
    public Mono<ClientResponse> filter(ClientRequest request, ExchangeFunction next) {
        LimitedClient client = clients.get().of(request.url());
        if (client == null) {
            // It may be made while a limited one is, in whose context.
            return next.exchange(request).contextWrite(context -> context.delete(ClientCall.class));
        }
        return Mono.deferContextual(context -> {
            CurrentRequest caller =
                    client.enforcer().continuations().request((Object key) -> context.getOrDefault(key, null));
            CompletableFuture<ClientCall> entered = client.enterAsync(
                    new OutgoingRequest(request.method().name(), request.url(), request.headers()::get), caller);
            // Whoever is first: the exchange, or an end before it. Operators between them may drop a call without a
            // word.
            AtomicBoolean claimed = new AtomicBoolean();
            return turn(entered, client, caller)
                    .flatMap(call -> claimed.compareAndSet(false, true) ? exchange(call, request, next) : Mono.never())
                    .doFinally(end -> {
                        if (claimed.compareAndSet(false, true)) {
                            entered.cancel(false);
                            entered.thenAccept(ClientCall::giveBack);
                        }
                    });
        });
    }

    /** Does not complete if the subscription is cancelled meanwhile, as Reactor may: {@code WebClient} expects a response then. */
    private static Mono<ClientCall> turn(
            CompletableFuture<ClientCall> entered, LimitedClient client, @Nullable CurrentRequest caller) {
        Mono<ClientCall> turn = Mono.fromFuture(entered);
        return entered.isDone()
                ? turn
                : turn.publishOn(Schedulers.fromExecutor(
                                client.enforcer().continuations().ofSubscriber(caller)))
                        .switchIfEmpty(Mono.never());
    }

    private static Mono<ClientResponse> exchange(ClientCall call, ClientRequest request, ExchangeFunction next) {
        return Mono.defer(() -> next.exchange(request))
                .map(response -> {
                    call.answered(response.statusCode().value(), response.headers()::header);
                    // An answer may be streamed: the call ends with its body.
                    return response.mutate()
                            .body(body -> body.doOnError(call::end)
                                    .doOnComplete(call::end)
                                    .doOnCancel(call::end))
                            .build();
                })
                .switchIfEmpty(Mono.fromRunnable(call::end))
                .doOnError(call::end)
                .doOnCancel(call::end)
                .contextWrite(context -> context.put(ClientCall.class, call));
    }
}
