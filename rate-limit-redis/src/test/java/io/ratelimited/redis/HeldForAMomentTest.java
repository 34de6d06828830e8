package io.ratelimited.redis;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.Threads;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.several.AllOf;
import io.ratelimited.core.several.Claim;
import io.ratelimited.core.testing.ManualTicker;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Calls of one key race, on two instances, for a permit on Redis and for one in the memory of each, and others for one of them
 * alone.
 */
@Tag("slow")
class HeldForAMomentTest {

    private static final int RACES = 200;

    @RegisterExtension
    static final RedisServers REDIS = RedisServers.standalone();

    private final ManualTicker time = RedisServers.ticker();
    private final List<Instance> instances = List.of(new Instance(), new Instance());

    private final class Instance {

        private final RateLimiter memory =
                new InMemoryRateLimiter(limit("memory").build(), time, RACES);
        private final RateLimiter redis = REDIS.backend(time)
                .limiter(limit("redis").block(Duration.ofMinutes(10)).build(), RedisLimitOptions.DEFAULTS);

        private boolean isAdmitted(String key, boolean blocking) {
            List<Claim> claims = List.of(Claim.of(redis, key, 1, 0), Claim.of(memory, key, 1, 0));
            return !(blocking
                            ? AllOf.reserve(claims)
                            : AllOf.reserveAsync(claims).toCompletableFuture().join())
                    .isRefused();
        }
    }

    private static Limit.Builder limit(String name) {
        return Limit.of(name, Algorithm.TOKEN_BUCKET).rate("1/h");
    }

    /** Of each instance one call under the limit in memory, two under both, and one under the limit on Redis after the others. */
    private boolean uses(int thread, String key) {
        Instance instance = instances.get(thread / 4);
        return switch (thread % 4) {
            case 0 -> {
                instance.memory.tryAcquire(key, 1);
                yield false;
            }
            case 3 -> instance.redis.tryAcquire(key, 1);
            default -> instance.isAdmitted(key, thread % 4 == 1);
        };
    }

