package io.ratelimited.spring.internals.limit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Policy;
import io.ratelimited.core.Ticker;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.ContextRunner;
import io.ratelimited.spring.InvalidRateLimitException;
import io.ratelimited.spring.LimitChange;
import io.ratelimited.spring.NamedLimit;
import io.ratelimited.spring.RateLimitChangedEvent;
import io.ratelimited.spring.RateLimitOperations;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.TestLimits;
import io.ratelimited.spring.internals.limit.LimitProperty.OnFailure;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.context.ApplicationListener;
import org.springframework.context.PayloadApplicationEvent;

/** What operators do with limits in use. */
class RateLimitOperationsTest {

    private final ManualTicker ticker = new ManualTicker();
    private final List<RateLimitChangedEvent> events = new CopyOnWriteArrayList<>();
    private final ContextRunner application = ContextRunner.plain()
            .withBean(Ticker.class, () -> ticker)
            .withInitializer(context ->
                    context.addApplicationListener((ApplicationListener<PayloadApplicationEvent<?>>) event -> {
                        if (event.getPayload() instanceof RateLimitChangedEvent changed) {
                            events.add(changed);
                        }
                    }))
            .withPropertyValues(
                    "rate-limit.limits.search.rate=10/m",
                    "rate-limit.limits.search.key=#user",
                    "rate-limit.limits.search.tier=#plan",
                    "rate-limit.limits.search.tiers.gold.rate=100/m");

    private void run(BiConsumer<RateLimitOperations, RateLimits> test) {
        application.run(
                context -> test.accept(context.getBean(RateLimitOperations.class), context.getBean(RateLimits.class)));
    }

    private static long admitted(RateLimits limits, String key, int calls) {
        return IntStream.range(0, calls)
                .filter(call -> limits.tryAcquire("search", key))
                .count();
    }

    @Test
    void aChangeKeepsWhatWasUsedAndARevertRestoresTheConfiguration() {
        run((operations, limits) -> {
            assertThat(admitted(limits, "alice", 4)).isEqualTo(4);
            assertThat(operations
                            .change("search", LimitChange.rate("20/m").burst(8))
                            .burst())
                    .isEqualTo(8);
            assertThat(admitted(limits, "alice", 20)).isBetween(4L, 5L);
            assertThat(admitted(limits, "bob", 20)).isEqualTo(8);

            assertThat(operations.revert("search").rate()).hasToString("10/m");
            assertThat(admitted(limits, "carol", 20)).isEqualTo(10);
            assertThat(events).hasSize(2);
        });
    }

    @Test
    void aPropertyIsNamedAsInTheConfiguration() {
        run((operations, limits) -> {
            operations.change("search", LimitChange.of("policy", "wait").with("max-wait", "2s"));
            NamedLimit limit = operations.limits().iterator().next();
            assertThat(limit.maxWaitNanos()).isEqualTo(Duration.ofSeconds(2).toNanos());
        });
    }

    /** Limits of annotations are known when all beans are created. */
    @ParameterizedTest
    @ValueSource(classes = {ChangesEarly.class, CallsEarly.class})
    void aBeanThatUsesALimitOfAnAnnotationTooEarlyFailsWithTheRemedy(Class<?> early) {
        application
                .with(early, Uploads.class)
                .run(context -> assertThat(context)
                        .getFailure()
                        .rootCause()
                        .hasMessageStartingWith(
                                "there is no rate limit named 'uploads'; there are [search]. Annotations are read")
                        .hasMessageContaining("ContextRefreshedEvent")
                        .hasMessageContaining("rate-limit.limits.uploads"));
        application.with(Uploads.class).run(context -> {
            RateLimitOperations operations = context.getBean(RateLimitOperations.class);
            operations.override("uploads", "alice", LimitChange.rate("2/m"), null);
            assertThatThrownBy(() -> operations.limit("upload"))
                    .hasMessageContaining("there are [search, uploads]")
                    .message()
                    .doesNotContain("Annotations");
        });
    }

    static class Uploads {

        @RateLimited(name = "uploads", rate = "1/m", key = "#user")
        public void upload(String user) {}
    }

    static class ChangesEarly {

        ChangesEarly(RateLimitOperations operations) {
            operations.override("uploads", "alice", LimitChange.rate("2/m"), null);
        }
    }

