package io.ratelimited.core;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.fail;
import static org.junit.jupiter.params.provider.EnumSource.Mode.EXCLUDE;

import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.several.AllOf;
import io.ratelimited.core.several.Claim;
import io.ratelimited.core.testing.ManualTicker;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.function.LongUnaryOperator;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Callers with their own numbers, wherever their cells live. */
public abstract class CallersNumbersContract {

    private static final long SECOND = 1_000_000_000L;

    protected final ManualTicker ticker = new ManualTicker(0, Instant.parse("2026-01-01T00:00:00Z"));

    /** Two limiters of one limit, as two instances have them; the same twice where instances share nothing. */
    protected abstract List<? extends RateLimiter> limiters(Limit limit);

    /** How many calls are made while their numbers change. */
    protected int calls() {
        return 1_500;
    }

    /** How many tenants there are. */
    protected abstract int tenants();

    private static Limit limit(Algorithm algorithm) {
        Limit.Builder limit = Limit.of("callers-" + algorithm, algorithm).rate("7/s");
        return algorithm == Algorithm.WARM_UP
                ? limit.warmup(Duration.ofSeconds(1)).build()
                : limit.build();
    }

    private record Grant(long at, long permits) {}

    /** Another limit of a call: decided together with the first one, next to it, or elsewhere. */
    enum Other {
        SAME_KEY,
        OTHER_KEY,
        UNLIMITED,
        IN_MEMORY
    }

    /** A caller of a slow limit gets a fast one while its calls are rejected: its permits come as the rejections say. */
    @ParameterizedTest
    @CsvSource({
        "TOKEN_BUCKET, SAME_KEY",
        "TOKEN_BUCKET, OTHER_KEY",
        "TOKEN_BUCKET, UNLIMITED",
        "WARM_UP, UNLIMITED",
        "TOKEN_BUCKET, IN_MEMORY",
        "WARM_UP, IN_MEMORY"
    })
    void aCallOfSeveralLimitsIsAdmittedWhenItsRejectionSaysAfterItsNumbersHaveGrown(Algorithm algorithm, Other kind) {
        Limit.Builder slowest = Limit.of("slow", algorithm).rate("1/h");
        RateLimiter slow = limiters(
                        algorithm == Algorithm.WARM_UP
                                ? slowest.warmup(Duration.ofSeconds(1)).build()
                                : slowest.build())
                .get(0);
        Limit rate = Limit.of("other", Algorithm.TOKEN_BUCKET)
                .rate(kind == Other.UNLIMITED ? "unlimited" : kind == Other.IN_MEMORY ? "1/s" : "100/s")
                .build();
        RateLimiter other = kind == Other.IN_MEMORY
                ? new InMemoryRateLimiter(rate, ticker, 10)
                : limiters(rate).get(0);
        Claim beside = Claim.of(other, kind == Other.OTHER_KEY ? "of another" : "k", 1, 0);
        assertThat(AllOf.reserve(List.of(Claim.of(slow, "k", 1, 0), beside)).isRefused())
                .isFalse();
        String numbers = algorithm == Algorithm.WARM_UP ? "1/s" : "1/s burst 2";
        List<Claim> call = List.of(Claim.of(slow.ofCallers(CallerLimit.of(numbers)), "k", 1, 0), beside);
        Reservation rejected = AllOf.reserve(call);
        assertThat(AllOf.refusals(rejected)[0]).isNotNull();
        assertThat(rejected.decision().retryAfter()).isLessThanOrEqualTo(Duration.ofSeconds(4));
        ticker.advance(rejected.decision().retryAfter());
        assertThat(AllOf.reserve(call).isRefused()).isFalse();
    }