    /** Whichever of the two backends has the permits, and whichever the place for which their call waits. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void whatACallGivesBackAfterItsWaitForAPlaceElsewhereBlocksNobody(boolean placesOnRedis) throws Exception {
        RedisBackend backend = REDIS.backend(time);
        Limit permits = limit("guesses").block(Duration.ofMinutes(10)).build();
        Limit calls = Limit.of("calls", Algorithm.CONCURRENCY).maxConcurrent(1).build();
        RateLimiter guesses = placesOnRedis
                ? new InMemoryRateLimiter(permits, time, 10)
                : backend.limiter(permits, RedisLimitOptions.DEFAULTS);
        RateLimiter places = placesOnRedis
                ? backend.limiter(calls, RedisLimitOptions.DEFAULTS)
                : new InMemoryRateLimiter(calls, time, 10);
        Duration longest = Duration.ofSeconds(2);
        List<Claim> claims = List.of(Claim.of(guesses, "k", 1, 0), Claim.of(places, "k", 1, longest.toNanos()));
        for (boolean admitted : new boolean[] {false, true}) {
            Reservation full = places.reserve("k", 1, 0);
            CompletableFuture<Boolean> wait = AllOf.reserve(claims).awaitAsync();
            assertThat(guesses.reserve("k", 1, 0).decision().blocked()).isFalse();
            assertThat(guesses.peek("k", 1, 0).blocked()).isFalse();
            if (admitted) {
                full.release();
            } else {
                time.advance(longest);
            }
            assertThat(wait.get(30, TimeUnit.SECONDS)).isEqualTo(admitted);
            if (!admitted) {
                full.release();
                time.advance(longest);
                assertThat(guesses.peek("k", 1, 0).admitted()).isTrue();
            }
        }
        long deadline = System.nanoTime() + Duration.ofSeconds(30).toNanos();
        while (!guesses.peek("k", 1, 0).blocked()) {
            assertThat(System.nanoTime() - deadline).isNegative();
        }
    }

    /** One script decides both. Another call takes the only position between the decision and the wait. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void whatACallGivesBackBecauseTheQueueOfAnotherLimitIsFullBlocksNobody(boolean full) throws Exception {
        String key = "queue" + full;
        RedisBackend backend = REDIS.backend(time);
        RateLimiter guesses = backend.limiter(instances.get(0).redis.limit(), RedisLimitOptions.DEFAULTS);
        RateLimiter queue = backend.limiter(
                Limit.of("queue", Algorithm.LEAKY_BUCKET)
                        .rate("1/s")
                        .burst(3)
                        .maxWaiting(1)
                        .build(),
                RedisLimitOptions.DEFAULTS);
        assertThat(queue.tryAcquire(key, 1)).isTrue();
        Reservation both =
                AllOf.reserve(List.of(Claim.of(guesses, key, 1, 0), Claim.of(queue, key, 1, Long.MAX_VALUE)));
        if (full) {
            assertThat(queue.reserve(key, 1, Long.MAX_VALUE).awaitAsync()).isNotDone();
        }
        assertThat(instances.get(1).redis.tryAcquire(key, 1)).isFalse();
        assertThat(guesses.peek(key, 1, 0).blocked()).isFalse();
        CompletableFuture<Boolean> wait = both.awaitAsync();
        if (!full) {
            time.advance(Duration.ofSeconds(1));
        }
        assertThat(wait.get(30, TimeUnit.SECONDS)).isEqualTo(!full);
        Threads.until(() -> full
                ? guesses.peek(key, 1, 0).admitted()
                : guesses.peek(key, 1, 0).blocked());
    }

    @ParameterizedTest
    @ValueSource(ints = {6, 8})
    void noKeyIsBlockedThatHasUsedNothing(int threads) throws Exception {
        // Without calls under the limit on Redis alone more keys use nothing.
        int[] roles = threads == 6 ? new int[] {0, 1, 2, 4, 5, 6} : new int[] {0, 1, 2, 3, 4, 5, 6, 7};
        AtomicInteger arrived = new AtomicInteger();
        AtomicInteger[] used = new AtomicInteger[RACES];
        for (int race = 0; race < RACES; race++) {
            used[race] = new AtomicInteger();
        }
        Threads.run(threads, thread -> {
            for (int race = 0; race < RACES; race++) {
                int all = threads * (race + 1);
                arrived.incrementAndGet();
                Threads.until(() -> arrived.get() >= all);
                used[race].addAndGet(uses(roles[thread], "k" + race) ? 1 : 0);
            }
            return null;
        });
        int unused = 0;
        int wrong = 0;
        for (int race = 0; race < RACES; race++) {
            boolean blocked = instances.get(0).redis.peek("k" + race, 1, 0).blocked();
            wrong += blocked && used[race].get() == 0 ? 1 : 0;
            unused += used[race].get() == 0 ? 1 : 0;
        }
        assertThat(wrong)
                .as("blocked, of %s keys that have used nothing", unused)
                .isZero();
    }

    private enum End {
        KEPT,
        GIVEN_BACK,
        /** Its instance has crashed. */
        UNKNOWN
    }

    /** Takes the permit of a key for a call that other limits may still reject. */
    private Reservation undecided(String key) {
        return undecided(key, 1);
    }

    private Reservation undecided(String key, long permits) {
        Claim call = Claim.of(instances.get(0).redis, key, permits, 0);
        Claim undecided = (Claim) Proxy.newProxyInstance(
                getClass().getClassLoader(),
                new Class<?>[] {Claim.class},
                (proxy, method, arguments) ->
                        method.getName().equals("isUndecided") ? true : method.invoke(call, arguments));
        Reservation taken = call.limiter().reserve(undecided);
        assertThat(taken.isRefused()).isFalse();
        return taken;
    }

    @ParameterizedTest
    @EnumSource
    void aRejectionIsJudgedWhenTheCallIsDecidedThatHasThePermits(End end) {
        String key = "judged" + end;
        RateLimiter own = instances.get(0).redis;
        Reservation first = undecided(key);
        assertThat(instances.get(1).redis.tryAcquire(key, 1)).isFalse();
        assertThat(own.peek(key, 1, 0).blocked()).as("before it is decided").isFalse();
        switch (end) {
            case KEPT -> first.keep();
            case GIVEN_BACK -> first.cancel();
            case UNKNOWN -> time.advance(Duration.ofSeconds(11));
        }
        boolean admitted = own.tryAcquire(key, 1);
        assertThat(admitted).isEqualTo(end == End.GIVEN_BACK);
        assertThat(own.peek(key, 1, 0).blocked()).isEqualTo(end != End.GIVEN_BACK);
        if (admitted) {
            assertThat(own.tryAcquire(key, 1)).isFalse();
            assertThat(own.peek(key, 1, 0).blocked())
                    .as("a rejection by permits that are used")
                    .isTrue();
        }
    }

    @Test
    void callsThatAreKeptOneAfterTheOtherExcuseNobody() {
        RateLimiter own = instances.get(0).redis;
        own.update(own.limit().toBuilder().rate("3/h").burst(3).build());
        Reservation first = undecided("several");
        Reservation second = undecided("several");
        assertThat(own.tryAcquire("several", 2)).isFalse();
        time.advance(Duration.ofMillis(1));
        Reservation third = undecided("several");
        second.keep();
        assertThat(own.peek("several", 1, 0).blocked()).isFalse();
        first.keep();
        assertThat(own.peek("several", 1, 0).blocked())
                .as("the third came after the rejection")
                .isTrue();
        third.cancel();
        assertThat(own.peek("several", 1, 0).blocked()).isTrue();
    }

    /** It came at the time of the other one. */
    @Test
    void aCallOfNoPermitsThatIsKeptDecidesForNoOther() {
        RateLimiter own = instances.get(0).redis;
        Reservation holding = undecided("nothing");
        Reservation nothing = undecided("nothing", 0);
        assertThat(own.tryAcquire("nothing", 1)).isFalse();
        nothing.keep();
        holding.cancel();
        assertThat(own.peek("nothing", 1, 0).blocked()).isFalse();
        assertThat(own.tryAcquire("nothing", 1)).isTrue();
    }
}
