package io.ratelimited.spring.internals.limit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.ratelimited.core.Decision;
import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.ContextRunner;
import io.ratelimited.spring.InvalidRateLimitException;
import io.ratelimited.spring.LimitChange;
import io.ratelimited.spring.RateLimitOperations;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.ReservedPermits;
import io.ratelimited.spring.TestLimits;
import java.time.Duration;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** Blocks as applications configure them. */
class LockOutTest {

    private static final Duration SECOND = Duration.ofSeconds(1);
    private static final Duration MINUTE = Duration.ofMinutes(1);

    private final ManualTicker ticker = new ManualTicker();
    private final ContextRunner runner = ContextRunner.limited(ticker);

    static class Door {

        @RateLimited(
                name = "door",
                rate = "2/s",
                key = "#who",
                block = "${first:10s}",
                blockFactor = 3,
                blockMax = "50s")
        public void knock(String who) {}

        @RateLimited(name = "wrong", rate = "2/s", key = "#who", block = "10s", charge = "#error == null ? 0 : 1")
        public void open(String who, boolean right) {
            if (!right) {
                throw new IllegalArgumentException("wrong");
            }
        }
    }

    /** The time for which a call is refused; zero if it goes. */
    private static Duration refused(Runnable call) {
        try {
            call.run();
            return Duration.ZERO;
        } catch (RateLimitExceededException ex) {
            assertThat(ex.decision().blocked()).isTrue();
            return ex.decision().retryAfter();
        }
    }

    @Test
    void aRefusedCallBeginsABlockAndEachOffenceAfterABlockALongerOne() {
        runner.withBean(Door.class).run(context -> {
            Door door = context.getBean(Door.class);
            for (long seconds : new long[] {10, 30, 50, 50}) {
                door.knock("ann");
                door.knock("ann");
                assertThat(refused(() -> door.knock("ann"))).isEqualTo(Duration.ofSeconds(seconds));
                ticker.advance(SECOND);
                assertThat(refused(() -> door.knock("ann")))
                        .as("a call while it is blocked does not prolong the block")
                        .isEqualTo(Duration.ofSeconds(seconds - 1));
                door.knock("bob");
                ticker.advance(Duration.ofSeconds(seconds - 1));
            }
            ticker.advance(Duration.ofSeconds(50));
            door.knock("ann");
            door.knock("ann");
            assertThat(refused(() -> door.knock("ann")))
                    .as("a quiet time forgives")
                    .isEqualTo(Duration.ofSeconds(10));
        });
    }

    @Test
    void propertiesWinOverTheAnnotation() {
        runner.withBean(Door.class)
                .withPropertyValues(
                        "first=7s", "rate-limit.limits.door.block-factor=1", "rate-limit.limits.door.block-max=9s")
                .run(context -> assertThat(TestLimits.of(context).limit("door").limit())
                        .hasToString("door: token-bucket, rate 2/s, burst 2, block 7s to 9s")
                        .satisfies(limit -> assertThat(limit.blockFactor()).isEqualTo(1)));
        runner.withBean(Door.class)
                .withPropertyValues("rate-limit.limits.door.block=0s")
                .run(context -> {
                    TestLimits limits = TestLimits.of(context);
                    assertThat(limits.limit("door").limit().block()).isNull();
                    assertThat(limits.tryAcquire("door", "ann", 2)).isTrue();
                    assertThat(limits.tryAcquire("door", "ann")).isFalse();
                    assertThat(limits.peek("door", "ann").blocked()).isFalse();
                });
    }

    @Test
    void defaultsMeanLimitsWhoseCallsHaveKeys() {
        runner.withPropertyValues(
                        "rate-limit.defaults.block-max=1h",
                        "rate-limit.limits.without.rate=1/s",
                        "rate-limit.limits.blocks.rate=1/s",
                        "rate-limit.limits.blocks.block=5m")
                .run(context -> {
                    TestLimits limits = TestLimits.of(context);
                    assertThat(limits.limit("without").limit().block()).isNull();
                    assertThat(limits.limit("blocks").limit().blockMax()).isEqualTo(Duration.ofHours(1));
                });
        runner.withPropertyValues("rate-limit.defaults.block=1m", "rate-limit.limits.all.rate=1/s")
                .withBean(Unkeyed.class)
                .run(context -> {
                    Unkeyed service = context.getBean(Unkeyed.class);
                    service.call();
                    assertThatExceptionOfType(RateLimitExceededException.class)
                            .isThrownBy(service::call)
                            .satisfies(ex -> assertThat(ex.decision().blocked()).isFalse());
                });
    }

    static class Unkeyed {

        @RateLimited("all")
        public void call() {}
    }

