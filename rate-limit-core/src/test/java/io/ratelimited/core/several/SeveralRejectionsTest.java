package io.ratelimited.core.several;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Decision;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.Threads;
import io.ratelimited.core.internals.several.MemoryLimiter;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.testing.ManualTicker;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Objects;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** One call, several limits that refuse it: the answer is the same in whatever order they are declared. */
@Tag("slow")
class SeveralRejectionsTest {

    private static final long SECOND = 1_000_000_000L;

    /** Where the limits live, and how they are asked. */
    private enum Way {
        MEMORY,
        MIXED,
        ELSEWHERE,
        MEMORY_ASYNC,
        MIXED_ASYNC,
        ELSEWHERE_ASYNC;

        private Reservation reserve(List<Claim> claims) {
            return name().endsWith("ASYNC")
                    ? AllOf.reserveAsync(claims).toCompletableFuture().join()
                    : AllOf.reserve(claims);
        }

        /** A backend of an application's own is none that this library knows. */
        private RateLimiter place(RateLimiter inMemory, int number) {
            boolean elsewhere = name().startsWith("ELSEWHERE") || (name().startsWith("MIXED") && number % 2 == 0);
            return !elsewhere
                    ? inMemory
                    : (RateLimiter) Proxy.newProxyInstance(
                            RateLimiter.class.getClassLoader(),
                            new Class<?>[] {RateLimiter.class},
                            (proxy, method, arguments) -> {
                                try {
                                    return method.invoke(inMemory, arguments);
                                } catch (InvocationTargetException ex) {
                                    throw ex.getCause();
                                }
                            });
        }
    }

    private final ManualTicker ticker = new ManualTicker();

    private RateLimiter limiter(Limit.Builder limit) {
        return new InMemoryRateLimiter(limit.build(), ticker, 100);
    }

    private static List<List<Claim>> orders(List<Claim> claims) {
        if (claims.size() < 2) {
            return List.of(claims);
        }
        List<List<Claim>> orders = new ArrayList<>();
        for (Claim first : claims) {
            List<Claim> others = new ArrayList<>(claims);
            others.remove(first);
            for (List<Claim> rest : orders(others)) {
                List<Claim> order = new ArrayList<>(List.of(first));
                order.addAll(rest);
                orders.add(order);
            }
        }
        return orders;
    }

    @ParameterizedTest
    @EnumSource(
            value = Way.class,
            names = {"MEMORY", "MIXED", "MEMORY_ASYNC", "MIXED_ASYNC"})
    void theBestClassGoesWhereOthersAreRefused(Way way) {
        RateLimiter places =
                limiter(Limit.of("places", Algorithm.ADAPTIVE).maxConcurrent(2).priorities(List.of("good", "bad")));
        RateLimiter rate = way.place(limiter(Limit.of("rate", Algorithm.GCRA).rate("10/s")), 0);
        for (int rank : new int[] {1, 0}) {
            assertThat(way.reserve(List.of(Claim.of(places, null, 1, 0, rank), Claim.of(rate, null, 1, 0)))
                            .isRefused())
                    .as("class %s", rank)
                    .isFalse();
            assertThat(way.reserve(List.of(Claim.of(places, null, 1, 0, 1), Claim.of(rate, null, 1, 0)))
                            .decision()
                            .limit())
                    .isEqualTo("places");
        }
        assertThat(Objects.requireNonNull(places.foundLimit()).refused()).containsExactly(0L, 2L);
    }

    @ParameterizedTest
    @EnumSource
    void theRefusalIsThatOfTheLongestTime(Way way) {
        RateLimiter pace =
                way.place(limiter(Limit.of("pace", Algorithm.TOKEN_BUCKET).rate("1/s")), 0);
        RateLimiter quota =
                way.place(limiter(Limit.of("quota", Algorithm.FIXED_WINDOW).rate("2/h")), 1);
        RateLimiter flights =
                way.place(limiter(Limit.of("flights", Algorithm.CONCURRENCY).maxConcurrent(1)), 2);
        pace.tryAcquire("k", 1);
        quota.tryAcquire("k", 2);
        assertThat(flights.reserve("k", 1, 0).isRefused()).isFalse();
        List<Claim> claims =
                List.of(Claim.of(pace, "k", 1, 0), Claim.of(quota, "k", 1, 0), Claim.of(flights, "k", 1, 0));
        Duration longest = quota.peek("k", 1, 0).retryAfter();
        for (List<Claim> order : orders(claims)) {
            Decision refusal = way.reserve(order).decision();
            assertThat(refusal.limit()).isEqualTo("quota");
            assertThat(refusal.retryAfter()).isEqualTo(longest).isGreaterThan(Duration.ofSeconds(1));
        }
    }