    /** What a call has cost is known when it ends: it asks for nothing, and is rejected while its key owes permits. */
    @Test
    void aCallOfNoPermitsIsAdmittedWhenItsRejectionSaysAfterItsNumbersHaveGrown() {
        RateLimiter slow = limiters(Limit.of("slow", Algorithm.TOKEN_BUCKET)
                        .rate("1/h")
                        .charged(true)
                        .build())
                .get(0);
        slow.reserve("k", 0, 0).settle(2);
        RateLimiter fast = slow.ofCallers(CallerLimit.of("1/s burst 2"));
        Reservation rejected = fast.reserve("k", 0, 0);
        assertThat(rejected.isRefused()).isTrue();
        assertThat(rejected.decision().retryAfter()).isLessThanOrEqualTo(Duration.ofSeconds(2));
        ticker.advance(rejected.decision().retryAfter());
        assertThat(fast.reserve("k", 0, 0).isRefused()).isFalse();
    }

    /** The numbers of a caller are not known at each call, and the limit itself applies then: its permits are not used up by that. */
    @ParameterizedTest
    @CsvSource({"TOKEN_BUCKET, true", "TOKEN_BUCKET, false", "GCRA, true", "GCRA, false"})
    void aCallerWhoseNumbersAlternateHasTheSmallerBurstAndNoMoreThanTheLarger(
            Algorithm algorithm, boolean largerFirst) {
        List<? extends RateLimiter> nodes = limiters(
                Limit.of("alternates-" + algorithm, algorithm).rate("60/d").build());
        CallerLimit large = CallerLimit.of("500/d burst 1000");
        int admitted = 0;
        for (int call = 0; call < 300; call++) {
            RateLimiter node = nodes.get(call / 3 % nodes.size());
            boolean larger = (call % 2 == 0) == largerFirst;
            admitted += (larger ? node.ofCallers(large) : node).tryAcquire("k", 1) ? 1 : 0;
        }
        assertThat(admitted).isBetween(58, 61);
        RateLimiter own = nodes.get(0).ofCallers(large);
        assertThat(own.tryAcquire("all", 1_000)).isTrue();
        for (int call = 0; call < 20; call++) {
            assertThat(nodes.get(0).tryAcquire("all", 1)).isFalse();
            assertThat(own.tryAcquire("all", 1)).isFalse();
        }
    }

    /**
     * Two instances hear of other numbers at different times, and the limit itself applies now and then. Nobody ever has more than
     * the largest numbers that were in force: of a bucket its burst and what comes back, of a window its number.
     */
    @ParameterizedTest
    @EnumSource(
            mode = EXCLUDE,
            names = {"CONCURRENCY", "ADAPTIVE", "DEFAULT"})
    void numbersThatChangeAgainAndAgainGiveNoMoreThanTheLargest(Algorithm algorithm) {
        List<? extends RateLimiter> nodes = limiters(limit(algorithm));
        String[] numbers = {"1/s", "3/s", "20/s", "7/s"};
        Random random = new Random(algorithm.ordinal());
        List<List<Grant>> granted = new ArrayList<>();
        for (int key = 0; key < 8; key++) {
            granted.add(new ArrayList<>());
        }
        for (int step = 0; step < calls(); step++) {
            if (random.nextInt(3) == 0) {
                ticker.advanceNanos(random.nextInt(random.nextInt(40) == 0 ? 2_000 : 60) * 1_000_000L);
            }
            int key = random.nextInt(granted.size());
            // The first keys never have the largest numbers.
            String own = numbers[random.nextInt(key < 4 ? 2 : 4)];
            RateLimiter node = nodes.get(random.nextInt(nodes.size()));
            RateLimiter limiter = random.nextInt(9) == 0 && key >= 4 ? node : node.ofCallers(CallerLimit.of(own));
            long permits = 1L + random.nextInt(3);
            if (limiter.tryAcquire("key" + key, permits)) {
                granted.get(key).add(new Grant(ticker.nanos(), permits));
            }
        }
        for (int key = 0; key < granted.size(); key++) {
            assertWithin(algorithm, key < 4 ? 3 : 20, granted.get(key));
        }
        assertThat(granted).allSatisfy(each -> assertThat(each).hasSizeGreaterThan(3));
    }