    static class CallsEarly {

        CallsEarly(RateLimits limits) {
            limits.tryAcquire("uploads", "alice");
        }
    }

    @Test
    void aTierChangesAlone() {
        run((operations, limits) -> {
            operations.change("search", LimitChange.tier("gold").with("rate", "3/m"));
            operations.override("search", "alice", LimitChange.tier("gold"), null);
            assertThat(admitted(limits, "alice", 20)).isEqualTo(3);
            assertThat(admitted(limits, "bob", 20)).isEqualTo(10);
        });
    }

    @Test
    void anOverrideIsTheLimitOfOneCallerUntilItEnds() {
        run((operations, limits) -> {
            operations.override("search", "alice", LimitChange.rate("50/m").burst(2), Duration.ofHours(1));
            assertThat(admitted(limits, "alice", 20)).isEqualTo(2);
            assertThat(admitted(limits, "bob", 20)).isEqualTo(10);

            ticker.advance(Duration.ofHours(2));
            assertThat(admitted(limits, "alice", 20)).isEqualTo(10);

            operations.override("search", "bob", LimitChange.rate("1/m"), null);
            assertThat(admitted(limits, "bob", 20)).isEqualTo(1);
            operations.removeOverride("search", "bob");
            ticker.advance(Duration.ofHours(2));
            assertThat(admitted(limits, "bob", 20)).isEqualTo(10);
        });
    }

    @Test
    void aResetForgetsWhatAKeyHasUsed() {
        run((operations, limits) -> {
            assertThat(admitted(limits, "alice", 20)).isEqualTo(10);
            operations.reset("search", "alice");
            assertThat(admitted(limits, "alice", 20)).isEqualTo(10);
        });
    }

    @Test
    void anOverrideThatACallerHadBeforeHasWhatIsLeftOfItUntilAResetAfterTheChange() {
        application.run(context -> {
            TestLimits limits = TestLimits.of(context);
            LimitChange own = LimitChange.rate("5/h");
            limits.override("search", "alice", own, null);
            assertThat(admitted(limits, "alice", 20)).isEqualTo(5);
            limits.removeOverride("search", "alice");
            limits.reset("search", "alice");

            limits.override("search", "alice", own, null);
            assertThat(admitted(limits, "alice", 20)).isZero();
            limits.reset("search", "alice");
            assertThat(admitted(limits, "alice", 20)).isEqualTo(5);

            limits.configured("search").limitersOfTiers().get("gold").tryAcquire("bob", 98);
            limits.override("search", "bob", LimitChange.tier("gold"), null);
            assertThat(admitted(limits, "bob", 20)).isEqualTo(2);
        });
    }