    @ParameterizedTest
    @EnumSource
    void neverBeatsEveryTime(Way way) {
        RateLimiter quota =
                way.place(limiter(Limit.of("quota", Algorithm.FIXED_WINDOW).rate("2/h")), 0);
        RateLimiter closed =
                way.place(limiter(Limit.of("closed", Algorithm.TOKEN_BUCKET).rate("0/s")), 1);
        quota.tryAcquire("k", 2);
        for (List<Claim> order : orders(List.of(Claim.of(quota, "k", 1, 0), Claim.of(closed, "k", 1, 0)))) {
            Decision refusal = way.reserve(order).decision();
            assertThat(refusal.limit()).isEqualTo("closed");
            assertThat(refusal.never()).isTrue();
            assertThat(refusal.retryAfter()).isNull();
        }
    }

    @ParameterizedTest
    @EnumSource
    void anyOrderGivesTheSameRefusalAndWhoObeysItIsAdmitted(Way way) {
        int refused = 0;
        int several = 0;
        for (int seed = 0; seed < 150; seed++) {
            Random random = new Random(seed);
            List<Claim> claims = new ArrayList<>();
            int number = 2 + random.nextInt(2);
            for (int i = 0; i < number; i++) {
                claims.add(Claim.of(
                        way.place(limiter(random(random, "limit" + i)), i),
                        "k",
                        1L + random.nextInt(2),
                        random.nextInt(3) == 0 ? random.nextInt(3) * SECOND : 0));
            }
            for (int call = 0; call < 12; call++) {
                ticker.advance(Duration.ofMillis(random.nextInt(700)));
                Claim alone = claims.get(random.nextInt(number));
                alone.limiter().reserve("k", 1 + random.nextInt(2), 0).release();
                List<Decision> refusals = new ArrayList<>();
                Collections.shuffle(claims, random);
                for (List<Claim> order : orders(claims)) {
                    Reservation all = way.reserve(order);
                    if (!all.isRefused()) {
                        all.cancel();
                        break;
                    }
                    refusals.add(all.decision());
                }
                if (refusals.isEmpty()) {
                    continue;
                }
                String where = way + ", seed " + seed + ", call " + call;
                assertThat(refusals).as(where).containsOnly(refusals.get(0));
                refused++;
                several += claims.stream()
                                        .filter(claim -> !claim.limiter()
                                                .peek("k", claim.permits(), claim.maxWaitNanos())
                                                .admitted())
                                        .count()
                                > 1
                        ? 1
                        : 0;
                Duration retryAfter = refusals.get(0).retryAfter();
                if (retryAfter != null) {
                    ticker.advance(retryAfter);
                    Reservation retry = way.reserve(claims);
                    assertThat(retry.isRefused()).as(where).isFalse();
                    retry.release();
                }
            }
        }
        assertThat(refused).isGreaterThan(500);
        assertThat(several).isGreaterThan(200);
    }

    private static Limit.Builder random(Random random, String name) {
        Algorithm algorithm = List.of(
                        Algorithm.TOKEN_BUCKET,
                        Algorithm.GCRA,
                        Algorithm.LEAKY_BUCKET,
                        Algorithm.SMOOTH_BURSTY,
                        Algorithm.FIXED_WINDOW,
                        Algorithm.SLIDING_WINDOW,
                        Algorithm.SLIDING_LOG,
                        Algorithm.WARM_UP)
                .get(random.nextInt(8));
        Limit.Builder limit = Limit.of(name, algorithm)
                .rate(2 + random.nextInt(4) + List.of("/s", "/m", "/5s").get(random.nextInt(3)));
        return algorithm == Algorithm.WARM_UP ? limit.warmup(Duration.ofSeconds(2)) : limit;
    }

    @Test
    void aRefusalLeavesEveryLimitAsItWas() {
        RateLimiter pace = limiter(Limit.of("pace", Algorithm.TOKEN_BUCKET).rate("3/s"));
        RateLimiter quota = limiter(Limit.of("quota", Algorithm.FIXED_WINDOW).rate("2/h"));
        RateLimiter day = limiter(Limit.of("day", Algorithm.SLIDING_LOG).rate("1/d"));
        quota.tryAcquire("k", 2);
        day.tryAcquire("k", 1);
        Reservation refused =
                AllOf.reserve(List.of(Claim.of(pace, "k", 1, 0), Claim.of(quota, "k", 1, 0), Claim.of(day, "k", 1, 0)));
        assertThat(refused.decision().limit()).isEqualTo("day");
        assertThat(pace.peek("k", 1, 0).remaining()).isEqualTo(3);
    }