    @Test
    void withAChargeOnlyWhatIsChargedIsAnOffence() {
        runner.withBean(Door.class).run(context -> {
            Door door = context.getBean(Door.class);
            TestLimits limits = TestLimits.of(context);
            for (int i = 0; i < 20; i++) {
                door.open("ann", true);
            }
            try (ReservedPermits other = limits.reserve("wrong", "ann", 2)) {
                assertThat(limits.tryAcquire("wrong", "ann")).isFalse();
                assertThat(limits.peek("wrong", "ann").blocked())
                        .as("a refused call is none")
                        .isFalse();
                other.settle(0);
            }

            wrong(door);
            assertThat(limits.peek("wrong", "ann").blocked()).isFalse();
            wrong(door);
            assertThat(refused(() -> door.open("ann", true))).isEqualTo(Duration.ofSeconds(10));
            ticker.advance(Duration.ofSeconds(9));
            assertThat(refused(() -> door.open("ann", false))).isEqualTo(SECOND);
            ticker.advance(SECOND);
            door.open("ann", true);
            door.open("ann", true);
            door.open("ann", true);
            wrong(door);
            wrong(door);
            assertThat(refused(() -> door.open("ann", true))).isEqualTo(Duration.ofSeconds(20));
            door.open("bob", true);
        });
    }

    private static void wrong(Door door) {
        assertThatExceptionOfType(IllegalArgumentException.class).isThrownBy(() -> door.open("ann", false));
    }

    /** Code settles for itself what the property names. */
    @Test
    void aChargeInThePropertiesOfALimitOfCodeSaysTheSame() {
        runner.withPropertyValues(
                        "rate-limit.limits.pins.rate=1/s",
                        "rate-limit.limits.pins.block=1m",
                        "rate-limit.limits.pins.charge=#wrong",
                        "rate-limit.limits.pins.tiers.gold.rate=2/s")
                .run(context -> {
                    TestLimits limits = TestLimits.of(context);
                    assertThat(limits.limit("pins").tiers().get("gold").blocksByCharge())
                            .isTrue();
                    ReservedPermits first = limits.reserve("pins", "ann", 1);
                    assertThat(limits.tryAcquire("pins", "ann")).isFalse();
                    assertThat(limits.peek("pins", "ann").blocked()).isFalse();
                    first.settle(1);
                    assertThat(limits.peek("pins", "ann").blocked()).isTrue();
                });
    }

    /** A bean may ask for a limit before anybody knows how methods use it. */
    @Test
    void theUseOfALimitSaysWhatOffendsHoweverEarlyTheLimitIsMade() {
        runner.withBean(Early.class)
                .withBean(Charged.class)
                .withPropertyValues(
                        "rate-limit.limits.early.rate=1/s",
                        "rate-limit.limits.early.block=1m",
                        "rate-limit.limits.early.tiers.gold.rate=2/s")
                .run(context -> {
                    assertThat(context.getBean(Early.class).byCharge).isFalse();
                    TestLimits limits = TestLimits.of(context);
                    assertThat(limits.limit("early").limit().blocksByCharge()).isTrue();
                    assertThat(limits.limit("early").tiers().get("gold").blocksByCharge())
                            .isTrue();

                    limits.change("early", LimitChange.of("block", "1h"));
                    assertThat(limits.limit("early").limit().blocksByCharge()).isTrue();
                    limits.override("early", "ann", LimitChange.rate("1/s"), null);
                    limits.tryAcquire("early", "ann", 1);
                    assertThat(limits.tryAcquire("early", "ann")).isFalse();
                    assertThat(limits.peek("early", "ann").blocked()).isFalse();
                    limits.change("early", LimitChange.of("block", "1m"));
                    assertThat(limits.tryAcquire("early", "ann")).isFalse();
                    assertThat(limits.peek("early", "ann").blocked())
                            .as("budgets follow a change of their limit")
                            .isFalse();
                });
    }

    static class Early {

        private final boolean byCharge;

        Early(RateLimitOperations limits) {
            this.byCharge = limits.limit("early").limit().blocksByCharge();
        }
    }

    static class Charged {

        @RateLimited(name = "early", key = "#who", charge = "1")
        public void call(String who) {}
    }

    @Test
    void theQuotaOfACallerSaysThatItIsBlocked() {
        runner.withBean(Door.class).run(context -> {
            TestLimits limits = TestLimits.of(context);
            limits.tryAcquire("door", "ann", 2);
            limits.tryAcquire("door", "ann");

            assertThat(limits.remaining("ann"))
                    .filteredOn(Decision::blocked)
                    .singleElement()
                    .satisfies(door -> {
                        assertThat(door.limit()).isEqualTo("door");
                        assertThat(door.remaining()).isZero();
                        assertThat(door.retryAfter()).isEqualTo(Duration.ofSeconds(10));
                        assertThat(door.reset()).isEqualTo(Duration.ofSeconds(10));
                    });
            assertThat(limits.remaining("bob")).noneMatch(Decision::blocked);

            limits.reset("door", "ann");
            assertThat(limits.tryAcquire("door", "ann")).isTrue();
        });
    }