    @Test
    void allLimitsAreShownByName() {
        run((operations, limits) ->
                assertThat(operations.limits()).extracting(NamedLimit::name).containsExactly("search"));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "raet|1/s|can only set|did you mean 'rate'",
                "backend|redis|can only set|",
                "burst|many|burst is \"many\"|",
                "max-wait|soon|max-wait is \"soon\"|",
                "policy|refuse|policy is \"refuse\"|reject"
            })
    void anUnreadableChangeChangesNothingAndSaysWhatToWrite(String property, String value, String part, String other) {
        run((operations, limits) -> {
            assertThatThrownBy(() -> operations.change("search", LimitChange.of(property, value)))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("'search'")
                    .hasMessageContaining(part)
                    .hasMessageContaining(other == null ? "" : other);
            assertThat(admitted(limits, "alice", 20)).isEqualTo(10);
            assertThat(events).isEmpty();
        });
    }

    @Test
    void anInvalidLimitChangesNothing() {
        run((operations, limits) -> {
            assertThatThrownBy(() ->
                            operations.change("search", LimitChange.rate("1/s").burst(0)))
                    .isInstanceOf(InvalidRateLimitException.class)
                    .hasMessageContaining("burst");
            assertThatThrownBy(() -> operations.change("nobody", LimitChange.rate("1/s")))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("nobody");
            assertThatThrownBy(() -> operations.override("search", "alice", LimitChange.of("slots", "3"), null))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("slots");
            assertThat(admitted(limits, "alice", 20)).isEqualTo(10);
        });
    }

    /** Code that depends on the bean starts, and its changes have no effect. */
    @Test
    void operatorsHaveTheirBeanWhereNothingIsLimited() {
        ContextRunner.plain()
                .withPropertyValues("rate-limit.enabled=false", "rate-limit.limits.search.rate=1/m")
                .run(context -> {
                    RateLimitOperations operations = context.getBean(RateLimitOperations.class);
                    operations.change("search", LimitChange.rate("0/s"));
                    operations.override("unknown", "alice", LimitChange.rate("0/s"), null);
                    operations.removeOverride("unknown", "alice");
                    operations.reset("search", "alice");
                    operations.revert("search");
                    assertThat(operations.limits()).extracting(NamedLimit::name).contains("search");
                    assertThat(admitted(context.getBean(RateLimits.class), "alice", 20))
                            .isEqualTo(20);
                });
    }

    private final ContextRunner waiting = application.withPropertyValues(
            "rate-limit.limits.places.algorithm=CONCURRENCY",
            "rate-limit.limits.places.max-concurrent=1",
            "rate-limit.limits.places.policy=wait",
            "rate-limit.limits.places.max-wait=60s");

    /** One call is in flight, and another one waits. What it does when it goes or ends has to have ended, too. */
    private void whileOneWaits(Consumer<TestLimits> going, BiConsumer<TestLimits, LimitRegistry> test) {
        AtomicReference<CompletableFuture<Void>> gone = new AtomicReference<>();
        waiting.run(context -> {
            TestLimits limits = TestLimits.of(context);
            limits.reserve("places", null, 1);
            gone.set(limits.reserveAsync("places", null, 1).handle((permits, closed) -> {
                going.accept(limits);
                return null;
            }));
            test.accept(limits, context.getBean(LimitRegistry.class));
        });
        gone.get().join();
    }

    /** Waits for another thread, as a call may that asks a service. */
    private static void elsewhere(Runnable task) {
        CompletableFuture.runAsync(task).orTimeout(20, TimeUnit.SECONDS).join();
    }

    private static void maxConcurrent(TestLimits limits, String number) {
        limits.change("places", LimitChange.of("maxConcurrent", number));
    }

    @Test
    void aCallThatAChangeLetsGoContinuesWithoutTheLockOfChanges() {
        whileOneWaits(
                limits -> elsewhere(() -> limits.change("search", LimitChange.rate("77/m"))),
                (limits, registry) -> maxConcurrent(limits, "2"));
    }

    @Test
    void aChangeByACallThatAnotherChangeLetsGoComesBehindIt() {
        whileOneWaits(limits -> maxConcurrent(limits, "7"), (limits, registry) -> {
            maxConcurrent(limits, "2");
            // The call goes on in a thread of its own.
            Awaitility.await().until(() -> limits.limit("places").limit().maxConcurrent() == 7);
            assertThat(limits.change("places", LimitChange.of("maxWait", "30s")).maxConcurrent())
                    .isEqualTo(7);
        });
    }

    @Test
    void aCallThatARefreshLetsGoContinuesWithoutALock() {
        LimitSettings refreshed = new LimitSettings(
                "memory",
                OnFailure.LOCAL,
                Map.of(),
                Map.of(
                        "places",
                        Map.of(
                                LimitProperty.ALGORITHM,
                                Algorithm.CONCURRENCY,
                                LimitProperty.MAX_CONCURRENT,
                                2,
                                LimitProperty.POLICY,
                                Policy.WAIT,
                                LimitProperty.MAX_WAIT,
                                Duration.ofMinutes(1)),
                        "search",
                        Map.of(LimitProperty.RATE, "10/m")));
        AtomicReference<LimitRegistry> used = new AtomicReference<>();
        whileOneWaits(limits -> elsewhere(() -> used.get().refresh(refreshed)), (limits, registry) -> {
            used.set(registry);
            registry.refresh(refreshed);
            assertThat(limits.limit("places").limit().maxConcurrent()).isEqualTo(2);
        });
    }

    @Test
    void aCallWhoseWaitEndsWithTheApplicationContinuesWithoutTheLockOfChanges() {
        whileOneWaits(
                limits -> elsewhere(() -> limits.change("search", LimitChange.rate("77/m"))), (limits, registry) -> {});
    }
}
