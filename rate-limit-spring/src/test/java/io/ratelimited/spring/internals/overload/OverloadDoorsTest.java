package io.ratelimited.spring.internals.overload;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.Threads;
import io.ratelimited.core.overload.FoundLimit;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.ContextRunner;
import io.ratelimited.spring.LimitChange;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.ReservedPermits;
import io.ratelimited.spring.TestLimits;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;
import org.springframework.context.ApplicationContext;
import org.springframework.core.annotation.AliasFor;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** What holds for a limit with classes whatever the way in which calls come to it, alone and beside another limit. */
@ParameterizedClass
@EnumSource
@Tag("slow")
class OverloadDoorsTest {

    enum Door {
        BLOCKING {
            @Override
            CompletableFuture<String> call(ApplicationContext context, String kind, CompletableFuture<String> body) {
                return onThread(() -> context.getBean(Calls.class).blocking(kind, body));
            }
        },
        FUTURE {
            @Override
            CompletableFuture<String> call(ApplicationContext context, String kind, CompletableFuture<String> body) {
                return context.getBean(Calls.class).future(kind, body);
            }
        },
        MONO {
            @Override
            CompletableFuture<String> call(ApplicationContext context, String kind, CompletableFuture<String> body) {
                return context.getBean(Calls.class).mono(kind, body).toFuture();
            }
        },
        FLUX {
            @Override
            CompletableFuture<String> call(ApplicationContext context, String kind, CompletableFuture<String> body) {
                return context.getBean(Calls.class).flux(kind, body).last().toFuture();
            }
        },
        TWO_LIMITS {
            @Override
            CompletableFuture<String> call(ApplicationContext context, String kind, CompletableFuture<String> body) {
                return onThread(() -> context.getBean(Calls.class).two(kind, body));
            }
        },
        TWO_LIMITS_FUTURE {
            @Override
            CompletableFuture<String> call(ApplicationContext context, String kind, CompletableFuture<String> body) {
                return context.getBean(Calls.class).twoFuture(kind, body);
            }
        },
        TWO_LIMITS_MONO {
            @Override
            CompletableFuture<String> call(ApplicationContext context, String kind, CompletableFuture<String> body) {
                return context.getBean(Calls.class).twoMono(kind, body).toFuture();
            }
        },
        CLASS {
            @Override
            CompletableFuture<String> call(ApplicationContext context, String kind, CompletableFuture<String> body) {
                return context.getBean(LimitedClass.class).future(kind, body);
            }
        },
        META_ANNOTATION {
            @Override
            CompletableFuture<String> call(ApplicationContext context, String kind, CompletableFuture<String> body) {
                return kind.equals("critical")
                        ? context.getBean(Calls.class).critical(body)
                        : context.getBean(Calls.class).batch(body);
            }
        },
        EXECUTE {
            @Override
            CompletableFuture<String> call(ApplicationContext context, String kind, CompletableFuture<String> body) {
                return onThread(() -> limits(context, kind).execute("calls", null, body::join));
            }
        },
        EXECUTE_ASYNC {
            @Override
            CompletableFuture<String> call(ApplicationContext context, String kind, CompletableFuture<String> body) {
                return limits(context, kind).executeAsync("calls", null, () -> body);
            }
        },
        RESERVE {
            @Override
            CompletableFuture<String> call(ApplicationContext context, String kind, CompletableFuture<String> body) {
                return onThread(() -> {
                    try (ReservedPermits reserved = limits(context, kind).reserve("calls", null, 1)) {
                        assertThat(reserved).isNotNull();
                        return body.join();
                    }
                });
            }
        },
        RESERVE_ASYNC {
            @Override
            CompletableFuture<String> call(ApplicationContext context, String kind, CompletableFuture<String> body) {
                return limits(context, kind)
                        .reserveAsync("calls", null, 1)
                        .thenCompose(reserved -> body.whenComplete((value, failure) -> reserved.end(failure)));
            }
        };

        abstract CompletableFuture<String> call(
                ApplicationContext context, String kind, CompletableFuture<String> body);

