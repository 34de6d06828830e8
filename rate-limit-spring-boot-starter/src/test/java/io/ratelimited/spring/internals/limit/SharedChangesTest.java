package io.ratelimited.spring.internals.limit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.CanonicalKey;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.Contexts;
import io.ratelimited.spring.InvalidRateLimitException;
import io.ratelimited.spring.LimitChange;
import io.ratelimited.spring.RateLimitChangedEvent;
import io.ratelimited.spring.TestLimits;
import io.ratelimited.spring.UnreportedChanges;
import io.ratelimited.spring.backend.LimiterFactory;
import io.ratelimited.spring.backend.SharedChanges;
import java.time.Duration;
import java.time.Instant;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.BiConsumer;
import java.util.function.Supplier;
import org.assertj.core.api.InstanceOfAssertFactories;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.cloud.context.environment.EnvironmentChangeEvent;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.PayloadApplicationEvent;
import org.springframework.core.env.MapPropertySource;
import org.springframework.security.authentication.TestingAuthenticationToken;
import org.springframework.security.core.context.SecurityContextHolder;

/** What an instance makes of changes that others make. */
@ExtendWith(OutputCaptureExtension.class)
@Tag("slow")
class SharedChangesTest {

    private final OtherInstances others = new OtherInstances();
    private final List<RateLimitChangedEvent> reported = new CopyOnWriteArrayList<>();
    private final Map<String, Object> configuration = new HashMap<>(Map.of(
            "rate-limit.backend", "shared",
            "rate-limit.limits.search.rate", "10/s",
            "rate-limit.limits.search.tiers.gold.rate", "50/s"));

    @Test
    @ExtendWith(UnreportedChanges.class)
    void budgetsThatNoCallerHasAnyMoreAreForgotten() {
        run((context, limits) -> {
            ConfiguredLimit limit = context.getBean(LimitRegistry.class).get("search");
            for (int i = 1; i <= 2 * BudgetRegistry.MAXIMUM; i++) {
                others.change("bob", "rate=" + i + "%2Fh");
            }

            assertThat(limit.ownBudgets()).isEqualTo(1);
            assertThat(limit.budgets().limiters).hasSizeLessThanOrEqualTo(BudgetRegistry.MAXIMUM);
        });
    }

    @Test
    void aBudgetOfAnotherVersionIsShownAndCanBeEnded() {
        run((context, limits) -> {
            ConfiguredLimit limit = context.getBean(LimitRegistry.class).get("search");
            others.change(CanonicalKey.digest("bob"), "speed=3");

            assertThat(limit.ownBudget("bob")).containsEntry("changeNotApplied", "a limit has no property speed");
            assertThat(limits.tryAcquire("search", "bob")).isTrue();
            limits.removeOverride("search", "bob");
            assertThat(limit.ownBudgets()).isZero();
        });
    }

    @Test
    void aBudgetThatThisInstanceCannotApplyIsShownAsSuch() {
        run((context, limits) -> {
            ConfiguredLimit limit = context.getBean(LimitRegistry.class).get("search");
            others.change(CanonicalKey.digest("bob"), "tier=platinum");

            assertThat(limit.ownBudget("bob"))
                    .containsOnlyKeys("changeNotApplied")
                    .extractingByKey("changeNotApplied", InstanceOfAssertFactories.STRING)
                    .contains("there is no tier 'platinum'");
        });
    }

    @Test
    void aBudgetThatDidNotSuitTheLimitIsAppliedWhenTheLimitHasChanged() {
        configuration.put("rate-limit.limits.search.algorithm", "fixed-window");
        run((context, limits) -> {
            ConfiguredLimit limit = context.getBean(LimitRegistry.class).get("search");
            others.change(CanonicalKey.digest("bob"), "rate=5%2Fs&burst=60");
            assertThat(limit.ownBudget("bob")).containsKey("changeNotApplied");
            assertThat(limits.tryAcquire("search", "bob", 10)).isTrue();

            configuration.put("rate-limit.limits.search.algorithm", "token-bucket");
            context.publishEvent(new EnvironmentChangeEvent(context, Set.of()));

            assertThat(limit.ownBudget("bob")).isEqualTo(Map.of("rate", "5/s", "burst", 60L));
            assertThat(limits.tryAcquire("search", "bob", 60)).isTrue();
        });
    }

