package io.ratelimited.spring.internals.limit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.InvalidLimitException;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.spring.ContextRunner;
import io.ratelimited.spring.InvalidRateLimitException;
import io.ratelimited.spring.LimitChange;
import io.ratelimited.spring.TestLimits;
import io.ratelimited.spring.backend.LimiterFactory;
import io.ratelimited.spring.backend.SharedChanges;
import io.ratelimited.spring.internals.limit.LimitProperty.OnFailure;
import java.time.Duration;
import java.time.Instant;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** Changes to limits that their backend does not support. */
class UnsupportedChangesTest {

    private final Small backend = new Small();

    @Test
    void aLimitThatTheBackendDoesNotSupportFailsStartup() {
        runner("rate-limit.limits.pool.burst=500")
                .run(context -> assertThat(context.getStartupFailure())
                        .hasMessageContaining("'pool' is invalid: burst is 500, but backend small supports at most 100")
                        .hasMessageContaining("Origin: rate-limit.limits.pool.burst."));
        assertThat(backend.created).isEmpty();
    }

    @Test
    void aChangeThatTheBackendDoesNotSupportIsMadeNowhereAndBarsNoLaterOne() {
        run(limits -> {
            assertRejected(() -> limits.change("pool", LimitChange.of("burst", "500")));
            assertThat(backend.records).isEmpty();

            limits.change("pool", LimitChange.of("burst", "50"));
            assertThat(backend.text()).isEqualTo("burst=50");
            assertThat(limits.limit("pool").limit().burst()).isEqualTo(50);
        });
    }

    @Test
    void aChangeThatTheBackendDoesNotSupportForATierChangesNothingElse() {
        for (boolean shares : new boolean[] {true, false}) {
            backend.shares = shares;
            run(limits -> {
                assertRejected(() ->
                        limits.change("pool", LimitChange.of("burst", "50").with("tiers.gold.burst", "500")));

                assertThat(backend.records).isEmpty();
                assertThat(limits.limit("pool").limit().burst()).isEqualTo(10);
                assertThat(limits.limit("pool").tiers().get("gold").burst()).isEqualTo(20);
            });
        }
    }

    @Test
    void anOverrideThatTheBackendDoesNotSupportIsMadeNowhere() {
        run(limits -> {
            assertRejected(() ->
                    limits.override("pool", "ann", LimitChange.rate("10/s").burst(500), null));
            assertThat(backend.records).isEmpty();
            assertThat(limits.configured("pool").ownBudgets()).isZero();
        });
    }

    @Test
    void aRefreshThatABackendDoesNotSupportForOneLimitChangesNone() {
        runner("rate-limit.limits.a.rate=10/s", "rate-limit.limits.z.rate=10/s").run(context -> {
            LimitRegistry registry = context.getBean(LimitRegistry.class);
            registry.registerConfigured();
            Map<LimitProperty, Object> changed = Map.of(LimitProperty.RATE, "20/s");
            Map<LimitProperty, Object> large = Map.of(LimitProperty.RATE, "20/s", LimitProperty.BURST, 500L);

            assertRejected(() -> registry.refresh(new LimitSettings(
                    "small", OnFailure.LOCAL, Map.of(), Map.of("a", changed, "pool", large, "z", changed))));

            assertThat(registry.all())
                    .extracting(limit -> limit.limit().rate().toString())
                    .containsOnly("10/s");
        });
    }

    @Test
    void aRecordThatTheBackendDoesNotSupportIsReportedAndAChangeRepairsIt() {
        run(limits -> {
            ConfiguredLimit pool = limits.configured("pool");
            backend.changeElsewhere("rate=20%2Fs&burst=500");
            assertThat(pool.notApplied()).contains("backend small supports at most 100");
            assertThat(pool.limit().rate()).hasToString("10/s");

            // As a whole it still is none that the backend supports, and the rate of the others is not lost.
            assertThatExceptionOfType(InvalidRateLimitException.class)
                    .isThrownBy(() -> limits.change("pool", LimitChange.of("max-waiting", "7")))
                    .withMessageContaining("does not apply the change for all instances")
                    .withMessageContaining("burst is 500, but backend small supports at most 100");
            assertThat(backend.text()).isEqualTo("rate=20%2Fs&burst=500");

            limits.change("pool", LimitChange.of("burst", "50"));
            assertThat(backend.text()).isEqualTo("rate=20%2Fs&burst=50");
            assertThat(pool.notApplied()).isNull();
            assertThat(pool.limit().rate()).hasToString("20/s");
            assertThat(pool.limit().burst()).isEqualTo(50);
        });
    }