        private static TestLimits limits(ApplicationContext context, String kind) {
            return TestLimits.of(context).withPriority(kind);
        }

        private static CompletableFuture<String> onThread(Supplier<String> call) {
            return CompletableFuture.supplyAsync(call, task -> {
                Thread thread = new Thread(task);
                thread.setDaemon(true);
                thread.start();
            });
        }
    }

    @Retention(RetentionPolicy.RUNTIME)
    @RateLimited("calls")
    @interface Limited {

        @AliasFor(annotation = RateLimited.class, attribute = "priority")
        String as();
    }

    static class Calls {

        @RateLimited(name = "calls", priority = "#kind")
        public String blocking(String kind, CompletableFuture<String> body) {
            return body.join();
        }

        @RateLimited(name = "calls", priority = "#kind")
        public CompletableFuture<String> future(String kind, CompletableFuture<String> body) {
            return body;
        }

        @RateLimited(name = "calls", priority = "#kind")
        public Mono<String> mono(String kind, CompletableFuture<String> body) {
            return Mono.fromFuture(body, true);
        }

        @RateLimited(name = "calls", priority = "#kind")
        public Flux<String> flux(String kind, CompletableFuture<String> body) {
            return Flux.just("first").concatWith(Mono.fromFuture(body, true));
        }

        @RateLimited("quota")
        @RateLimited(name = "calls", priority = "#kind")
        public String two(String kind, CompletableFuture<String> body) {
            return body.join();
        }

        @RateLimited("quota")
        @RateLimited(name = "calls", priority = "#kind")
        public CompletableFuture<String> twoFuture(String kind, CompletableFuture<String> body) {
            return body;
        }

        @RateLimited(name = "calls", priority = "#kind")
        @RateLimited("elsewhere")
        public Mono<String> twoMono(String kind, CompletableFuture<String> body) {
            return Mono.fromFuture(body, true);
        }

        @Limited(as = "'critical'")
        public CompletableFuture<String> critical(CompletableFuture<String> body) {
            return body;
        }

        @Limited(as = "'batch'")
        public CompletableFuture<String> batch(CompletableFuture<String> body) {
            return body;
        }
    }

    @RateLimited(name = "calls", priority = "#kind")
    static class LimitedClass {

        public CompletableFuture<String> future(String kind, CompletableFuture<String> body) {
            return body;
        }
    }

    private static final CompletableFuture<String> DONE = CompletableFuture.completedFuture("done");

    @Parameter
    Door door;

    private final ManualTicker ticker = new ManualTicker();
    private ApplicationContext context;
    private TestLimits limits;

    private void run(Consumer<CompletableFuture<String>> test, String... properties) {
        ContextRunner.limited(ticker)
                .withBean(RecordingBackend.class)
                .withBean(Calls.class)
                .withBean(LimitedClass.class)
                .withPropertyValues(
                        "rate-limit.limits.quota.rate=1000/s",
                        "rate-limit.limits.elsewhere.rate=1000/s",
                        "rate-limit.limits.elsewhere.backend=recording",
                        "rate-limit.limits.calls.algorithm=adaptive",
                        "rate-limit.limits.calls.max-concurrent=2",
                        "rate-limit.limits.calls.priorities=critical,batch")
                .withPropertyValues(properties)
                .run(started -> {
                    context = started;
                    limits = TestLimits.of(started);
                    CompletableFuture<String> body = new CompletableFuture<>();
                    try {
                        test.accept(body);
                    } finally {
                        body.complete("over");
                    }
                });
    }

    private CompletableFuture<String> call(String kind, CompletableFuture<String> body) {
        return door.call(context, kind, body);
    }

    private FoundLimit found() {
        return Objects.requireNonNull(limits.configured("calls").limiter().foundLimit());
    }

    private void awaitInFlight(long number) {
        Threads.until(() -> found().inFlight() == number);
    }

    private void awaitWaiting(int number) {
        Threads.until(() -> found().waiting() == number);
    }

    private static String result(CompletableFuture<String> call) {
        return call.orTimeout(20, TimeUnit.SECONDS).join();
    }