    @Test
    void underShadowABlockRefusesNobody() {
        runner.withBean(Door.class)
                .withPropertyValues("rate-limit.limits.door.policy=shadow")
                .run(context -> {
                    Door door = context.getBean(Door.class);
                    for (int i = 0; i < 10; i++) {
                        door.knock("ann");
                    }
                    assertThat(TestLimits.of(context).peek("door", "ann").blocked())
                            .isTrue();
                });
    }

    /** The budget of a tier, and that of one caller, has the blocks of the limit unless it sets its own. */
    @Test
    void tiersAndOwnBudgetsBlockAsTheirLimit() {
        runner.withPropertyValues(
                        "rate-limit.limits.search.rate=1/s",
                        "rate-limit.limits.search.block=1m",
                        "rate-limit.limits.search.tiers.gold.rate=2/s",
                        "rate-limit.limits.search.tiers.free.rate=1/s",
                        "rate-limit.limits.search.tiers.free.block=1h",
                        "rate-limit.limits.search.tiers.staff.rate=1/s",
                        "rate-limit.limits.search.tiers.staff.block=0s")
                .run(context -> {
                    TestLimits limits = TestLimits.of(context);
                    assertThat(limits.limit("search").tiers())
                            .hasEntrySatisfying(
                                    "gold", tier -> assertThat(tier.block()).isEqualTo(MINUTE))
                            .hasEntrySatisfying(
                                    "free", tier -> assertThat(tier.block()).isEqualTo(Duration.ofHours(1)))
                            .hasEntrySatisfying(
                                    "staff", tier -> assertThat(tier.block()).isNull());

                    limits.override("search", "ann", LimitChange.rate("5/s"), null);
                    assertThat(limits.tryAcquire("search", "ann", 5)).isTrue();
                    assertThat(limits.tryAcquire("search", "ann")).isFalse();
                    assertThat(limits.peek("search", "ann").retryAfter()).isEqualTo(MINUTE);
                });
    }

    /** A tier and an override are budgets of their own, also of what is blocked: a caller who chooses his tier leaves his block. */
    @Test
    void aBlockIsOfTheBudgetThatItsCallerHad() {
        runner.withBean(Search.class)
                .withPropertyValues(
                        "rate-limit.limits.search.rate=1/s",
                        "rate-limit.limits.search.block=1m",
                        "rate-limit.limits.search.tiers.gold.rate=2/s")
                .run(context -> {
                    TestLimits limits = TestLimits.of(context);
                    Search search = context.getBean(Search.class);
                    search.find("ann", null);
                    assertThat(refused(() -> search.find("ann", null))).isEqualTo(MINUTE);
                    assertThat(refused(() -> search.find("ann", "gold"))).isZero();

                    limits.override("search", "ann", LimitChange.rate("1/s"), null);
                    assertThat(refused(() -> search.find("ann", null))).isZero();
                    limits.removeOverride("search", "ann");
                    assertThat(refused(() -> search.find("ann", null))).isEqualTo(MINUTE);
                });
    }

    static class Search {

        @RateLimited(name = "search", key = "#who", tier = "#tier")
        public void find(String who, @Nullable String tier) {}
    }

    @Test
    void blocksChangeAtRunTime() {
        runner.withBean(Door.class)
                .withBean(Unkeyed.class)
                .withPropertyValues("rate-limit.limits.all.rate=1/s")
                .run(context -> {
                    TestLimits limits = TestLimits.of(context);
                    limits.change("door", LimitChange.of("block", "1m").with("block-max", "2h"));
                    limits.tryAcquire("door", "ann", 2);
                    limits.tryAcquire("door", "ann");
                    assertThat(limits.peek("door", "ann").retryAfter()).isEqualTo(MINUTE);

                    limits.change("door", LimitChange.of("block", "0s"));
                    assertThat(limits.limit("door").limit().block()).isNull();
                    ticker.advance(SECOND);
                    assertThat(limits.tryAcquire("door", "ann")).isTrue();
                    limits.revert("door");
                    assertThat(limits.limit("door").limit().block()).isEqualTo(Duration.ofSeconds(10));

                    assertThatExceptionOfType(InvalidRateLimitException.class)
                            .isThrownBy(() -> limits.change("door", LimitChange.of("block", "2h")))
                            .withMessageContaining("blockMax is 50s, but must be from block, 2h, to 365d");
                    assertThatExceptionOfType(InvalidRateLimitException.class)
                            .isThrownBy(() -> limits.change("all", LimitChange.of("block", "1m")))
                            .withMessageContaining(
                                    "but calls without a key cannot be blocked, as those of @RateLimited on")
                            .withMessageContaining("$Unkeyed.call(). Origin: ");
                    limits.change("wrong", LimitChange.of("block", "1m"));
                    assertThat(limits.limit("wrong").limit().blocksByCharge()).isTrue();
                });
    }
}
