package io.ratelimited.core.several;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Call;
import io.ratelimited.core.Decision;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.testing.ManualTicker;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** P11: several limits take all or nothing. */
class AllOfTest {

    private static List<RateLimiter> members(ManualTicker ticker) {
        List<RateLimiter> members = new ArrayList<>();
        for (Algorithm algorithm : Algorithm.all()) {
            if (algorithm.findsItsLimit()) {
                continue; // has no keys
            }
            Limit.Builder limit = Limit.of(algorithm.name(), algorithm);
            if (algorithm == Algorithm.CONCURRENCY) {
                limit.maxConcurrent(9);
            } else {
                limit.rate(3 + algorithm.name().length() % 5 + "/s");
            }
            if (algorithm == Algorithm.WARM_UP) {
                limit.warmup(Duration.ofSeconds(1));
            }
            members.add(new InMemoryRateLimiter(limit.build(), ticker, 10));
        }
        return members;
    }

    private static List<Decision> tell(List<RateLimiter> members) {
        return members.stream()
                .flatMap(
                        member -> List.of(
                                member.peek("key", 1, 0),
                                member.peek("key", 2, 0),
                                member.peek("key", 1, 5_000_000_000L))
                                .stream())
                .toList();
    }

    /** Calls in flight have nothing to charge; their place is given back by {@code release}. */
    @Test
    void whatACallHasCostIsChargedToEachLimitThatCountsOverTime() {
        ManualTicker ticker = new ManualTicker();
        RateLimiter flight = new InMemoryRateLimiter(
                Limit.of("flight", Algorithm.CONCURRENCY).maxConcurrent(1).build(), ticker, 10);
        RateLimiter minute = new InMemoryRateLimiter(
                Limit.of("minute", Algorithm.TOKEN_BUCKET).rate("10/m").build(), ticker, 10);
        RateLimiter day = new InMemoryRateLimiter(
                Limit.of("day", Algorithm.FIXED_WINDOW).rate("100/d").build(), ticker, 10);
        Reservation call = AllOf.reserve(
                List.of(Claim.of(flight, "key", 1, 0), Claim.of(minute, "key", 5, 0), Claim.of(day, "key", 5, 0)));
        call.settle(3);
        assertThat(minute.peek("key", 1, 0).remaining()).isEqualTo(7);
        assertThat(day.peek("key", 1, 0).remaining()).isEqualTo(97);
        assertThat(flight.peek("key", 1, 0).admitted()).isFalse();
        call.release();
        assertThat(flight.peek("key", 1, 0).admitted()).isTrue();
    }

    @Test
    void aRefusalByOneLeavesEveryOtherAsItWas() {
        int refused = 0;
        for (int seed = 0; seed < 100; seed++) {
            Random random = new Random(seed);
            ManualTicker ticker = new ManualTicker();
            List<RateLimiter> members = members(ticker);
            for (int call = 0; call < 60; call++) {
                ticker.advance(Duration.ofMillis(random.nextInt(200)));
                long permits = 1L + random.nextInt(3);
                long maxWait = random.nextInt(3) == 0 ? random.nextInt(1_000_000_000) : 0;
                List<Decision> before = tell(members);
                Reservation all = AllOf.reserve(members.stream()
                        .map(member -> Claim.of(member, "key", permits, maxWait))
                        .toList());
                String where = "seed " + seed + ", call " + call;
                if (all.isRefused()) {
                    refused++;
                    assertThat(tell(members)).as(where).isEqualTo(before);
                    assertThat(all.decision().admitted()).as(where).isFalse();
                } else {
                    assertThat(all.waitNanos()).as(where).isLessThanOrEqualTo(maxWait);
                    all.release();
                }
            }
        }
        assertThat(refused).isGreaterThan(1_000);
    }

    @Test
    void aCancelledCallThatWentAtOnceWasNeverMade() {
        ManualTicker ticker = new ManualTicker();
        List<RateLimiter> members = members(ticker);
        List<Decision> before = tell(members);
        Reservation all = AllOf.reserve(
                members.stream().map(member -> Claim.of(member, "key", 1, 0)).toList());
        assertThat(all.isRefused()).isFalse();
        assertThat(tell(members)).isNotEqualTo(before);
        all.cancel();
        all.cancel();
        assertThat(tell(members)).isEqualTo(before);
    }