    private static void assertRefused(CompletableFuture<String> call) {
        assertThatThrownBy(() -> result(call)).hasCauseInstanceOf(RateLimitExceededException.class);
    }

    @Test
    void theBestClassGoesWhereOthersAreRefused() {
        run(body -> {
            CompletableFuture<String> batch = call("batch", body);
            awaitInFlight(1);
            assertRefused(call("batch", DONE));
            CompletableFuture<String> critical = call("critical", body);
            awaitInFlight(2);
            assertRefused(call("critical", DONE));
            assertThat(found().refused()).containsExactly(1L, 1L);
            body.complete("done");
            assertThat(result(batch) + result(critical)).isEqualTo("donedone");
            awaitInFlight(0);
        });
    }

    @Test
    void waitingCallsGoByClassAndLateOnesAreRefused() {
        run(
                body -> {
                    CompletableFuture<String> held = call("critical", body);
                    awaitInFlight(1);
                    CompletableFuture<String> batch = call("batch", DONE);
                    awaitWaiting(1);
                    CompletableFuture<String> late = new CompletableFuture<>();
                    CompletableFuture<String> critical = call("critical", late);
                    awaitWaiting(2);
                    body.complete("done");
                    assertThat(result(held)).isEqualTo("done");
                    Threads.until(() -> found().inFlight() == 1 && found().waiting() == 1);
                    assertThat(batch).isNotDone();
                    ticker.advance(Duration.ofSeconds(3));
                    assertRefused(batch);
                    late.complete("late");
                    assertThat(result(critical)).isEqualTo("late");
                    awaitInFlight(0);
                    assertThat(found().refused()).containsExactly(0L, 1L);
                },
                "rate-limit.limits.calls.max-concurrent=1",
                "rate-limit.limits.calls.policy=wait",
                "rate-limit.limits.calls.max-wait=3s");
    }

    @Test
    void aShadowRefusesNobodyAndCountsWhomItWould() {
        run(
                body -> {
                    call("batch", body);
                    awaitInFlight(1);
                    assertThat(result(call("batch", DONE))).isEqualTo("done");
                    assertThat(result(call("critical", DONE))).isEqualTo("done");
                    assertThat(found().refused()).containsExactly(0L, 1L);
                    body.complete("done");
                    awaitInFlight(0);
                },
                "rate-limit.limits.calls.policy=shadow");
    }

    @Test
    void whereNothingIsLimitedEveryCallGoes() {
        run(
                body -> {
                    call("batch", body);
                    assertThat(result(call("batch", DONE))).isEqualTo("done");
                },
                "rate-limit.enabled=false",
                "rate-limit.limits.calls.max-concurrent=1");
    }

    @Test
    void changesWhileCallsAreInFlightHoldForTheNextAndLoseNoPlace() {
        run(body -> {
            CompletableFuture<String> first = call("batch", body);
            awaitInFlight(1);
            assertRefused(call("batch", DONE));
            limits.change("calls", LimitChange.of("priorities", "batch, critical"));
            assertRefused(call("critical", DONE));
            assertRefused(call("critical", DONE));
            CompletableFuture<String> second = call("batch", body);
            awaitInFlight(2);
            assertThat(found().refused()).containsExactly(1L, 2L);
            limits.change("calls", LimitChange.of("max-concurrent", "1").with("min-concurrent", "1"));
            assertRefused(call("batch", DONE));
            limits.change("calls", LimitChange.of("policy", "shadow"));
            assertThat(result(call("batch", DONE))).isEqualTo("done");
            limits.change(
                    "calls",
                    LimitChange.of("priorities", "critical, bulk, batch").with("shares", "batch=50%"));
            limits.revert("calls");
            body.complete("done");
            assertThat(result(first) + result(second)).isEqualTo("donedone");
            awaitInFlight(0);
            CompletableFuture<String> more = new CompletableFuture<>();
            first = call("batch", more);
            awaitInFlight(1);
            second = call("critical", more);
            awaitInFlight(2);
            more.complete("more");
            assertThat(result(first) + result(second)).isEqualTo("moremore");
            awaitInFlight(0);
            assertThat(found().refused()).containsExactly(2L, 3L);
        });
    }
}
