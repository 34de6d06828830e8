package io.ratelimited.spring.internals.call;

import static io.ratelimited.core.Algorithm.CONCURRENCY;
import static io.ratelimited.core.Policy.SHADOW;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.tuple;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import ch.qos.logback.classic.spi.ILoggingEvent;
import ch.qos.logback.core.UnsynchronizedAppenderBase;
import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Decision;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.CapturedLog;
import io.ratelimited.spring.ContextRunner;
import io.ratelimited.spring.DecisionObserver;
import io.ratelimited.spring.Outcome;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.ReservedPermits;
import io.ratelimited.spring.backend.LimiterFactory;
import io.ratelimited.spring.internals.request.CurrentRequest;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.slf4j.LoggerFactory;
import reactor.core.publisher.Mono;

/** Observers and shadows look on: no call fails for them, and none holds a thread. */
@ExtendWith(CapturedLog.Capture.class)
class OnlookersTest {

    private final List<Outcome> outcomes = new ArrayList<>();
    /** The limits whose backend was asked. */
    private final List<String> asked = new ArrayList<>();

    private final ContextRunner runner =
            ContextRunner.limited(new ManualTicker()).withBean(Calls.class);

    @Test
    void callsGoAndGiveTheirPlaceBackThoughAnObserverFails() {
        runner.withBean(DecisionObserver.class, () -> decision -> {
                    throw new IllegalStateException("observer");
                })
                .run(context -> {
                    Calls calls = context.getBean(Calls.class);
                    for (int i = 0; i < 3; i++) {
                        assertThat(calls.blocking()).isEqualTo("gone");
                        assertThat(calls.future()).isCompletedWithValue("gone");
                        assertThat(calls.mono().toFuture()).isCompletedWithValue("gone");
                    }
                });
    }

    /** As an appender of Log4j may that is not to ignore exceptions. */
    @Test
    void callsGoAndGiveTheirPlaceBackThoughTheLogOfDecisionsFails() {
        Logger decisions = (Logger) LoggerFactory.getLogger("io.ratelimited.decisions");
        UnsynchronizedAppenderBase<ILoggingEvent> failing = new UnsynchronizedAppenderBase<>() {
            @Override
            public void doAppend(ILoggingEvent line) {
                throw new IllegalStateException("log");
            }

            @Override
            protected void append(ILoggingEvent line) {}
        };
        decisions.setLevel(Level.DEBUG);
        decisions.addAppender(failing);
        try {
            runner.withPropertyValues(
                            "rate-limit.limits.place.algorithm=concurrency",
                            "rate-limit.limits.place.max-concurrent=1",
                            "rate-limit.limits.place.policy=wait",
                            "rate-limit.limits.place.max-wait=1h")
                    .run(context -> {
                        Calls calls = context.getBean(Calls.class);
                        for (int i = 0; i < 3; i++) {
                            assertThat(calls.blocking()).isEqualTo("gone");
                            assertThat(calls.future()).isCompletedWithValue("gone");
                            assertThat(calls.mono().toFuture()).isCompletedWithValue("gone");
                        }
                        ReservedPermits first =
                                context.getBean(RateLimits.class).reserve("place", null, 1);
                        CompletableFuture<String> waiting = calls.shadowedPlace();
                        first.close();
                        assertThat(waiting)
                                .succeedsWithin(Duration.ofSeconds(20))
                                .isEqualTo("gone");
                    });
        } finally {
            decisions.detachAppender(failing);
            decisions.setLevel(null);
        }
    }

    /** As the response of an application may, whose header fields cannot be set. */
    @Test
    void callsAreAnsweredThoughTheirRequestFails() {
        CurrentRequest failing = (CurrentRequest) Proxy.newProxyInstance(
                CurrentRequest.class.getClassLoader(),
                new Class<?>[] {CurrentRequest.class},
                (proxy, method, arguments) -> switch (method.getName()) {
                    case "isCharged", "isOwnCall" -> false;
                    default -> throw new IllegalStateException(method.getName());
                });
        runner.withBean(CurrentRequest.Source.class, () -> () -> failing).run(context -> {
            Calls calls = context.getBean(Calls.class);
            assertThat(calls.twice()).isCompletedWithValue("gone");
            assertThat(calls.twice())
                    .failsWithin(Duration.ofSeconds(10))
                    .withThrowableThat()
                    .withCauseInstanceOf(RateLimitExceededException.class);
            assertThatThrownBy(calls::blockingTwice).isInstanceOf(RateLimitExceededException.class);
            assertThat(calls.blocking()).isEqualTo("gone");
        });
    }