    /** A limit without windows has callers per hour and per day, of one key: each has its own number in each of its windows. */
    @ParameterizedTest
    @CsvSource({
        "FIXED_WINDOW, unlimited, k",
        "FIXED_WINDOW, 0/s, k",
        "FIXED_WINDOW, unlimited,",
        "SLIDING_WINDOW, unlimited, k",
        "SLIDING_LOG, 0/s, k"
    })
    void callersOfOneKeyWithOtherPeriodsHaveNoMoreThanTheirNumbers(
            Algorithm algorithm, String rate, @Nullable String key) {
        List<? extends RateLimiter> nodes =
                limiters(Limit.of("periods-" + algorithm, algorithm).rate(rate).build());
        CallerLimit[] numbers = {CallerLimit.of("5/h"), CallerLimit.of("7/d")};
        int[] admitted = new int[2];
        for (int call = 0; call < 40; call++) {
            RateLimiter node = nodes.get(call / 2 % nodes.size());
            admitted[call % 2] += node.ofCallers(numbers[call % 2]).tryAcquire(key, 1) ? 1 : 0;
        }
        assertThat(admitted).containsExactly(5, 7);
        ticker.advance(Duration.ofHours(2));
        assertThat(nodes.get(0).ofCallers(numbers[1]).tryAcquire(key, 1)).isFalse();
        assertThat(nodes.get(0).ofCallers(numbers[0]).tryAcquire(key, 5)).isTrue();
        assertThat(nodes.get(0).ofCallers(numbers[0]).tryAcquire(key, 1)).isFalse();
    }

    /** Each call comes when its permits are there, to the microsecond, by the numbers of either caller. */
    @ParameterizedTest
    @CsvSource({
        "30/s burst 30, 30/s burst 1, 1, 1",
        "7/m burst 7, 3/m burst 1, 1, 1",
        "7/s burst 1, 11/s burst 1, 1, 1",
        "7/d burst 7, 7/d burst 1, 1, 1",
        "7/s burst 2, 11/s burst 2, 2, 1",
        "7/s burst 3, 11/s burst 3, 3, 2",
        "11/s burst 5, 7/s burst 5, 1, 5",
        "300000/s burst 9, 70000/s burst 9, 9, 1"
    })
    void callersInTurnAreAdmittedWhenTheirPermitsAreThere(String one, String other, long first, long permits) {
        for (Algorithm algorithm : List.of(Algorithm.TOKEN_BUCKET, Algorithm.GCRA)) {
            List<? extends RateLimiter> nodes = limiters(
                    Limit.of("turns-" + algorithm, algorithm).rate("5/s").build());
            CallerLimit[] numbers = {CallerLimit.of(one), CallerLimit.of(other)};
            long micros = 0;
            for (CallerLimit each : numbers) {
                Rate rate = nodes.get(0).ofCallers(each).limit().rate();
                micros = Math.max(micros, (permits * rate.period().toNanos() / rate.permits() - 1) / 1_000 + 1);
            }
            String key = one + other + permits;
            assertThat(nodes.get(0).ofCallers(numbers[0]).tryAcquire(key, first))
                    .isTrue();
            for (int call = 1; call < 20; call++) {
                ticker.advanceNanos(1_000 * micros);
                RateLimiter node = nodes.get(call / 2 % nodes.size());
                assertThat(node.ofCallers(numbers[call % 2]).tryAcquire(key, permits))
                        .as("%s: call %d after %d µs each", algorithm, call, micros)
                        .isTrue();
            }
        }
    }