    @ParameterizedTest
    @EnumSource
    void claimsOnOneBudgetAreRefusedUntilItHasAllOfThem(Way way) {
        RateLimiter bucket =
                way.place(limiter(Limit.of("bucket", Algorithm.TOKEN_BUCKET).rate("3/s")), 0);
        RateLimiter wide =
                way.place(limiter(Limit.of("wide", Algorithm.TOKEN_BUCKET).rate("9/s")), 1);
        bucket.tryAcquire("k", 3);
        List<Claim> claims =
                List.of(Claim.of(bucket, "k", 1, 0), Claim.of(wide, "k", 1, 0), Claim.of(bucket, "k", 2, 0));
        for (List<Claim> order : orders(claims)) {
            assertThat(way.reserve(order).decision().retryAfter()).isEqualTo(Duration.ofSeconds(1));
        }
        ticker.advance(Duration.ofSeconds(1));
        assertThat(way.reserve(claims).isRefused()).isFalse();
    }

    @ParameterizedTest
    @EnumSource
    void claimsOnOneQueueAreRefusedUntilItsPredecessorsHaveGone(Way way) {
        RateLimiter queue =
                way.place(limiter(Limit.of("queue", Algorithm.LEAKY_BUCKET).rate("5/m")), 0);
        RateLimiter wide =
                way.place(limiter(Limit.of("wide", Algorithm.TOKEN_BUCKET).rate("99/s")), 1);
        long longest = Duration.ofSeconds(2).toNanos();
        List<Claim> claims =
                List.of(Claim.of(queue, "k", 1, longest), Claim.of(wide, "k", 1, 0), Claim.of(queue, "k", 1, longest));
        for (List<Claim> order : orders(claims)) {
            assertThat(way.reserve(order).isRefused()).isFalse();
            assertThat(way.reserve(order).decision().retryAfter()).isEqualTo(Duration.ofSeconds(22));
            ticker.advance(Duration.ofSeconds(24));
        }
    }

    /** Whatever the uses, their waits and blocks are: the call is decided as one use of all their permits. */
    @ParameterizedTest
    @EnumSource
    void claimsOnOneBudgetAreDecidedAsOneAndWhoObeysItIsAdmitted(Way way) {
        int refused = 0;
        int never = 0;
        int waited = 0;
        int blocked = 0;
        for (int seed = 0; seed < 400; seed++) {
            Random random = new Random(seed);
            Limit.Builder limit = random.nextBoolean()
                    ? Limit.of("limit", Algorithm.LEAKY_BUCKET).rate(2 + random.nextInt(4) + "/s")
                    : random(random, "limit");
            if (limit.build().algorithm().family() == Algorithm.Family.BUCKET
                    || limit.build().algorithm() == Algorithm.LEAKY_BUCKET) {
                limit.burst(1 + random.nextInt(6));
            }
            if (random.nextBoolean()) {
                limit.block(Duration.ofSeconds(1 + random.nextInt(3)));
            }
            RateLimiter one = way.place(limiter(limit), 0);
            RateLimiter several = way.place(limiter(limit), 0);
            RateLimiter wide =
                    way.place(limiter(Limit.of("wide", Algorithm.TOKEN_BUCKET).rate("999999/s")), 1);
            boolean besideAnother = random.nextBoolean();
            for (int call = 0; call < 12; call++) {
                ticker.advance(Duration.ofMillis(random.nextInt(700)));
                long first = 1L + random.nextInt(3);
                long second = random.nextInt(3);
                long wait = random.nextInt(2) * random.nextLong(3 * SECOND);
                long longer = wait + random.nextInt(2) * SECOND;
                List<Claim> uses = new ArrayList<>(
                        List.of(Claim.of(several, "k", first, wait), Claim.of(several, "k", second, longer)));
                List<Claim> sum = new ArrayList<>(List.of(Claim.of(one, "k", first + second, wait)));
                Collections.shuffle(uses, random);
                if (besideAnother) {
                    uses.add(1, Claim.of(wide, "k", 1, 0));
                    sum.add(Claim.of(wide, "k", 1, 0));
                }
                String where = way + ", seed " + seed + ", call " + call;
                Reservation expected = way.reserve(sum);
                Reservation decided = way.reserve(uses);
                assertThat(decided.isRefused()).as(where).isEqualTo(expected.isRefused());
                assertThat(decided.waitNanos()).as(where).isEqualTo(expected.waitNanos());
                if (decided.isRefused()) {
                    assertThat(decided.decision()).as(where).isEqualTo(expected.decision());
                    Duration retryAfter = decided.decision().retryAfter();
                    if (retryAfter != null) {
                        ticker.advance(retryAfter);
                        assertThat(way.reserve(uses).isRefused()).as(where).isFalse();
                        assertThat(way.reserve(sum).isRefused()).as(where).isFalse();
                    }
                    refused++;
                    never += expected.decision().never() ? 1 : 0;
                    blocked += expected.decision().blocked() ? 1 : 0;
                } else {
                    waited += decided.waitNanos() > 0 ? 1 : 0;
                }
            }
        }
        assertThat(refused).isGreaterThan(1_000);
        assertThat(never).isGreaterThan(100);
        assertThat(waited).isGreaterThan(100);
        assertThat(blocked).isGreaterThan(100);
    }