    /** Whether the next call would have to wait, as under LEAKY_BUCKET, says nothing of this one. */
    @ParameterizedTest
    @EnumSource(
            names = {"CONCURRENCY", "ADAPTIVE", "DEFAULT"},
            mode = EnumSource.Mode.EXCLUDE)
    void anObserverIsToldOfAnAdmittedCallUnderEachAlgorithm(Algorithm algorithm) {
        List<Decision> decisions = new ArrayList<>();
        runner.withBean(DecisionObserver.class, () -> decision -> decisions.add(decision.decision()))
                .withPropertyValues(
                        "rate-limit.limits.code.rate=2/h",
                        "rate-limit.limits.code.algorithm=" + algorithm,
                        algorithm == Algorithm.WARM_UP ? "rate-limit.limits.code.warmup=1h" : "")
                .run(context -> {
                    assertThat(context.getBean(RateLimits.class).tryAcquire("code", null, 1))
                            .isTrue();
                    assertThat(decisions)
                            .singleElement()
                            .returns(true, Decision::admitted)
                            .returns(null, Decision::retryAfter);
                });
    }

    /** Also of the last one that the limit admits, of which nothing is held. */
    @Test
    void anObserverIsToldOfEachCallWhetherItWasAdmitted() {
        List<Decision> decisions = new ArrayList<>();
        runner.withBean(DecisionObserver.class, () -> decision -> {
                    outcomes.add(decision.outcome());
                    decisions.add(decision.decision());
                })
                .withPropertyValues("rate-limit.limits.code.rate=2/h")
                .run(context -> {
                    Calls calls = context.getBean(Calls.class);
                    RateLimits limits = context.getBean(RateLimits.class);
                    calls.once();
                    assertThatThrownBy(calls::once).isInstanceOf(RateLimitExceededException.class);
                    calls.onceAsFuture();
                    calls.onceAsFuture();
                    limits.tryAcquire("code", null, 2);
                    limits.tryAcquire("code", null, 2);
                    assertThat(outcomes)
                            .containsExactly(
                                    Outcome.ADMITTED,
                                    Outcome.REJECTED,
                                    Outcome.ADMITTED,
                                    Outcome.REJECTED,
                                    Outcome.ADMITTED,
                                    Outcome.REJECTED);
                    assertThat(decisions)
                            .extracting(Decision::admitted, Decision::retryAfter, Decision::remaining)
                            .containsExactly(
                                    tuple(true, null, 0L),
                                    tuple(false, Duration.ofHours(1), 0L),
                                    tuple(true, null, 0L),
                                    tuple(false, Duration.ofHours(1), 0L),
                                    tuple(true, null, 0L),
                                    tuple(false, Duration.ofHours(1), 0L));
                });
    }

    @Test
    void anObserverIsNotToldOfItsOwnCalls() {
        AtomicReference<RateLimits> limits = new AtomicReference<>();
        runner.withBean(DecisionObserver.class, () -> decision -> {
                    outcomes.add(decision.outcome());
                    limits.get().tryAcquire("code", null);
                })
                .withPropertyValues("rate-limit.limits.code.rate=3/h")
                .run(context -> {
                    limits.set(context.getBean(RateLimits.class));
                    limits.get().tryAcquire("code", null);
                    assertThat(outcomes).containsExactly(Outcome.ADMITTED);
                    assertThat(limits.get().peek("code", null).remaining()).isEqualTo(1);
                    limits.get().tryAcquire("code", null);
                    assertThat(outcomes).as("of the next one").hasSize(2);
                });
    }