    @Test
    void theDecisionIsThatOfTheRefusingMember() {
        ManualTicker ticker = new ManualTicker();
        RateLimiter wide = new InMemoryRateLimiter(
                Limit.of("wide", Algorithm.TOKEN_BUCKET).rate("100/s").build(), ticker, 1);
        RateLimiter narrow = new InMemoryRateLimiter(
                Limit.of("narrow", Algorithm.TOKEN_BUCKET).rate("1/s").build(), ticker, 1);
        assertThat(narrow.tryAcquire(null, 1)).isTrue();
        Reservation all = AllOf.reserve(List.of(Claim.of(wide, null, 1, 0), Claim.of(narrow, null, 1, 0)));
        assertThat(all.isRefused()).isTrue();
        assertThat(all.decision().limit()).isEqualTo("narrow");
        assertThat(all.decision().retryAfter()).isEqualTo(Duration.ofSeconds(1));
        assertThat(wide.peek(null, 1, 0).remaining()).isEqualTo(100);
    }

    @Test
    void aCallWaitsForTheLastOfItsLimits() throws InterruptedException {
        ManualTicker ticker = new ManualTicker().autoAdvance();
        RateLimiter fast = new InMemoryRateLimiter(
                Limit.of("fast", Algorithm.LEAKY_BUCKET).rate("10/s").build(), ticker, 1);
        RateLimiter slow = new InMemoryRateLimiter(
                Limit.of("slow", Algorithm.LEAKY_BUCKET).rate("2/s").burst(4).build(), ticker, 1);
        List<Claim> claims = List.of(Claim.of(fast, null, 1, Long.MAX_VALUE), Claim.of(slow, null, 1, Long.MAX_VALUE));
        assertThat(AllOf.reserve(claims).await()).isTrue();
        Reservation second = AllOf.reserve(claims);
        assertThat(second.waitNanos()).isEqualTo(500_000_000);
        assertThat(second.await()).isTrue();
        assertThat(ticker.nanos()).isEqualTo(500_000_000);
    }

    @Test
    void whatWasChargedBeforeALaterClaimFailsIsGivenBack() {
        ManualTicker ticker = new ManualTicker();
        RateLimiter limiter = new InMemoryRateLimiter(
                Limit.of("twice", Algorithm.TOKEN_BUCKET).rate("3/s").build(), ticker, 1);
        RateLimiter other = new InMemoryRateLimiter(
                Limit.of("other", Algorithm.SLIDING_LOG).rate("3/s").build(), ticker, 1);
        // Each claim alone would be admitted; together they ask for more than there is.
        Reservation all = AllOf.reserve(
                List.of(Claim.of(other, null, 1, 0), Claim.of(limiter, null, 2, 0), Claim.of(limiter, null, 2, 0)));
        assertThat(all.isRefused()).isTrue();
        assertThat(limiter.peek(null, 1, 0).remaining()).isEqualTo(3);
        assertThat(other.peek(null, 1, 0).remaining()).isEqualTo(3);
    }

    private static final long HOUR = 3_600_000_000_000L;

    private final ManualTicker time = new ManualTicker();
    private final RateLimiter flights =
            limiter(Limit.of("flights", Algorithm.CONCURRENCY).maxConcurrent(2));
    private final RateLimiter fast =
            limiter(Limit.of("fast", Algorithm.LEAKY_BUCKET).rate("10/s").burst(100));
    private final RateLimiter slow =
            limiter(Limit.of("slow", Algorithm.LEAKY_BUCKET).rate("2/s").burst(100));

    private RateLimiter limiter(Limit.Builder limit) {
        return new InMemoryRateLimiter(limit.build(), time, 10);
    }

    private static List<Claim> claims(RateLimiter... limiters) {
        return Stream.of(limiters)
                .map(limiter -> Claim.of(limiter, "key", 1, HOUR))
                .toList();
    }

    @Test
    void oneClaimIsReservedAsItIs() {
        assertThat(AllOf.reserve(claims(slow))).isNotInstanceOf(AllOf.class);
        assertThat(AllOf.reserveAsync(claims(slow)).toCompletableFuture().join().waitNanos())
                .isEqualTo(500_000_000);
    }

    private static List<Reservation> members(Reservation reservation, int claims) {
        return IntStream.range(0, claims)
                .mapToObj(claim -> AllOf.member(reservation, claim))
                .toList();
    }

    @Test
    void theMembersAreInTheOrderOfTheClaims() {
        Reservation all = AllOf.reserve(claims(fast, slow));
        assertThat(members(all, 2))
                .extracting(member -> member.decision().limit())
                .containsExactly("fast", "slow");
        Reservation one = AllOf.reserve(claims(fast));
        assertThat(AllOf.member(one, 0)).isSameAs(one);
    }