    /** As after a failover. */
    @Test
    void aChangeThatTheBackendHasLostIsReportedWithoutATime(CapturedOutput output) {
        run((context, limits) -> {
            ConfiguredLimit limit = context.getBean(LimitRegistry.class).get("search");
            Object before = limit.limit().rate();
            others.change(null, "rate=77%2Fs");
            others.lose();

            assertThat(limit.limit().rate()).isEqualTo(before);
            assertThat(output.getOut().lines().filter(line -> line.contains("rate 77/s -> ")))
                    .singleElement(InstanceOfAssertFactories.STRING)
                    .endsWith("(scope fleet)");
        });
    }

    @Test
    void aRefreshAppliesWhereASharedChangeDoesNotSuitItAndTheChangeIsSetAside(CapturedOutput output) {
        configuration.put("rate-limit.limits.other.rate", "3/s");
        run((context, limits) -> {
            ConfiguredLimit limit = context.getBean(LimitRegistry.class).get("search");
            limits.limit("other");
            others.change(null, "burst=77&tiers/gold/rate=77%2Fs");
            assertThat(limit.tiers().get("gold").rate()).hasToString("77/s");

            configuration.remove("rate-limit.limits.search.tiers.gold.rate");
            configuration.put("rate-limit.limits.search.rate", "11/s");
            configuration.put("rate-limit.limits.other.rate", "4/s");
            context.publishEvent(new EnvironmentChangeEvent(context, Set.of()));

            assertThat(limits.limit("other").limit().rate()).hasToString("4/s");
            assertThat(limit.limit().rate()).hasToString("11/s");
            assertThat(limit.limit().burst()).isEqualTo(11);
            assertThat(limit.notApplied()).contains("there is no tier 'gold'");
            assertThat(output)
                    .containsOnlyOnce("'search' stays as it is on this instance, which cannot apply the change");
            assertThatThrownBy(() -> limits.change("search", LimitChange.rate("12/s")))
                    .isInstanceOf(InvalidRateLimitException.class);

            configuration.put("rate-limit.limits.search.tiers.gold.rate", "50/s");
            context.publishEvent(new EnvironmentChangeEvent(context, Set.of()));

            assertThat(limit.notApplied()).isNull();
            assertThat(limit.limit().burst()).isEqualTo(77);
            assertThat(limit.tiers().get("gold").rate()).hasToString("77/s");
        });
    }

    @Test
    void aChangeOfAnotherInstanceIsNotReportedInTheNameOfWhoChangesTheLimitNext() {
        run((context, limits) -> {
            limits.limit("search");
            others.changeUnheard("burst=77");
            updateAs("ann", limits);

            assertThat(reported)
                    .extracting(change -> change.after() + " by " + change.principal())
                    .containsExactly("{burst=77} by bob", "{rate=12/s} by ann");
        });
    }

    @Test
    void whoHasChangedALimitIsReportedWhicheverThreadLearnsOfItFirst() {
        run((context, limits) -> {
            limits.limit("search");
            others.toldBeforeTheWriter = true;
            updateAs("ann", limits);

            assertThat(reported)
                    .extracting(change -> change.after() + " by " + change.principal())
                    .containsExactly("{rate=12/s, burst=12} by ann");
        });
    }

    @Test
    void aRecordWithLineFeedsForgesNoLineOfTheLog(CapturedOutput output) {
        configuration.put("rate-limit.limits.search.algorithm", "fixed-window");
        run((context, limits) -> {
            ConfiguredLimit limit = context.getBean(LimitRegistry.class).get("search");
            others.change(null, "rate=5%0AFORGED+1%2Fs");
            others.change(null, "tiers/gold%0AFORGED+2/rate=5%2Fs");
            others.change(null, "\nFORGED 3=1");
            others.change(CanonicalKey.digest("ann"), "rate=5%0AFORGED+4%2Fs");
            others.change(CanonicalKey.digest("bob"), "\nFORGED 5=1");
            assertThat(limit.notApplied()).isNotNull();
            assertThat(limit.ownBudget("ann")).containsKey("changeNotApplied");

            context.addApplicationListener(event -> {
                if (event instanceof PayloadApplicationEvent<?> told
                        && told.getPayload() instanceof RateLimitChangedEvent) {
                    throw new IllegalStateException("listener", new IllegalArgumentException("told\nFORGED 6"));
                }
            });
            as("eve\nFORGED 7", () -> limits.override("search", "c", LimitChange.rate("3/s"), null));

            assertThat(output.toString().lines()).noneMatch(line -> line.startsWith("FORGED"));
            assertThat(output)
                    .contains("FORGED 1", "FORGED 2", "FORGED 3", "FORGED 4", "FORGED 5", "FORGED 6", "FORGED 7");
        });
    }