    /** Whatever periods the callers of a key have, on any instance that knows them. */
    @ParameterizedTest
    @CsvSource({
        "FIXED_WINDOW, unlimited, k",
        "FIXED_WINDOW, 0/s, k",
        "FIXED_WINDOW, unlimited,",
        "SLIDING_WINDOW, unlimited, k",
        "SLIDING_LOG, 0/s, k"
    })
    void resettingAKeyForgetsWhatItsCallersHaveUsedInOtherPeriods(
            Algorithm algorithm, String rate, @Nullable String key) {
        List<? extends RateLimiter> nodes =
                limiters(Limit.of("reset-" + algorithm, algorithm).rate(rate).build());
        for (RateLimiter resetting :
                List.of(nodes.get(0), nodes.get(nodes.size() - 1).ofCallers(CallerLimit.of("7/d")))) {
            for (RateLimiter node : nodes) {
                node.ofCallers(CallerLimit.of("5/h")).tryAcquire(key, 5);
                node.ofCallers(CallerLimit.of("7/d")).tryAcquire(key, 7);
            }
            resetting.reset(key);
            // Other instances remember a rejection for a second.
            ticker.advance(Duration.ofSeconds(1));
            for (String numbers : List.of("5/h", "7/d")) {
                RateLimiter first = nodes.get(0).ofCallers(CallerLimit.of(numbers));
                assertThat(first.tryAcquire(key, first.limit().rate().permits()))
                        .as(numbers)
                        .isTrue();
                assertThat(first.tryAcquire(key, 1)).as(numbers).isFalse();
            }
        }
    }

    private void assertWithin(Algorithm algorithm, long number, List<Grant> granted) {
        boolean window = algorithm.family() == Algorithm.Family.WINDOW;
        // Where the next caller pays, the last call goes on credit.
        long credit = algorithm.family() == Algorithm.Family.PACED ? 3 : 0;
        for (int first = 0; first < granted.size(); first++) {
            long sum = 0;
            long from = granted.get(first).at;
            for (Grant grant : granted.subList(first, granted.size())) {
                sum += grant.permits;
                long time = grant.at - from;
                boolean sameWindow =
                        algorithm == Algorithm.FIXED_WINDOW ? grant.at / SECOND == from / SECOND : time < SECOND;
                if (window && !sameWindow) {
                    break;
                }
                double most = window ? number : number + credit + 1e-3 + (double) number * time / SECOND;
                // Thousands of sums: one that is right costs no text of all grants.
                if (sum > most) {
                    fail("%s: %d permits from %d ns on, in %s", algorithm, sum, from, granted);
                }
            }
        }
    }

    /** Threads call one key on both instances, each call with the numbers that its instance has just heard of. */
    @ParameterizedTest
    @EnumSource(names = {"TOKEN_BUCKET", "FIXED_WINDOW", "SLIDING_WINDOW", "SLIDING_LOG"})
    void numbersThatChangeUnderLoadGiveNoMoreThanTheLargest(Algorithm algorithm) throws Exception {
        List<? extends RateLimiter> nodes =
                limiters(Limit.of("load-" + algorithm, algorithm).rate("7/h").build());
        long admitted = Threads.sum(4, thread -> {
            Random random = new Random(thread);
            RateLimiter node = nodes.get(thread % nodes.size());
            long own = 0;
            for (int call = 0; call < 150; call++) {
                CallerLimit numbers = CallerLimit.of(10 * (1 + random.nextInt(5)) + "/h");
                own += node.ofCallers(numbers).tryAcquire("k", 1) ? 1 : 0;
            }
            return own;
        });
        // A bucket keeps what is left of it in a smaller one.
        assertThat(admitted).isBetween(algorithm == Algorithm.TOKEN_BUCKET ? 1L : 50L, 50L);
    }

    @ParameterizedTest
    @EnumSource(names = {"TOKEN_BUCKET", "FIXED_WINDOW"})
    void everyTenantHasExactlyItsNumbers(Algorithm algorithm) {
        everyTenantHasExactlyItsNumbers(algorithm, tenants());
    }

    protected final void everyTenantHasExactlyItsNumbers(Algorithm algorithm, int tenants) {
        RateLimiter limiter = limiters(
                        Limit.of("tenants-" + algorithm, algorithm).rate("7/h").build())
                .get(0);
        assertThat(admitted(limiter, tenants, 1, number -> number)).isEqualTo(tenants);
        assertThat(admitted(limiter, tenants, 1, number -> 1)).isZero();
        ticker.advance(Duration.ofHours(1));
        assertThat(admitted(limiter, tenants, 10, number -> number)).isEqualTo(tenants / 10);
    }