    @Test
    void anObserverIsToldOfACallThatHasWaitedForAnotherToEnd() {
        ManualTicker ticker = new ManualTicker();
        ContextRunner.limited(ticker)
                .withBean(DecisionObserver.class, () -> decision -> outcomes.add(decision.outcome()))
                .withPropertyValues(
                        "rate-limit.limits.seat.algorithm=concurrency",
                        "rate-limit.limits.seat.max-concurrent=1",
                        "rate-limit.limits.seat.policy=wait",
                        "rate-limit.limits.seat.max-wait=1m")
                .run(context -> {
                    RateLimits limits = context.getBean(RateLimits.class);
                    ReservedPermits seat = limits.reserve("seat", null, 1);
                    CompletableFuture<String> waiting =
                            limits.executeAsync("seat", null, () -> CompletableFuture.completedFuture("gone"));
                    ticker.advance(Duration.ofSeconds(1));
                    seat.close();
                    assertThat(waiting.get(1, TimeUnit.MINUTES)).isEqualTo("gone");
                    assertThat(outcomes).containsExactly(Outcome.ADMITTED, Outcome.DELAYED);
                });
    }

    @Test
    void aMissingKeyThatWouldBeDeniedIsTold() {
        watched().withPropertyValues("rate-limit.limits.keyed.missing-key=deny").run(context -> {
            context.getBean(Calls.class).keyed(null);
            context.getBean(Calls.class).keyed("ann");
            assertThat(outcomes).containsExactly(Outcome.SHADOWED, Outcome.ADMITTED);
        });
    }

    @Test
    void aShadowThatFailsLetsTheCallGo() {
        withRemote(CompletableFuture.failedFuture(new IllegalStateException("away")), calls -> {
            assertThat(calls.shadowed()).isEqualTo("gone");
            assertThat(calls.shadowedFuture()).isCompletedWithValue("gone");
            assertThat(calls.shadowedMono().toFuture()).isCompletedWithValue("gone");
        });
        assertThat(outcomes).isEmpty();
    }

    @Test
    void aCallThatHoldsNoThreadHoldsNoneForItsShadow() {
        CompletableFuture<Reservation> answer = new CompletableFuture<>();
        withRemote(answer, calls -> {
            CompletableFuture<String> future = calls.shadowedFuture();
            CompletableFuture<String> mono = calls.shadowedMono().toFuture();
            assertThat(future).isNotDone();
            assertThat(mono).isNotDone();
            answer.complete(new InMemoryRateLimiter(
                            Limit.of("away", CONCURRENCY).maxConcurrent(1).build())
                    .reserve(null, 1, 0));
            assertThat(future.join()).isEqualTo("gone");
            assertThat(mono.join()).isEqualTo("gone");
        });
        assertThat(outcomes).containsExactly(Outcome.ADMITTED, Outcome.ADMITTED);
    }

    @Test
    void shadowsOfACallThatHoldsNoThreadAreAskedAtTheSameTime() {
        withRemote(new CompletableFuture<>(), calls -> {
            assertThat(calls.twoShadows()).isNotDone();
            assertThat(asked).containsExactlyInAnyOrder("away", "near");
        });
    }

    @Test
    void aCallThatIsCancelledBeforeItsDecisionIsKnownIsNotReported() {
        CompletableFuture<Reservation> answer = new CompletableFuture<>();
        RateLimiter far = placeForOne();
        withRemote(answer, calls -> {
            calls.farAway(new CompletableFuture<>()).cancel(false);
            answer.complete(far.reserve(null, 1, 0));
        });
        assertThat(outcomes).isEmpty();
        assertThat(far.peek(null, 1, 0).admitted()).isTrue();
    }

    @Test
    void aCallThatIsCancelledWhileItsShadowDecidesGivesItsPlacesBack() {
        CompletableFuture<Reservation> answer = new CompletableFuture<>();
        RateLimiter shadow = placeForOne();
        withRemote(answer, calls -> {
            calls.shadowedPlace().cancel(false);
            answer.complete(shadow.reserve(null, 1, 0));
            assertThat(calls.place()).isEqualTo("gone");
        });
        assertThat(shadow.peek(null, 1, 0).admitted()).isTrue();
    }