    /** Other instances go on with what their own configuration says. */
    @Test
    void aRefreshOfTheConfigurationIsReportedAsAChangeOfThisInstance() {
        run((context, limits) -> {
            limits.limit("search");
            configuration.put("rate-limit.limits.search.rate", "11/s");
            context.publishEvent(new EnvironmentChangeEvent(context, Set.of()));

            assertThat(reported)
                    .extracting(change -> change.after().get("rate") + " " + change.scope())
                    .containsExactly("11/s INSTANCE");
        });
    }

    private static void updateAs(String name, TestLimits limits) {
        as(name, () -> limits.change("search", LimitChange.rate("12/s")));
    }

    private static void as(String name, Runnable change) {
        SecurityContextHolder.getContext().setAuthentication(new TestingAuthenticationToken(name, null));
        try {
            change.run();
        } finally {
            SecurityContextHolder.clearContext();
        }
    }

    private void run(BiConsumer<ConfigurableApplicationContext, TestLimits> test) {
        Contexts.runner(new ManualTicker())
                .withInitializer(context -> context.getEnvironment()
                        .getPropertySources()
                        .addFirst(new MapPropertySource("changing", configuration)))
                .withBean(LimiterFactory.class, () -> others)
                .withInitializer(context -> context.addApplicationListener(event -> {
                    if (event instanceof PayloadApplicationEvent<?> told
                            && told.getPayload() instanceof RateLimitChangedEvent change) {
                        reported.add(change);
                    }
                }))
                .run(context -> test.accept(context, TestLimits.of(context)));
    }

    /** The changes that other instances make. */
    private static final class OtherInstances implements LimiterFactory, SharedChanges {

        private final Map<String, Change> changes = new HashMap<>();
        private final Queue<Change> untaken = new ConcurrentLinkedQueue<>();
        private @Nullable Runnable listener;
        private boolean toldBeforeTheWriter;
        private long version;

        void changeUnheard(String text) {
            write("search", null, 0, text, null, "bob", 1);
        }

        void change(@Nullable String caller, String text) {
            write("search", caller, 0, text, null, null, 1);
            assertThat(listener).isNotNull();
            listener.run();
        }

        /** Loses the change of the limit. */
        void lose() {
            untaken.add(new Change("search", null, 0, "", null, null, null));
            assertThat(listener).isNotNull();
            listener.run();
        }

        @Override
        public String backend() {
            return "shared";
        }

        @Override
        public RateLimiter create(Limit limit, String tier, Map<String, String> properties) {
            return new InMemoryRateLimiter(limit);
        }

        @Override
        public SharedChanges sharedChanges() {
            return this;
        }

        @Override
        public @Nullable Change find(String limit, @Nullable String caller) {
            return changes.get(limit + "/" + caller);
        }

        @Override
        public Collection<String> callers(String limit) {
            return Set.of();
        }

        @Override
        public Written write(
                String limit,
                @Nullable String caller,
                long basedOn,
                String text,
                @Nullable Duration lasting,
                @Nullable String author,
                int maximumCallers) {
            Change change = new Change(limit, caller, ++version, text, null, author, Instant.EPOCH);
            changes.put(limit + "/" + caller, change);
            untaken.add(change);
            if (toldBeforeTheWriter) {
                CompletableFuture.runAsync(Objects.requireNonNull(listener)).join();
            }
            return Written.DONE;
        }

        @Override
        public Supplier<@Nullable Change> follow(Runnable told) {
            listener = told;
            return untaken::poll;
        }
    }
}