    /** Another call takes the last permits of both limits after this one was told that it could have them. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void whoComesTooLateIsRefusedForTheLongestTime(boolean blocking) {
        RateLimiter pace = limiter(Limit.of("pace", Algorithm.TOKEN_BUCKET).rate("1/m"));
        RateLimiter quota = limiter(Limit.of("quota", Algorithm.TOKEN_BUCKET).rate("1/h"));
        RateLimiter raced = (RateLimiter) Proxy.newProxyInstance(
                RateLimiter.class.getClassLoader(), new Class<?>[] {RateLimiter.class}, (proxy, method, arguments) -> {
                    if (method.getName().startsWith("reserve")) {
                        pace.tryAcquire("k", 1);
                        quota.tryAcquire("k", 1);
                    }
                    return method.invoke(pace, arguments);
                });
        List<Claim> claims = List.of(Claim.of(raced, "k", 1, 0), Claim.of(quota, "k", 1, 0));
        Reservation late = blocking
                ? AllOf.reserve(claims)
                : AllOf.reserveAsync(claims).toCompletableFuture().join();
        assertThat(late.decision().limit()).isEqualTo("quota");
        assertThat(late.decision().retryAfter()).isEqualTo(Duration.ofHours(1));
        assertThat(AllOf.refusals(late)).extracting(Decision::limit).containsExactly("pace", "quota");
    }

    /** The one schedule in which a charge for a moment could refuse others. */
    @Test
    void whatIsChargedForAMomentRefusesNobodyAndAdmitsNone() throws Exception {
        InMemoryRateLimiter pace = new InMemoryRateLimiter(
                Limit.of("pace", Algorithm.TOKEN_BUCKET).rate("1/m").build(), ticker, 100);
        InMemoryRateLimiter quota = new InMemoryRateLimiter(
                Limit.of("quota", Algorithm.TOKEN_BUCKET).rate("1/h").build(), ticker, 100);
        List<Claim> together = List.of(Claim.of(pace, "k", 1, 0), Claim.of(quota, "other", 1, 0));
        for (Callable<Boolean> third : List.<Callable<Boolean>>of(
                () -> pace.tryAcquire("k", 1),
                () -> !pace.reserve("k", 1, 0).isRefused(),
                () -> pace.reserve("k", 1, SECOND).waitNanos() == 0,
                () -> pace.peek("k", 1, 0).admitted(),
                () -> !AllOf.reserve(together).isRefused())) {
            List.of(pace, quota).forEach(limiter -> List.of("k", "other").forEach(limiter::reset));
            List<FutureTask<Boolean>> others = new ArrayList<>();
            RateLimiter raced = (RateLimiter) Proxy.newProxyInstance(
                    RateLimiter.class.getClassLoader(),
                    new Class<?>[] {MemoryLimiter.class},
                    (proxy, method, arguments) -> {
                        if (method.getName().equals("reserveAsked")) {
                            assertThat(quota.tryAcquire("k", 1)).isTrue();
                            others.add(startUntilItWaits(third));
                        }
                        return method.invoke(quota, arguments);
                    });
            Reservation late = AllOf.reserve(List.of(Claim.of(pace, "k", 1, 0), Claim.of(raced, "k", 1, 0)));
            assertThat(late.isRefused()).isTrue();
            assertThat(late.decision().limit()).isEqualTo("quota");
            assertThat(Threads.get(others.get(0))).isTrue();
            pace.tryAcquire("k", 1);
            assertThat(pace.tryAcquire("k", 1)).isFalse();
            assertThat(quota.tryAcquire("k", 1)).isFalse();
        }
    }