    /** How many tenants are admitted, of whom each, or every tenth, calls once. */
    private static long admitted(RateLimiter limiter, int tenants, int every, LongUnaryOperator permits) {
        long admitted = 0;
        List<CompletableFuture<Reservation>> calls = new ArrayList<>();
        for (int number = every; number <= tenants; number += every) {
            calls.add(limiter.ofCallers(CallerLimit.of(number + "/h"))
                    .reserveAsync("tenant" + number, permits.applyAsLong(number), 0)
                    .toCompletableFuture());
            if (calls.size() == 500 || number == tenants) {
                admitted +=
                        calls.stream().filter(call -> !call.join().isRefused()).count();
                calls.clear();
            }
        }
        return admitted;
    }

    @ParameterizedTest
    @EnumSource(names = {"TOKEN_BUCKET", "GCRA", "FIXED_WINDOW", "SLIDING_WINDOW", "SLIDING_LOG"})
    void theLimitItselfKnowsWhatACallerHasUsed(Algorithm algorithm) {
        RateLimiter limiter = limiters(limit(algorithm)).get(0);
        RateLimiter own = limiter.ofCallers(CallerLimit.of("20/s"));
        assertThat(own.tryAcquire("k", 20)).isTrue();
        assertThat(limiter.tryAcquire("k", 1)).isFalse();
        assertThat(limiter.limit().rate().permits()).isEqualTo(7);
        assertThat(own.limit().rate().permits()).isEqualTo(20);
        assertThat(limiter.tryAcquire("other", 7)).isTrue();
        assertThat(limiter.budgets()).isSameAs(own.budgets());
    }

    @Test
    void theNumbersOfTheLastCallAreKnown() {
        RateLimiter limiter = limiters(limit(Algorithm.TOKEN_BUCKET)).get(0);
        assertThat(limiter.ofCallers(CallerLimit.of("20/s burst 30")).tryAcquire("k", 3))
                .isTrue();
        assertThat(limiter.ofKnownCaller("k").peek("k", 1, 0).remaining()).isEqualTo(27);
        assertThat(limiter.ofKnownCaller("other").limit()).isEqualTo(limiter.limit());
        assertThat(limiter.tryAcquire("k", 1)).isTrue();
        assertThat(limiter.ofKnownCaller("k").limit()).isEqualTo(limiter.limit());
    }

    @Test
    void severalLimitsAreAskedByTheNumbersOfTheCaller() {
        RateLimiter limiter = limiters(limit(Algorithm.TOKEN_BUCKET)).get(0);
        RateLimiter other = limiters(limit(Algorithm.FIXED_WINDOW)).get(0);
        for (int calls = 0; calls < 3; calls++) {
            boolean rejected = AllOf.reserve(List.of(
                            Claim.of(limiter.ofCallers(CallerLimit.of("20/s")), "k", 1, 0),
                            Claim.of(other.ofCallers(CallerLimit.of("2/s")), "k", 1, 0)))
                    .isRefused();
            assertThat(rejected).isEqualTo(calls == 2);
        }
        RateLimiter first = limiter.ofCallers(CallerLimit.of("20/s"));
        assertThat(first.peek("k", 1, 0).remaining()).isEqualTo(18);
        // They are of one budget, whichever numbers they have.
        RateLimiter second = limiter.ofCallers(CallerLimit.of("20/s"));
        assertThat(AllOf.reserve(List.of(Claim.of(first, "k", 10, 0), Claim.of(second, "k", 9, 0)))
                        .isRefused())
                .isTrue();
        assertThat(AllOf.reserve(List.of(Claim.of(first, "k", 10, 0), Claim.of(second, "k", 8, 0)))
                        .isRefused())
                .isFalse();
    }

