package io.ratelimited.spring.actuate;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.micrometer.common.KeyValue;
import io.micrometer.common.KeyValues;
import io.micrometer.observation.Observation;
import io.micrometer.observation.ObservationRegistry;
import io.micrometer.observation.contextpropagation.ObservationThreadLocalAccessor;
import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Policy;
import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.Contexts;
import io.ratelimited.spring.RateLimitDecision;
import io.ratelimited.spring.RateLimitObservationConvention;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.backend.LimiterFactory;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import reactor.core.publisher.Hooks;
import reactor.core.publisher.Mono;

/** What traces show of a call that a limit refused, delayed or only counted. */
class RateLimitObservationsTest {

    private final ObservationRegistry registry = ObservationRegistry.create();
    private final ManualTicker ticker = new ManualTicker().autoAdvance();
    private final ApplicationContextRunner runner = Contexts.runner(ticker)
            .withConfiguration(AutoConfigurations.of(RateLimitObservationAutoConfiguration.class))
            .withBean(ObservationRegistry.class, () -> registry)
            .withPropertyValues("rate-limit.limits.search.rate=1/s");

    RateLimitObservationsTest() {
        registry.observationConfig().observationHandler(context -> true);
    }

    private KeyValues observed(RateLimits limits, int calls) {
        Observation observation = Observation.start("request", registry);
        try {
            observation.scoped(() -> {
                for (int i = 0; i < calls; i++) {
                    limits.execute("search", null, () -> "answer");
                }
            });
        } catch (RateLimitExceededException refused) {
            assertThat(refused.decision().limit()).isEqualTo("search");
        } finally {
            observation.stop();
        }
        return observation.getContext().getHighCardinalityKeyValues();
    }

    @Test
    void aRefusedCallIsSeenInTheObservationOfItsRequest() {
        runner.run(context -> assertThat(observed(context.getBean(RateLimits.class), 2))
                .containsExactly(
                        KeyValue.of("rate.limit.name", "search"),
                        KeyValue.of("rate.limit.outcome", "rejected"),
                        KeyValue.of("rate.limit.wait", "0ms")));
    }

    @Test
    void aDelayedCallIsSeenWithItsWait() {
        runner.withPropertyValues("rate-limit.limits.search.policy=wait", "rate-limit.limits.search.max-wait=5s")
                .run(context -> assertThat(observed(context.getBean(RateLimits.class), 2))
                        .contains(
                                KeyValue.of("rate.limit.outcome", "delayed"),
                                KeyValue.of("rate.limit.wait", "1000ms")));
    }

    @Test
    void anAdmittedCallAddsNothing() {
        runner.run(context ->
                assertThat(observed(context.getBean(RateLimits.class), 1)).isEmpty());
    }

    @Test
    void aCallThatADryRunAdmitsAddsNothing() {
        runner.withPropertyValues("rate-limit.limits.search.policy=shadow").run(context -> {
            RateLimits limits = context.getBean(RateLimits.class);
            Observation observation = Observation.start("request", registry);
            observation.scoped(() -> {
                limits.executeAsync("search", null, () -> CompletableFuture.completedFuture("answer"))
                        .join();
            });
            observation.stop();
            assertThat(observation.getContext().getHighCardinalityKeyValues()).isEmpty();
        });
    }

    @Test
    void withoutAnObservationNothingHappens() {
        runner.run(context -> {
            RateLimits limits = context.getBean(RateLimits.class);
            limits.execute("search", null, () -> "answer");
            assertThatExceptionOfType(RateLimitExceededException.class)
                    .isThrownBy(() -> limits.execute("search", null, () -> "answer"));
        });
    }

    @Test
    void aConventionOfTheApplicationReplacesTheDefault() {
        runner.withBean(RateLimitObservationConvention.class, () -> new RateLimitObservationConvention() {
                    @Override
                    public KeyValues keyValues(RateLimitDecision decision) {
                        return KeyValues.of("throttled", decision.limit().name());
                    }
                })
                .run(context -> assertThat(observed(context.getBean(RateLimits.class), 2))
                        .containsExactly(KeyValue.of("throttled", "search")));
    }