    private static RateLimiter placeForOne() {
        return new InMemoryRateLimiter(
                Limit.of("remote", CONCURRENCY).maxConcurrent(1).build());
    }

    @Test
    void aCallIsAnsweredThoughItsBackendFailsToEndIt(CapturedLog output) {
        Reservation unending = (Reservation) Proxy.newProxyInstance(
                Reservation.class.getClassLoader(), new Class<?>[] {Reservation.class}, (proxy, method, arguments) -> {
                    if (method.getName().equals("release")) {
                        throw new IllegalStateException("away");
                    }
                    return method.getReturnType() == long.class ? (Object) 0L : (Object) false;
                });
        withRemote(CompletableFuture.completedFuture(unending), calls -> {
            CompletableFuture<String> body = new CompletableFuture<>();
            CompletableFuture<String> call = calls.farAway(body);
            body.complete("gone");
            assertThat(call).isCompletedWithValue("gone");
            assertThat(output).contains("the end of a call could not be reported to its limits");
        });
    }

    private ContextRunner watched() {
        return runner.withBean(DecisionObserver.class, () -> decision -> outcomes.add(decision.outcome()));
    }

    /** Calls whose shadow has a backend that answers so, and whose blocking methods fail. */
    private void withRemote(CompletableFuture<Reservation> answer, Consumer<Calls> test) {
        LimiterFactory remote = new LimiterFactory() {
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
                            case "reserveAsync" -> {
                                asked.add(limit.name());
                                yield answer;
                            }
                            default -> throw new IllegalStateException(method.getName());
                        });
            }
        };
        watched()
                .withBean(LimiterFactory.class, () -> remote)
                .withPropertyValues(
                        "rate-limit.limits.away.backend=redis",
                        "rate-limit.limits.near.backend=redis",
                        "rate-limit.limits.far.backend=redis")
                .run(context -> test.accept(context.getBean(Calls.class)));
    }

    static class Calls {

        @RateLimited(algorithm = CONCURRENCY, maxConcurrent = 1)
        public String blocking() {
            return "gone";
        }

        @RateLimited(algorithm = CONCURRENCY, maxConcurrent = 1)
        public CompletableFuture<String> future() {
            return CompletableFuture.completedFuture("gone");
        }

        @RateLimited(algorithm = CONCURRENCY, maxConcurrent = 1)
        public Mono<String> mono() {
            return Mono.just("gone");
        }

        @RateLimited(name = "many", rate = "9/h")
        @RateLimited(name = "one", rate = "1/h")
        public CompletableFuture<String> twice() {
            return CompletableFuture.completedFuture("gone");
        }

        @RateLimited("many")
        @RateLimited("one")
        public void blockingTwice() {}

        @RateLimited(rate = "1/h")
        public void once() {}

        @RateLimited(rate = "1/h")
        public CompletableFuture<String> onceAsFuture() {
            return CompletableFuture.completedFuture("gone");
        }

        @RateLimited(name = "keyed", rate = "1/h", key = "#user", policy = SHADOW)
        public void keyed(@Nullable String user) {}

        @RateLimited(name = "away", rate = "1/h", policy = SHADOW)
        public String shadowed() {
            return "gone";
        }

        @RateLimited("away")
        public CompletableFuture<String> shadowedFuture() {
            return CompletableFuture.completedFuture("gone");
        }

        @RateLimited("away")
        @RateLimited(name = "near", rate = "1/h", policy = SHADOW)
        public CompletableFuture<String> twoShadows() {
            return CompletableFuture.completedFuture("gone");
        }

        @RateLimited("away")
        @RateLimited(name = "place", algorithm = CONCURRENCY, maxConcurrent = 1)
        public CompletableFuture<String> shadowedPlace() {
            return CompletableFuture.completedFuture("gone");
        }

        @RateLimited("place")
        public String place() {
            return "gone";
        }

        @RateLimited(name = "far", algorithm = CONCURRENCY, maxConcurrent = 1)
        public CompletableFuture<String> farAway(CompletableFuture<String> body) {
            return body;
        }

        @RateLimited("away")
        public Mono<String> shadowedMono() {
            return Mono.just("gone");
        }
    }
}