    @Test
    void aReservationIsSettledWhateverNumbersItsCallerHasByThen() {
        RateLimiter limiter = limiters(limit(Algorithm.FIXED_WINDOW)).get(0);
        RateLimiter small = limiter.ofCallers(CallerLimit.of("5/s"));
        RateLimiter large = limiter.ofCallers(CallerLimit.of("100/s"));
        Reservation call = small.reserve("k", 1, 0);
        assertThat(large.tryAcquire("k", 9)).isTrue();
        call.settle(41);
        assertThat(large.tryAcquire("k", 51)).isFalse();
        assertThat(large.tryAcquire("k", 50)).isTrue();
    }

    /** Another algorithm begins anew. */
    @Test
    void whatACallHasCostBeyondItsPermitsIsChargedToTheBudgetThatItsCallerHasAfterAChange() {
        RateLimiter limiter = limiters(limit(Algorithm.TOKEN_BUCKET)).get(0);
        RateLimiter own = limiter.ofCallers(CallerLimit.of("100/s"));
        Reservation call = own.reserve("k", 1, 0);
        limiter.update(Limit.of(limiter.limit().name(), Algorithm.FIXED_WINDOW)
                .rate("10/s")
                .build());
        call.settle(41);
        assertThat(own.peek("k", 1, 0).remaining()).isEqualTo(60);
    }

    /** What a window or log counts is the same under all numbers. */
    @ParameterizedTest
    @EnumSource(names = {"FIXED_WINDOW", "SLIDING_WINDOW", "SLIDING_LOG"})
    void aWindowGetsBackWhatACallHasNotUsedWhateverNumbersItsCallerHasByThen(Algorithm algorithm) {
        RateLimiter limiter = limiters(Limit.of("flights-" + algorithm, algorithm)
                        .rate("1000/h")
                        .build())
                .get(0);
        RateLimiter own = limiter.ofCallers(CallerLimit.of("2000/h"));
        for (String key : new String[] {"k", "blocked"}) {
            Reservation first = own.reserve(key, 900, 0);
            Reservation second = own.reserve(key, 50, 0);
            assertThat(limiter.tryAcquire(key, 2)).isTrue();
            first.settle(10);
            assertThat(limiter.peek(key, 1, 0).remaining()).isEqualTo(1_000 - 62);
            assertThat(own.tryAcquire(key, 1)).isTrue();
            second.cancel();
            second.cancel();
            assertThat(own.peek(key, 1, 0).remaining()).isEqualTo(2_000 - 13);
        }
    }

    /** Nothing comes back twice, or is given back that is not in the window any more. */
    @ParameterizedTest
    @EnumSource(names = {"FIXED_WINDOW", "SLIDING_WINDOW", "SLIDING_LOG"})
    void aWindowHasExactlyWhatItsCallsHaveUsedWhileTheirNumbersChange(Algorithm algorithm) {
        RateLimiter limiter = limiters(Limit.of("exactly-" + algorithm, algorithm)
                        .rate("100/h")
                        .block(Duration.ofMinutes(1))
                        .build())
                .get(0);
        RateLimiter largest = limiter.ofCallers(CallerLimit.of("400/h"));
        List<RateLimiter> numbers = List.of(limiter, limiter.ofCallers(CallerLimit.of("200/h")), largest);
        Random random = new Random(algorithm.ordinal());
        List<Reservation> open = new ArrayList<>();
        List<Long> reserved = new ArrayList<>();
        long used = 0;
        for (int step = 0; step < 300; step++) {
            if (open.isEmpty() || (used < 50 && random.nextBoolean())) {
                long permits = 1L + random.nextInt(9);
                open.add(numbers.get(random.nextInt(numbers.size())).reserve("k", permits, 0));
                assertThat(open.get(open.size() - 1).isRefused()).isFalse();
                reserved.add(permits);
                used += permits;
            } else {
                int ended = random.nextInt(open.size());
                long counted = reserved.remove(ended);
                long cost = random.nextLong(counted + 1);
                open.remove(ended).settle(cost);
                used -= counted - cost;
                if (used > 40) {
                    limiter.reset("k");
                    open.forEach(call -> call.settle(0));
                    open.clear();
                    reserved.clear();
                    used = 0;
                }
            }
            assertThat(largest.peek("k", 1, 0).remaining()).isEqualTo(400 - used);
        }
    }

