package io.ratelimited.spring.test;

import static io.ratelimited.spring.test.RateLimitAssertions.assertThat;
import static io.ratelimited.spring.test.RateLimitAssertions.assertThatCall;
import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Decision;
import io.ratelimited.core.Policy;
import io.ratelimited.core.Ticker;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.LimitChange;
import io.ratelimited.spring.RateLimitOperations;
import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.internals.limit.LimitCandidates;
import io.ratelimited.spring.internals.limit.LimitRegistry;
import java.time.Duration;
import java.time.Instant;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.context.SpringBootTest;

/** Each test of a user begins as if it were the first: what it uses up here, it uses up twice. */
@SpringBootTest(
        classes = Shop.class,
        webEnvironment = SpringBootTest.WebEnvironment.NONE,
        properties = {
            "rate-limit.enabled=false",
            "rate-limit.backend=redis",
            "rate-limit.limits.login.backend=redis",
            "rate-limit.limits.login.on-failure=deny",
            "rate-limit.limits.daily.backend=of-my-own",
            "of.acme=3/m burst 4",
        })
@AutoConfigureRateLimits
class AutoConfigureRateLimitsTest {

    @Autowired
    Shop.Login login;

    @Autowired
    RateLimits limits;

    @Autowired
    RateLimitOperations operations;

    @Autowired
    ManualTicker ticker;

    @BeforeEach
    void useTheFirstOfFiveAttempts() {
        login.attempt("ann");
    }

    @RepeatedTest(2)
    void theSixthAttemptIsRefusedUntilAMinuteHasPassed() {
        for (int i = 1; i < 5; i++) {
            login.attempt("ann");
        }
        assertThatCall(() -> login.attempt("ann")).isRateLimited().by("login").retryAfter(Duration.ofMinutes(1));
        ticker.advance(Duration.ofMinutes(1));
        assertThatCall(() -> login.attempt("ann")).isNotRateLimited();
    }

    @RepeatedTest(2)
    void windowsOfTheCalendarBeginWithTheTest() {
        login.daily();
        ticker.advance(Duration.ofSeconds(20));
        assertThatCall(login::daily).isRateLimited().retryAfter(Duration.ofSeconds(40));
    }

    @RepeatedTest(2)
    void aTestMayChooseTheWallClock() {
        ticker.setWallClock(Instant.parse("2026-03-01T23:59:59Z"));
        login.daily();
        assertThatCall(login::daily).isRateLimited().retryAfter(Duration.ofSeconds(1));
    }

    @RepeatedTest(2)
    void callsThatWaitMoveTheTimeWhateverKindTheyAre() {
        login.queue();
        login.queue();
        assertThat(login.later().join()).isEqualTo("later");
        assertThat(login.reactive().block()).isEqualTo("reactive");
        assertThat(ticker.elapsed()).isEqualTo(Duration.ofHours(3));
    }

    @RepeatedTest(2)
    void aTestMayHoldCallsThatWait() {
        ticker.autoAdvance(false);
        login.queue();
        CompletableFuture<String> waiting = login.later();
        ticker.advance(Duration.ofMinutes(59));
        assertThat(waiting).isNotDone();
        ticker.advance(Duration.ofMinutes(1));
        assertThat(waiting.join()).isEqualTo("later");
    }

    @RepeatedTest(2)
    void aCallInFlightThatATestLeavesDoesNotCountInTheNext() {
        assertThat(login.seat(new CompletableFuture<>())).isNotDone();
        assertThat(limits.peek("seat", null)).isRateLimited();
        assertThatCall(() -> login.seat(CompletableFuture.completedFuture("")).join())
                .isRateLimited();
    }

    @RepeatedTest(2)
    void aLimitThatATestChangesIsAsItWasInTheNext() {
        assertThat(operations.limit("login").properties().get("rate")).isEqualTo("5/m");
        assertThat(operations.limit("login").policy()).isEqualTo(Policy.REJECT);
        operations.change("login", LimitChange.rate("1/m").with("policy", "shadow"));
        assertThat(operations.limit("login").limit().rate().permits()).isOne();
        assertThat(operations.limit("login").policy()).isEqualTo(Policy.SHADOW);
    }

    @RepeatedTest(2)
    void aBudgetThatATestGivesACallerEndsWithTheTest() {
        assertThat(limits.peek("login", "bob")).remaining(5);
        operations.override("login", "bob", LimitChange.rate("9/m"), null);
        assertThat(limits.peek("login", "bob")).remaining(9);
    }

    @RepeatedTest(2)
    void aCallerHasItsOwnNumbersInATestToo() {
        assertThat(limits.peek("invoices", "acme")).remaining(2);
        for (int left = 3; left >= 0; left--) {
            login.invoice("acme");
            assertThat(limits.peek("invoices", "acme")).remaining(left);
        }
        assertThatCall(() -> login.invoice("acme"))
                .isRateLimited()
                .by("invoices")
                .retryAfter(Duration.ofSeconds(20));
        ticker.advance(Duration.ofSeconds(20));
        assertThatCall(() -> login.invoice("acme")).isNotRateLimited();
        login.invoice("other");
        login.invoice("other");
        assertThatCall(() -> login.invoice("other")).isRateLimited().retryAfter(Duration.ofSeconds(30));
    }

    @RepeatedTest(2)
    void candidatesSetNoAlarmThatAdvancesTheTime(@Autowired LimitRegistry registry) {
        LimitCandidates candidates = registry.get("login").candidates();
        candidates.start("2/m", null, "this test");
        int others = ticker.sleeping();
        for (int i = 0; i < 3; i++) {
            limits.tryAcquire("login", "bob");
        }
        assertThat(candidates.state().report().calls()).isEqualTo(3);
        assertThat(ticker.sleeping()).isEqualTo(others);
        assertThat(ticker.elapsed()).isZero();
    }

    @Test
    void allBackendsAreInMemory() {
        for (String limit : new String[] {"login", "daily", "queue"}) {
            assertThat(limits.peek(limit, "bob").source()).isEqualTo(Decision.Source.MEMORY);
        }
    }

    @Nested
    class InANestedClass {

        @RepeatedTest(2)
        void theAnnotationIsInherited(@Autowired Ticker same) {
            assertThat(same).isSameAs(ticker);
            assertThat(limits.peek("login", "ann")).isNotRateLimited().remaining(4);
        }
    }
}