    /** Another call holds the permit of the last limit just when this one charges it, and gives it back. */
    @Test
    void whatIsChargedForAMomentDoesNotRefuseTheLastCharge() {
        InMemoryRateLimiter pace = new InMemoryRateLimiter(
                Limit.of("pace", Algorithm.TOKEN_BUCKET).rate("1/m").build(), ticker, 100);
        InMemoryRateLimiter quota = new InMemoryRateLimiter(
                Limit.of("quota", Algorithm.TOKEN_BUCKET).rate("1/h").build(), ticker, 100);
        AtomicInteger charges = new AtomicInteger();
        RateLimiter raced = (RateLimiter) Proxy.newProxyInstance(
                RateLimiter.class.getClassLoader(),
                new Class<?>[] {MemoryLimiter.class},
                (proxy, method, arguments) -> {
                    if (!method.getName().equals("reserveAsked") || charges.getAndIncrement() > 0) {
                        return method.invoke(quota, arguments);
                    }
                    Reservation moment = quota.reserve("k", 1, 0);
                    try {
                        return method.invoke(quota, arguments);
                    } finally {
                        moment.cancel();
                    }
                });
        assertThat(AllOf.reserve(List.of(Claim.of(pace, "k", 1, 0), Claim.of(raced, "k", 1, 0)))
                        .isRefused())
                .isFalse();
        assertThat(charges).hasValue(2);
        assertThat(pace.tryAcquire("k", 1)).isFalse();
        assertThat(quota.tryAcquire("k", 1)).isFalse();
    }

    /** A place is taken last wherever its claim stands, so the claim that stands last is charged before. */
    @Test
    void whatIsChargedForAMomentBeforeAPlaceRefusesNobody() throws Exception {
        InMemoryRateLimiter place = new InMemoryRateLimiter(
                Limit.of("place", Algorithm.CONCURRENCY).maxConcurrent(1).build(), ticker, 100);
        InMemoryRateLimiter pace = new InMemoryRateLimiter(
                Limit.of("pace", Algorithm.TOKEN_BUCKET).rate("1/m").build(), ticker, 100);
        List<FutureTask<Boolean>> others = new ArrayList<>();
        RateLimiter raced = (RateLimiter) Proxy.newProxyInstance(
                RateLimiter.class.getClassLoader(),
                new Class<?>[] {MemoryLimiter.class},
                (proxy, method, arguments) -> {
                    if (method.getName().equals("reserveAsked")) {
                        assertThat(place.reserve("k", 1, 0).isRefused()).isFalse();
                        others.add(startUntilItWaits(() -> pace.tryAcquire("k", 1)));
                    }
                    return method.invoke(place, arguments);
                });
        Reservation late = AllOf.reserve(List.of(Claim.of(raced, "k", 1, 0), Claim.of(pace, "k", 1, 0)));
        assertThat(late.isRefused()).isTrue();
        assertThat(Threads.get(others.get(0))).isTrue();
    }

    /** A last charge that may wait would wait longer for a permit that another call holds for a moment. */
    @Test
    void theLastChargeIsMadeAloneWhereTheCallMayWaitForIt() throws Exception {
        InMemoryRateLimiter pace = new InMemoryRateLimiter(
                Limit.of("pace", Algorithm.TOKEN_BUCKET).rate("1/m").build(), ticker, 100);
        InMemoryRateLimiter quota = new InMemoryRateLimiter(
                Limit.of("quota", Algorithm.TOKEN_BUCKET).rate("2/s").build(), ticker, 100);
        quota.tryAcquire("k", 2);
        List<FutureTask<Boolean>> others = new ArrayList<>();
        RateLimiter watched = (RateLimiter) Proxy.newProxyInstance(
                RateLimiter.class.getClassLoader(),
                new Class<?>[] {MemoryLimiter.class},
                (proxy, method, arguments) -> {
                    if (method.getName().equals("reserveAsked")) {
                        others.add(startUntilItWaits(
                                () -> !quota.reserve("k", 1, 10 * SECOND).isRefused()));
                        assertThat(others.get(0).isDone()).isFalse();
                    }
                    return method.invoke(quota, arguments);
                });
        Reservation waits = AllOf.reserve(List.of(Claim.of(pace, "k", 1, 0), Claim.of(watched, "k", 1, SECOND)));
        assertThat(waits.waitNanos()).isEqualTo(SECOND / 2);
        assertThat(Threads.get(others.get(0))).isTrue();
    }

    /** The third caller has been refused, or waits to be asked again. */
    private static FutureTask<Boolean> startUntilItWaits(Callable<Boolean> call) {
        AtomicReference<Thread> caller = new AtomicReference<>();
        FutureTask<Boolean> task = Threads.start(() -> {
            caller.set(Thread.currentThread());
            return call.call();
        });
        Threads.until(
                () -> task.isDone() || (caller.get() != null && caller.get().getState() == Thread.State.WAITING));
        return task;
    }
}