    @Test
    void theDecisionOfAWaitingCallIsThatOfItsLongestWait() {
        Reservation first = AllOf.reserve(claims(fast, slow));
        assertThat(first.mayWait()).isFalse();
        assertThat(first.decision().limit()).isEqualTo("fast");
        for (List<Claim> claims : List.of(claims(fast, slow), claims(slow, fast))) {
            Reservation second = AllOf.reserve(claims);
            assertThat(second.mayWait()).isTrue();
            assertThat(second.isRefused()).isFalse();
            assertThat(second.decision().limit()).isEqualTo("slow");
            second.cancel();
        }
    }

    @Test
    void releaseEndsTheCallInEveryMember() {
        Reservation all = AllOf.reserve(claims(slow, flights));
        assertThat(flights.peek("key", 1, 0).remaining()).isOne();
        all.release();
        assertThat(flights.peek("key", 1, 0).remaining()).isEqualTo(2);
    }

    @Test
    void aFutureCompletesWithTheLastWaitAndItsCancelGivesAllBack() {
        assertThat(AllOf.reserve(claims(fast, slow, flights)).awaitAsync()).isCompletedWithValue(true);
        CompletableFuture<Boolean> second =
                AllOf.reserve(claims(fast, slow, flights)).awaitAsync();
        time.advance(Duration.ofMillis(100));
        assertThat(second).isNotDone();
        time.advance(Duration.ofMillis(400));
        assertThat(second).isCompletedWithValue(true);
        CompletableFuture<Boolean> third = AllOf.reserve(claims(fast, slow)).awaitAsync();
        assertThat(third).isNotDone();
        assertThat(third.cancel(false)).isTrue();
        assertThat(slow.waiting() + fast.waiting()).isZero();
        assertThat(slow.peek("key", 1, HOUR).waitTime()).isEqualTo(Duration.ofMillis(500));
        assertThat(fast.peek("key", 1, 0).admitted()).isTrue();
        assertThat(flights.peek("key", 1, 0).remaining()).isZero();
    }

    /** The places to sleep of one limit are taken: the call is refused, and what the other limits gave is given back. */
    @Test
    void aCallThatFindsNoPlaceToSleepGivesAllBack() throws InterruptedException {
        RateLimiter crowded = limiter(Limit.of("crowded", Algorithm.LEAKY_BUCKET)
                .rate("1/s")
                .burst(100)
                .maxWaiting(1));
        crowded.tryAcquire("key", 1);
        List<Claim> claims = List.of(Claim.of(flights, "key", 1, 0), Claim.of(crowded, "key", 1, HOUR));
        Reservation first = AllOf.reserve(claims);
        Reservation second = AllOf.reserve(claims);
        assertThat(first.awaitAsync()).isNotDone();
        assertThat(flights.peek("key", 1, 0).remaining()).isZero();
        assertThat(second.await()).isFalse();
        assertThat(second.isRefused()).isTrue();
        assertThat(second.decision().limit()).isEqualTo("crowded");
        assertThat(flights.peek("key", 1, 0).remaining()).isOne();
        // The decision was made while there was a place; the future finds it taken.
        time.advance(Duration.ofSeconds(1));
        Reservation third = AllOf.reserve(claims);
        crowded.reserve("other", 1, 0);
        CompletableFuture<Boolean> sleeper = crowded.reserve("other", 1, HOUR).awaitAsync();
        assertThat(third.mayWait()).isTrue();
        assertThat(third.awaitAsync()).isCompletedWithValue(false);
        assertThat(flights.peek("key", 1, 0).remaining()).isOne();
        assertThat(sleeper).isNotDone();
    }

    @Test
    void aRefusedCallNeitherWaitsNorHoldsAnything() throws InterruptedException {
        slow.tryAcquire("key", 1);
        Reservation refused = AllOf.reserve(List.of(Claim.of(flights, "key", 1, 0), Claim.of(slow, "key", 1, 0)));
        assertThat(refused.isRefused()).isTrue();
        assertThat(refused.mayWait()).isFalse();
        assertThat(refused.waitNanos()).isZero();
        assertThat(refused.await()).isFalse();
        assertThat(refused.awaitAsync()).isCompletedWithValue(false);
        refused.cancel();
        refused.release();
        assertThat(flights.peek("key", 1, 0).remaining()).isEqualTo(2);
    }

