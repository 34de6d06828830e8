package io.ratelimited.spring.internals.check;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.spring.ContextRunner;
import io.ratelimited.spring.Explanation;
import io.ratelimited.spring.RateLimited;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** A fallback whose result cannot be that of its method, by their generic types. */
final class FallbackTypesTest {

    @ParameterizedTest
    @ValueSource(
            classes = {
                Lists.class,
                Futures.class,
                Later.class,
                LaterValue.class,
                Elements.class,
                Maps.class,
                Inherited.class
            })
    void aResultThatCannotFitFailsStartup(Class<?> bean) {
        ContextRunner.limited().withBean(bean).run(context -> {
            assertThat(context).hasFailed();
            assertThat(Explanation.of(context.getStartupFailure()).getDescription())
                    .contains("fallback method other returns ", "java.lang.Integer", ", not ", "java.lang.String");
        });
    }

    @ParameterizedTest
    @ValueSource(
            classes = {
                PublisherOfFuture.class,
                PublisherOfTypeArgument.class,
                ValueOfOwnFuture.class,
                ValueOfTypeArgument.class
            })
    void aFutureIsNotMadeOfWhatCannotBecomeOne(Class<?> bean) {
        ContextRunner.limited().withBean(bean).run(context -> {
            assertThat(context).hasFailed();
            assertThat(Explanation.of(context.getStartupFailure()).getDescription())
                    .containsPattern("fallback method other returns .*(Mono<.*>|String), not .*Future");
        });
    }

    @Test
    void resultsThatMayFitPass() {
        ContextRunner.limited()
                .withBean(Fitting.class)
                .run(context -> assertThat(context).hasNotFailed());
    }

    static class Lists {
        @RateLimited(rate = "1/s", fallback = "other")
        public List<String> call() {
            return List.of();
        }

        public List<Integer> other() {
            return List.of();
        }
    }

    static class Maps {
        @RateLimited(rate = "1/s", fallback = "other")
        public Map<String, List<String>> call() {
            return Map.of();
        }

        public Map<String, List<Integer>> other() {
            return Map.of();
        }
    }

    static class Futures {
        @RateLimited(rate = "1/s", fallback = "other")
        public CompletableFuture<String> call() {
            return new CompletableFuture<>();
        }

        public CompletableFuture<Integer> other() {
            return new CompletableFuture<>();
        }
    }

    static class Later {
        @RateLimited(rate = "1/s", fallback = "other")
        public Mono<String> call() {
            return Mono.empty();
        }

        public Mono<Integer> other() {
            return Mono.empty();
        }
    }

    static class LaterValue {
        @RateLimited(rate = "1/s", fallback = "other")
        public Mono<String> call() {
            return Mono.empty();
        }

        public Integer other() {
            return 1;
        }
    }

    static class Elements {
        @RateLimited(rate = "1/s", fallback = "other")
        public Flux<String> call() {
            return Flux.empty();
        }

        public Mono<Integer> other() {
            return Mono.empty();
        }
    }

    static class PublisherOfFuture {
        @RateLimited(rate = "1/s", fallback = "other")
        public CompletableFuture<String> call() {
            return new CompletableFuture<>();
        }

        public Mono<String> other() {
            return Mono.empty();
        }
    }

    abstract static class Calls<T> {
        @RateLimited(rate = "1/s", fallback = "other")
        public T call() {
            throw new UnsupportedOperationException();
        }
    }

    static class PublisherOfTypeArgument extends Calls<CompletableFuture<String>> {
        public Mono<String> other() {
            return Mono.empty();
        }
    }

    static class OwnFuture extends CompletableFuture<String> {}

    static class ValueOfOwnFuture {
        @RateLimited(rate = "1/s", fallback = "other")
        public OwnFuture call() {
            return new OwnFuture();
        }

        public String other() {
            return "other";
        }
    }

    static class ValueOfTypeArgument extends Calls<OwnFuture> {
        public String other() {
            return "other";
        }
    }

    abstract static class Base<T> {
        @RateLimited(rate = "1/s", fallback = "other")
        public List<T> call() {
            return List.of();
        }

        public abstract List<Integer> other();
    }

    static class Inherited extends Base<String> {
        @Override
        public List<Integer> other() {
            return List.of();
        }
    }

    @SuppressWarnings("rawtypes")
    static class Fitting {
        @RateLimited(rate = "1/s", fallback = "numbers")
        public List<? extends Number> wildcard() {
            return List.of();
        }

        public ArrayList<Integer> numbers() {
            return new ArrayList<>();
        }

        @RateLimited(rate = "1/s", fallback = "raw")
        public List<String> strings() {
            return List.of();
        }

        public List raw() {
            return List.of();
        }

        @RateLimited(rate = "1/s", fallback = "any")
        public <T> List<T> generic() {
            return List.of();
        }

        public List<Integer> any() {
            return List.of();
        }

        @RateLimited(rate = "1/s", fallback = "value")
        public Mono<Number> later() {
            return Mono.empty();
        }

        public int value() {
            return 1;
        }

        @RateLimited(rate = "1/s", fallback = "mono")
        public Flux<Number> several() {
            return Flux.empty();
        }

        public Mono<Integer> mono() {
            return Mono.empty();
        }

        @RateLimited(rate = "1/s", fallback = "nothing")
        public CompletableFuture<String> future() {
            return new CompletableFuture<>();
        }

        public void nothing() {}

        @RateLimited(rate = "1/s", fallback = "ready")
        public CompletionStage<String> stage() {
            return new CompletableFuture<>();
        }

        public String ready() {
            return "ready";
        }

        @RateLimited(rate = "1/s", fallback = "otherOwn")
        public OwnFuture own() {
            return new OwnFuture();
        }

        public OwnFuture otherOwn() {
            return new OwnFuture();
        }
    }
}