    /** They are its own: the limit changes, and they do not. */
    @ParameterizedTest
    @EnumSource(
            mode = EXCLUDE,
            names = {"CONCURRENCY", "ADAPTIVE", "DEFAULT"})
    void aCallerWhoseNumbersAreThoseOfTheLimitKeepsThemWhenItChanges(Algorithm algorithm) {
        Limit limit = limit(algorithm);
        RateLimiter limiter = limiters(limit).get(0);
        RateLimiter same = limiter.ofCallers(CallerLimit.of(limit.rate().toString()));
        RateLimiter other = limiter.ofCallers(CallerLimit.of("8/s"));
        for (int call = 0; call < 4; call++) {
            same.tryAcquire("same", 1);
            other.tryAcquire("other", 1);
        }
        long left = same.peek("same", 1, 0).remaining();
        long leftOther = other.peek("other", 1, 0).remaining();
        for (String rate : List.of("70/s", "3/s", "7/s")) {
            limiter.update(limit.toBuilder().rate(rate).build());
            assertThat(same.peek("same", 1, 0).remaining()).isEqualTo(left);
            assertThat(other.peek("other", 1, 0).remaining()).isEqualTo(leftOther);
            assertThat(limiter.ofKnownCaller("same").limit().rate()).isEqualTo(limit.rate());
        }
    }

    @Test
    void resettingAKeyForgetsWhatItHasUsedAndNotItsNumbers() {
        RateLimiter limiter = limiters(limit(Algorithm.TOKEN_BUCKET)).get(0);
        RateLimiter own = limiter.ofCallers(CallerLimit.of("50/s"));
        assertThat(own.tryAcquire("k", 50)).isTrue();
        limiter.reset("k");
        assertThat(own.tryAcquire("k", 50)).isTrue();
        assertThat(own.tryAcquire("k", 1)).isFalse();
    }

    /** A key is reset because the contract of its caller has changed, or changes afterwards: it is as one that was never seen. */
    @ParameterizedTest
    @EnumSource(
            mode = EXCLUDE,
            names = {"CONCURRENCY", "ADAPTIVE", "DEFAULT"})
    void afterAResetAKeyIsAsANewOneAlsoWithOtherNumbers(Algorithm algorithm) {
        boolean burst = algorithm.uses(Limit.Attribute.BURST);
        String large = burst ? "500/h burst 1000" : "500/h";
        String[][] series = {{"5/h", large}, {"5/h", null}, {null, large}, {large, "5/h", large}, {large, null, large}};
        for (int kind = 0; kind < 4; kind++) {
            Limit.Builder kinds = Limit.of("reset-" + algorithm + kind, algorithm)
                    .rate("60/h")
                    .charged(kind / 2 == 1);
            if (kind % 2 == 1 && (kind == 1 || Limit.canBlockByCharge(algorithm))) {
                kinds.block(Duration.ofMinutes(1));
            }
            RateLimiter limiter = limiters(
                            algorithm == Algorithm.WARM_UP
                                    ? kinds.warmup(Duration.ofMinutes(1)).build()
                                    : kinds.build())
                    .get(0);
            ticker.advance(Duration.ofHours(1));
            for (String[] numbers : series) {
                String key = String.join("-", numbers);
                RateLimiter last = limiter;
                for (int used = 0; used < numbers.length - 1; used++) {
                    last = with(limiter, numbers[used]);
                    for (int calls = 0; calls < 70; calls++) {
                        last.reserve(key, Math.min(20, last.limit().rate().permits()), 0)
                                .settle(20);
                    }
                }
                limiter.reset(key);
                RateLimiter own = with(limiter, numbers[numbers.length - 1]);
                for (int calls = 0; calls < 70; calls++) {
                    assertThat(own.peek(key, 1, 0).remaining())
                            .as("%s after %d calls", key, calls)
                            .isEqualTo(own.peek("new-" + key, 1, 0).remaining());
                    long maxWait = 100 * SECOND;
                    Reservation call = own.reserve(key, 20, maxWait);
                    Reservation ofNew = own.reserve("new-" + key, 20, maxWait);
                    assertThat(call.isRefused()).as("%s: call %d", key, calls).isEqualTo(ofNew.isRefused());
                    assertThat(call.waitNanos()).as("%s: call %d", key, calls).isEqualTo(ofNew.waitNanos());
                }
            }
        }
    }