    @Test
    void withoutAThreadToBlockACallTakesAllOrNothingToo() {
        Reservation all = AllOf.reserveAsync(claims(fast, slow, flights))
                .toCompletableFuture()
                .join();
        assertThat(members(all, 3)).noneMatch(Reservation::isRefused);
        assertThat(flights.peek("key", 1, 0).remaining()).isOne();
        Reservation refused = AllOf.reserveAsync(List.of(
                        Claim.of(flights, "key", 1, 0), Claim.of(fast, "key", 1, HOUR), Claim.of(slow, "key", 1, 0)))
                .toCompletableFuture()
                .join();
        assertThat(refused.isRefused()).isTrue();
        assertThat(refused.decision().limit()).isEqualTo("slow");
        assertThat(flights.peek("key", 1, 0).remaining()).isOne();
        assertThat(fast.peek("key", 1, HOUR).waitTime()).isEqualTo(Duration.ofMillis(100));
    }

    /** One limiter cannot decide, because its backend is away and its limit wants callers to hear of it. */
    @Test
    void whenALimiterFailsWhatTheOthersGaveIsGivenBack() {
        RateLimiter failing = (RateLimiter) Proxy.newProxyInstance(
                getClass().getClassLoader(), new Class<?>[] {RateLimiter.class}, (proxy, method, arguments) -> {
                    if (method.getName().equals("reserveAsync")) {
                        return CompletableFuture.failedFuture(new IllegalStateException("away"));
                    }
                    if (method.getName().equals("reserve")) {
                        throw new IllegalStateException("away");
                    }
                    return method.invoke(fast, arguments);
                });
        List<Claim> claims = List.of(Claim.of(flights, "key", 1, 0), Claim.of(failing, "key", 1, 0));
        assertThatThrownBy(() -> AllOf.reserve(claims)).hasMessage("away");
        assertThat(flights.peek("key", 1, 0).remaining()).isEqualTo(2);
        assertThat(AllOf.reserveAsync(claims)).isCompletedExceptionally();
        assertThat(flights.peek("key", 1, 0).remaining()).isEqualTo(2);
        List<Claim> wrong = List.of(Claim.of(flights, "key", 1, 0), Claim.of(fast, "key", -1, 0));
        assertThat(AllOf.reserveAsync(wrong)).isCompletedExceptionally();
        assertThat(flights.peek("key", 1, 0).remaining()).isEqualTo(2);
    }

    /** The last to decide is far away, and answers when the caller has gone. */
    @ParameterizedTest
    @ValueSource(ints = {0, 1, 2})
    void aCallerWhoCancelsBeforeAllHaveAnsweredHoldsNothing(int place) {
        CompletableFuture<Reservation> answer = new CompletableFuture<>();
        RateLimiter far = (RateLimiter) Proxy.newProxyInstance(
                getClass().getClassLoader(),
                new Class<?>[] {RateLimiter.class},
                (proxy, method, arguments) ->
                        method.getName().equals("reserveAsync") ? answer : method.invoke(slow, arguments));
        List<RateLimiter> limiters = new ArrayList<>(List.of(flights, fast));
        limiters.add(place, far);
        CompletableFuture<Reservation> call = AllOf.reserveAsync(limiters.stream()
                        .map(limiter -> Claim.of(limiter, "key", 1, 0))
                        .toList())
                .toCompletableFuture();
        assertThat(call.cancel(false)).isTrue();
        Reservation late = slow.reserve("key", 1, 0);
        assertThat(late.isRefused()).isFalse();
        answer.complete(late);
        assertThat(slow.peek("key", 1, 0).admitted()).isTrue();
        assertThat(fast.peek("key", 1, 0).admitted()).isTrue();
        assertThat(flights.peek("key", 1, 0).remaining()).isEqualTo(2);
    }

    /** A limiter that decides several limits in one step, if it is asked for them. */
    private record Joint(RateLimiter own, Predicate<RateLimiter> joins, List<Reservation> answer, List<String> sent)
            implements JointRateLimiter {

        @Override
        public boolean decidesWith(RateLimiter other) {
            return joins.test(other);
        }

        @Override
        public List<Reservation> reserveAll(List<Claim> claims, long othersWaitNanos) {
            sent.add("together");
            return answer;
        }

        @Override
        public CompletionStage<List<Reservation>> reserveAllAsync(
                List<Claim> claims, long othersWaitNanos, Callbacks callbacks) {
            return CompletableFuture.completedFuture(reserveAll(claims, othersWaitNanos));
        }

        @Override
        public Limit limit() {
            return own.limit();
        }

        @Override
        public boolean tryAcquire(@Nullable Object key, long permits) {
            return own.tryAcquire(key, permits);
        }

        @Override
        public Reservation reserve(Call call) {
            sent.add("reserve");
            return own.reserve(call);
        }

        @Override
        public Decision peek(Call call) {
            sent.add("peek");
            return own.peek(call);
        }

        @Override
        public void reset(@Nullable Object key) {
            own.reset(key);
        }

        @Override
        public void update(Limit limit) {
            own.update(limit);
        }

        @Override
        public long keys() {
            return own.keys();
        }

        @Override
        public int waiting() {
            return own.waiting();
        }
    }