    @Test
    void aRecordThatTheBackendDoesNotSupportCanBeReverted() {
        run(limits -> {
            ConfiguredLimit pool = limits.configured("pool");
            backend.changeElsewhere("burst=500");
            limits.revert("pool");
            assertThat(backend.text()).isEmpty();
            assertThat(pool.notApplied()).isNull();
        });
    }

    @Test
    void aRecordThatTheBackendDoesNotSupportForATierIsRepairedWithIt() {
        run(limits -> {
            ConfiguredLimit pool = limits.configured("pool");
            backend.changeElsewhere("tiers/gold/rate=30%2Fs&tiers/gold/burst=500");
            assertThat(pool.notApplied()).contains("backend small supports at most 100");

            limits.change("pool", LimitChange.tier("gold").with("burst", "50"));
            assertThat(pool.notApplied()).isNull();
            assertThat(pool.tiers().get("gold").rate()).hasToString("30/s");
            assertThat(pool.tiers().get("gold").burst()).isEqualTo(50);
        });
    }

    @Test
    void anOverrideThatTheBackendDoesNotSupportAfterAChangeOfItsLimitStaysAsItWas() {
        run(limits -> {
            limits.override("pool", "ann", LimitChange.rate("100/s").burst(100), null);
            limits.change("pool", LimitChange.of("algorithm", "gcra"));

            assertThat(limits.limit("pool").limit().algorithm()).isEqualTo(Algorithm.GCRA);
            assertThat(backend.created.get("=rate=100%2Fs&burst=100").limit().algorithm())
                    .isEqualTo(Algorithm.TOKEN_BUCKET);
        });
    }

    private static void assertRejected(ThrowingCallable change) {
        assertThatExceptionOfType(InvalidRateLimitException.class)
                .isThrownBy(change)
                .withMessageContaining("'pool' is invalid: burst is 500, but backend small supports at most 100");
    }

    private ContextRunner runner(String... more) {
        return ContextRunner.limited()
                .withPropertyValues(
                        "rate-limit.backend=small",
                        "rate-limit.limits.pool.rate=10/s",
                        "rate-limit.limits.pool.tiers.gold.rate=20/s")
                .withPropertyValues(more)
                .withBean(LimiterFactory.class, () -> backend);
    }

    private void run(Consumer<TestLimits> test) {
        runner().run(context -> {
            TestLimits limits = TestLimits.of(context);
            limits.limit("pool");
            test.accept(limits);
        });
    }

    /** Supports no burst over 100, or 50 with GCRA. Its limiters do not check what they are changed to. */
    private static final class Small implements LimiterFactory, SharedChanges {

        private final Map<String, RateLimiter> created = new HashMap<>();
        private final Map<String, Change> records = new HashMap<>();
        private final Queue<Change> untaken = new ConcurrentLinkedQueue<>();
        private Runnable listener = () -> {};
        private boolean shares = true;
        private long version;

        void changeElsewhere(String text) {
            put("pool", null, text);
            listener.run();
        }

        private void put(String limit, @Nullable String caller, String text) {
            Change change = new Change(limit, caller, ++version, text, null, null, Instant.EPOCH);
            records.put(limit + "/" + caller, change);
            untaken.add(change);
        }

        /** The text of the changes of the limit. */
        String text() {
            return records.get("pool/null").text();
        }

        @Override
        public String backend() {
            return "small";
        }

        @Override
        public void check(Limit limit) {
            int most = limit.algorithm() == Algorithm.GCRA ? 50 : 100;
            if (limit.burst() > most) {
                throw new InvalidLimitException(
                        "burst", "is " + limit.burst() + ", but backend small supports at most " + most);
            }
        }

        @Override
        public RateLimiter create(Limit limit, String tier, Map<String, String> properties) {
            RateLimiter limiter = new InMemoryRateLimiter(limit);
            created.put(tier, limiter);
            return limiter;
        }

        @Override
        public @Nullable SharedChanges sharedChanges() {
            return shares ? this : null;
        }

        @Override
        public @Nullable Change find(String limit, @Nullable String caller) {
            return records.get(limit + "/" + caller);
        }

        @Override
        public Collection<String> callers(String limit) {
            return List.of();
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
            Change known = find(limit, caller);
            if ((known == null ? 0 : known.version()) != basedOn) {
                return Written.OUTDATED;
            }
            put(limit, caller, text);
            return Written.DONE;
        }

        @Override
        public Supplier<@Nullable Change> follow(Runnable task) {
            listener = task;
            return untaken::poll;
        }
    }
}