    /** What the limit was before is kept in mind for keys that used it, and for no key that was reset since. */
    @Test
    void afterAChangeOfTheLimitAndAResetAKeyHasAllOfOtherNumbers() {
        Limit limit = Limit.of("lowered", Algorithm.TOKEN_BUCKET)
                .rate("500/h")
                .burst(1_000)
                .build();
        RateLimiter limiter = limiters(limit).get(0);
        assertThat(limiter.tryAcquire("k", 1_000)).isTrue();
        limiter.update(limit.toBuilder().rate("60/h").burst(60).build());
        assertThat(limiter.tryAcquire("k", 1)).isFalse();
        limiter.reset("k");
        assertThat(limiter.tryAcquire("k", 1)).isTrue();
        limiter.reset("k");
        assertThat(limiter.ofCallers(CallerLimit.of("500/h burst 1000")).tryAcquire("k", 1_000))
                .isTrue();
        assertThat(limiter.tryAcquire("k", 1)).isFalse();
    }

    @Test
    void afterAResetALimitWithoutKeysHasAllOfOtherNumbers() {
        RateLimiter limiter = limiters(limit(Algorithm.TOKEN_BUCKET)).get(0);
        assertThat(limiter.ofCallers(CallerLimit.of("5/h")).tryAcquire(null, 5)).isTrue();
        limiter.reset(null);
        assertThat(limiter.ofCallers(CallerLimit.of("500/h burst 1000")).tryAcquire(null, 1_000))
                .isTrue();
    }

    private static RateLimiter with(RateLimiter limiter, @Nullable String numbers) {
        return numbers == null ? limiter : limiter.ofCallers(CallerLimit.of(numbers));
    }

    @ParameterizedTest
    @ValueSource(strings = {"20/m", "-1/s", "20/s burst 3", "20/month", "x"})
    void aWindowHasNoOtherNumbersThanItsOwnPeriodAllows(String numbers) {
        RateLimiter limiter = limiters(limit(Algorithm.FIXED_WINDOW)).get(0);
        CallerLimit own = CallerLimit.of(numbers);
        assertThatThrownBy(() -> limiter.ofCallers(own)).isInstanceOf(InvalidLimitException.class);
    }

    @Test
    void theLimiterOfCallersIsNotChangedAndNotClosedAlone() {
        RateLimiter limiter = limiters(limit(Algorithm.TOKEN_BUCKET)).get(0);
        RateLimiter own = limiter.ofCallers(CallerLimit.of("20/s"));
        assertThatThrownBy(() -> own.update(limiter.limit())).isInstanceOf(UnsupportedOperationException.class);
        own.close();
        assertThat(limiter.reserve("k", 7, 0).isRefused()).isFalse();
        assertThat(limiter.reserve("k", 1, SECOND).waitNanos()).isPositive();
    }

    @Test
    void closedAndUnlimitedNumbersKeepWhatWasUsed() {
        RateLimiter limiter = limiters(limit(Algorithm.SLIDING_LOG)).get(0);
        RateLimiter own = limiter.ofCallers(CallerLimit.of("20/s"));
        assertThat(own.tryAcquire("k", 20)).isTrue();
        assertThat(limiter.ofCallers(CallerLimit.of("unlimited")).tryAcquire("k", 1_000))
                .isTrue();
        assertThat(limiter.ofCallers(CallerLimit.of("0/s")).tryAcquire("k", 1)).isFalse();
        assertThat(own.tryAcquire("k", 1)).isFalse();
    }
}
