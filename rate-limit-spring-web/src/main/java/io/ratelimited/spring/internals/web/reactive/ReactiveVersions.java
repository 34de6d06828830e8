package io.ratelimited.spring.internals.web.reactive;

import io.ratelimited.spring.internals.web.ApiVersions;
import java.util.Optional;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.springframework.util.function.SingletonSupplier;
import org.springframework.web.reactive.accept.ApiVersionStrategy;
import org.springframework.web.server.ServerWebExchange;
import reactor.core.publisher.Mono;

/** The API versions of a WebFlux application. Thread-safe. */
public final class ReactiveVersions implements ApiVersions {

    private final Supplier<@Nullable ApiVersionStrategy> strategy;

    /** @param strategy of the application; null if it has no versions; asked at the first request */
    public ReactiveVersions(Supplier<@Nullable ApiVersionStrategy> strategy) {
        this.strategy = SingletonSupplier.ofNullable(strategy);
    }

    @Override
    public @Nullable Comparable<?> parse(String text) {
        ApiVersionStrategy versions = strategy.get();
        try {
            return versions == null ? null : versions.parseVersion(text);
        } catch (RuntimeException ex) {
            return null;
        }
    }

    /** The version of a request, from wherever the application takes it; empty if it has none, so that no versioned handler is reached. */
    Mono<Optional<Comparable<?>>> of(ServerWebExchange exchange) {
        ApiVersionStrategy versions = strategy.get();
        if (versions == null) {
            return Mono.just(Optional.empty());
        }
        return Mono.defer(() -> versions.resolveApiVersion(exchange))
                .<Optional<Comparable<?>>>map(version -> Optional.of(versions.parseVersion(version)))
                .defaultIfEmpty(Optional.ofNullable(versions.getDefaultVersion()))
                // WebFlux answers 400.
                .onErrorReturn(RuntimeException.class, Optional.empty());
    }
}
