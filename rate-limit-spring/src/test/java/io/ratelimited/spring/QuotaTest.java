package io.ratelimited.spring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Decision;
import io.ratelimited.core.testing.ManualTicker;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;

/** What callers have left of each of their limits. */
final class QuotaTest {

    private final AnnotationConfigApplicationContext context = ContextRunner.start(
            new ManualTicker(),
            new Class<?>[] {Shop.class},
            "rate-limit.limits.search.rate=10/s",
            "rate-limit.limits.search.tiers.gold.rate=50/s",
            "rate-limit.limits.import.rate=3/h",
            "rate-limit.limits.import.key=#user",
            "rate-limit.limits.login.missing-key=deny",
            "rate-limit.limits.flight.missing-key=skip",
            "rate-limit.limits.tried.policy=shadow",
            "rate-limit.limits.unnamed.rate=7/s");
    private final TestLimits limits = TestLimits.of(context);

    @AfterEach
    void stop() {
        context.close();
    }

    @Test
    void everyLimitWithAKeyIsListedByName() {
        limits.tryAcquire("search", "ann", 4);
        limits.tryAcquire("daily", "ann", 5);

        List<Decision> quota = limits.remaining("ann");

        assertThat(quota).extracting(Decision::limit).containsExactly("daily", "flight", "import", "login", "search");
        assertThat(quota).extracting(Decision::remaining).containsExactly(0L, 2L, 3L, 2L, 6L);
        assertThat(quota).extracting(Decision::admitted).containsExactly(false, true, true, true, true);
        assertThat(quota.get(4).reset()).isEqualTo(Duration.ofMillis(400));
        assertThat(quota.get(4)).isEqualTo(limits.peek("search", "ann"));
        assertThat(limits.remaining("bob")).extracting(Decision::remaining).containsExactly(5L, 2L, 3L, 2L, 10L);
    }

    @Test
    void nothingIsTakenAndNoKeyIsRemembered() {
        for (int i = 0; i < 50; i++) {
            limits.remaining("user " + i);
            limits.remaining("ann");
        }

        assertThat(limits.remaining("ann")).extracting(Decision::remaining).containsExactly(5L, 2L, 3L, 2L, 10L);
        assertThat(limits.limits()).allSatisfy(limit -> assertThat(limit.keys()).isZero());
    }

    @Test
    void aTierIsAskedWhereALimitHasIt() {
        limits.configured("search").limitersOfTiers().get("gold").tryAcquire("gina", 20);

        assertThat(limits.remaining("gina", "gold"))
                .extracting(Decision::remaining)
                .containsExactly(5L, 2L, 3L, 2L, 30L);
        assertThat(limits.remaining("gina", "silver")).isEqualTo(limits.remaining("gina"));
        assertThat(limits.remaining("gina")).extracting(Decision::remaining).containsExactly(5L, 2L, 3L, 2L, 10L);
    }

    @Test
    void aBudgetOfACallersOwnIsAskedWhateverItsTier() {
        limits.override("search", "rich", LimitChange.rate("70/s"), null);

        assertThat(limits.remaining("rich")).extracting(Decision::remaining).containsExactly(5L, 2L, 3L, 2L, 70L);
        assertThat(limits.remaining("rich", "gold")).isEqualTo(limits.remaining("rich"));
        limits.removeOverride("search", "rich");
        assertThat(limits.remaining("rich")).extracting(Decision::remaining).containsExactly(5L, 2L, 3L, 2L, 10L);
    }

    @Test
    void callsWithoutAKeyHaveTheBudgetsThatTheyShare() {
        limits.tryAcquire("search", null, 1);

        assertThat(limits.remaining(null))
                .as("login refuses such calls, and flight does not apply to them")
                .extracting(Decision::limit)
                .containsExactly("daily", "import", "search");
        assertThat(limits.remaining(null)).extracting(Decision::remaining).containsExactly(5L, 3L, 9L);
    }

    @Test
    void callsInFlightAreCounted() {
        limits.execute("flight", "ann", () -> {
            assertThat(limits.remaining("ann").get(1).remaining()).isEqualTo(1);
            return "landed";
        });
        assertThat(limits.remaining("ann").get(1).remaining()).isEqualTo(2);
    }

    @Test
    void whatCannotBeAKeyIsRefused() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> limits.remaining(new Object()))
                .withMessageContaining("java.lang.Object");
    }

    static class Shop {

        @RateLimited(name = "search", key = "#user")
        public void search(String user) {}

        @RateLimited(name = "daily", algorithm = Algorithm.SLIDING_LOG, rate = "5/d", key = "#user")
        public void order(String user) {}

        @RateLimited(name = "login", rate = "2/m", key = "#user")
        public void login(String user) {}

        @RateLimited(name = "flight", algorithm = Algorithm.CONCURRENCY, maxConcurrent = 2, key = "#user")
        public void export(String user) {}

        @RateLimited(name = "tried", rate = "1/s", key = "#user")
        public void tried(String user) {}

        @RateLimited(name = "everybody", rate = "9/s")
        public void everybody() {}
    }
}