    /** Memory refuses for nothing; whoever is far away is asked once, for all of its limits. */
    @Test
    void limitsElsewhereAreChargedOnceAndOnlyIfMemoryAdmits() {
        List<String> sent = new ArrayList<>();
        Predicate<RateLimiter> far = Joint.class::isInstance;
        List<Reservation> answer = new ArrayList<>();
        Joint one = new Joint(fast, far, answer, sent);
        Joint two = new Joint(slow, far, answer, sent);
        RateLimiter once = limiter(Limit.of("once", Algorithm.TOKEN_BUCKET).rate("1/h"));
        List<Claim> claims = claims(one, flights, two, once).stream()
                .map(claim -> Claim.of(claim.limiter(), "key", 1, 0))
                .toList();
        for (Function<List<Claim>, Reservation> reserve : BOTH) {
            answer.clear();
            answer.addAll(List.of(fast.reserve("a", 1, HOUR), slow.reserve("b", 1, HOUR)));
            Reservation all = reserve.apply(claims);
            assertThat(sent).containsExactly("together");
            assertThat(members(all, 4))
                    .extracting(member -> member.decision().limit())
                    .containsExactly("fast", "flights", "slow", "once");
            sent.clear();
            Reservation refused = reserve.apply(claims);
            assertThat(refused.isRefused()).isTrue();
            assertThat(AllOf.decisive(AllOf.refusals(refused))).isEqualTo(3);
            assertThat(sent).as("memory refuses: nothing is taken").containsExactly("peek", "peek");
            sent.clear();
            all.release();
            once.reset("key");
            answer.clear();
            answer.add(AllOf.refused(new Decision[] {null, slow.peek("key", 1, 0)}));
            refused = reserve.apply(claims);
            assertThat(sent).containsExactly("together");
            assertThat(AllOf.decisive(AllOf.refusals(refused))).isEqualTo(2);
            assertThat(once.peek("key", 1, 0).remaining()).isOne();
            assertThat(flights.peek("key", 1, 0).remaining()).isEqualTo(2);
            sent.clear();
        }
    }

    @Test
    void aSingleLimitElsewhereIsAskedByItself() {
        List<String> sent = new ArrayList<>();
        Joint far = new Joint(fast, Joint.class::isInstance, List.of(), sent);
        for (Function<List<Claim>, Reservation> reserve : BOTH) {
            Reservation all = reserve.apply(claims(flights, far));
            assertThat(sent).containsExactly("reserve");
            all.cancel();
            sent.clear();
        }
        assertThat(flights.peek("key", 1, 0).remaining()).isEqualTo(2);
    }

    private static final List<Function<List<Claim>, Reservation>> BOTH = List.of(
            AllOf::reserve,
            claims -> AllOf.reserveAsync(claims).toCompletableFuture().join());

    @Test
    void aLimiterThatCanDecideAllInOneStepDoes() {
        Reservation one = fast.reserve("key", 1, HOUR);
        Reservation two = slow.reserve("key", 1, HOUR);
        Reservation refusal = AllOf.refused(new Decision[] {null, slow.peek("key", 1, 0)});
        List<String> sent = new ArrayList<>();
        Joint together = new Joint(fast, other -> true, List.of(one, two), sent);
        Joint refusing = new Joint(fast, other -> true, List.of(refusal), sent);
        Joint apart = new Joint(fast, other -> false, List.of(), sent);
        for (Function<List<Claim>, Reservation> reserve : BOTH) {
            assertThat(members(reserve.apply(claims(together, apart)), 2)).containsExactly(one, two);
            Reservation refused = reserve.apply(claims(refusing, apart));
            assertThat(refused.isRefused()).isTrue();
            assertThat(AllOf.decisive(AllOf.refusals(refused))).isOne();
            assertThat(sent).containsExactly("together", "together");
            sent.clear();
            assertThat(members(reserve.apply(claims(apart, together)), 2)).doesNotContain(one, two);
            assertThat(sent).as("asked before they are charged").containsExactly("peek", "peek", "reserve", "reserve");
            sent.clear();
        }
    }
}