    /**
     * Makes a call that is decided later, by a thread in which another call is observed, as a reply or the end of another call
     * does.
     */
    private KeyValues observedLater(RateLimits limits, Runnable decides) {
        Observation caller = Observation.start("request", registry);
        Observation other = Observation.start("another request", registry);
        List<CompletableFuture<String>> calls = new ArrayList<>();
        caller.scoped(() ->
                calls.add(limits.executeAsync("search", null, () -> CompletableFuture.completedFuture("response"))));
        assertThat(calls.get(0)).isNotDone();
        other.scoped(decides);
        calls.get(0).handle((response, rejection) -> response).join();
        assertThat(other.getContext().getHighCardinalityKeyValues()).isEmpty();
        return caller.getContext().getHighCardinalityKeyValues();
    }

    @Test
    void aCallThatWaitsWithoutAThreadIsSeenInTheObservationOfItsCaller() {
        ticker.autoAdvance(false);
        runner.withPropertyValues("rate-limit.limits.search.policy=wait", "rate-limit.limits.search.max-wait=5s")
                .run(context -> {
                    RateLimits limits = context.getBean(RateLimits.class);
                    limits.execute("search", null, () -> "response");
                    assertThat(observedLater(limits, () -> ticker.advance(Duration.ofSeconds(1))))
                            .contains(
                                    KeyValue.of("rate.limit.outcome", "delayed"),
                                    KeyValue.of("rate.limit.wait", "1000ms"));
                });
    }

    @ParameterizedTest
    @CsvSource({"reject, rejected", "shadow, shadowed"})
    void aCallWhoseReplyComesLaterIsSeenInTheObservationOfItsCaller(String policy, String outcome) {
        CompletableFuture<Reservation> reply = new CompletableFuture<>();
        InMemoryRateLimiter limiter = new InMemoryRateLimiter(
                Limit.of("search", Algorithm.TOKEN_BUCKET).rate("1/h").build());
        limiter.tryAcquire(null, 1);
        runner.withBean(LimiterFactory.class, () -> new Replying(reply))
                .withPropertyValues(
                        "rate-limit.limits.search.backend=redis", "rate-limit.limits.search.policy=" + policy)
                .run(context -> assertThat(observedLater(
                                context.getBean(RateLimits.class), () -> reply.complete(limiter.reserve(null, 1, 0))))
                        .contains(KeyValue.of("rate.limit.outcome", outcome)));
    }

    /** As Spring Boot does with {@code spring.reactor.context-propagation: auto}. */
    @Test
    void aReactiveCallIsSeenInTheObservationOfItsSubscriber() {
        ticker.autoAdvance(false);
        Hooks.enableAutomaticContextPropagation();
        try {
            runner.withBean(Reactive.class).run(context -> {
                Mono<String> mono = context.getBean(Reactive.class).call();
                mono.block();
                Observation caller = Observation.start("request", registry);
                Observation other = Observation.start("another request", registry);
                CompletableFuture<String> call = mono.contextWrite(
                                subscriber -> subscriber.put(ObservationThreadLocalAccessor.KEY, caller))
                        .toFuture();
                assertThat(call).isNotDone();
                other.scoped(() -> ticker.advance(Duration.ofSeconds(1)));
                assertThat(call.join()).isEqualTo("response");
                assertThat(other.getContext().getHighCardinalityKeyValues()).isEmpty();
                assertThat(caller.getContext().getHighCardinalityKeyValues())
                        .contains(KeyValue.of("rate.limit.outcome", "delayed"));
            });
        } finally {
            Hooks.disableAutomaticContextPropagation();
        }
    }

    static class Reactive {

        @RateLimited(name = "reactive", rate = "1/s", policy = Policy.WAIT, maxWait = "5s")
        public Mono<String> call() {
            return Mono.just("response");
        }
    }

    /** Whose limiters reply later. */
    private record Replying(CompletableFuture<Reservation> reply) implements LimiterFactory {

        @Override
        public String backend() {
            return "redis";
        }

        @Override
        public RateLimiter create(Limit limit, String tier, Map<String, String> properties) {
            return (RateLimiter) Proxy.newProxyInstance(
                    RateLimiter.class.getClassLoader(),
                    new Class<?>[] {RateLimiter.class},
                    (proxy, method, arguments) -> switch (method.getName()) {
                        case "limit" -> limit;
                        case "source" -> null;
                        case "reserveAsync" -> reply;
                        default -> throw new IllegalStateException(method.getName());
                    });
        }
    }
}
