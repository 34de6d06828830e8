package io.ratelimited.redis;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Decision.Source;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.several.AllOf;
import io.ratelimited.core.several.Claim;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What a silent server costs: nothing is sent while the breaker is open, and until then little is under way. */
@Tag("once")
@Tag("slow")
class OpenBreakerTest {

    private static final long TIMEOUT_MILLIS = FarNode.PATIENT.timeout().toMillis();

    @RegisterExtension
    static final RedisServers REDIS = RedisServers.standalone();

    /** Limits on one call: of one caller, and calls in flight, which are decided by themselves. */
    private static List<Claim> claims(FarNode far, int count, boolean inFlight) {
        List<Claim> claims = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            Limit limit = inFlight
                    ? Limit.of("limit-" + i, Algorithm.CONCURRENCY)
                            .maxConcurrent(1000)
                            .build()
                    : Limit.of("limit-" + i, Algorithm.TOKEN_BUCKET)
                            .rate("1000/s")
                            .build();
            claims.add(Claim.of(far.limiter(limit), "caller", 1, 0));
        }
        return claims;
    }

    /** Milliseconds of a task without what the machine took. */
    private static long millis(String what, Runnable task) {
        try (Stalls stalls = new Stalls()) {
            long begin = System.nanoTime();
            task.run();
            long end = System.nanoTime();
            long stolen = stalls.between(begin, end);
            System.out.printf(
                    "OPEN %s: %d ms, of which the machine took %d ms%n",
                    what, (end - begin) / 1_000_000, stolen / 1_000_000);
            return (end - begin - stolen) / 1_000_000;
        }
    }

    private static void resetsOrFails(RateLimiter limiter) {
        try {
            limiter.reset("caller");
        } catch (RedisUnavailableException ex) {
            // What cannot be forgotten now is said, and without having waited.
        }
    }

    @Test
    void withTheBreakerOpenNobodyAsksWhateverItWants() {
        FarNode far = FarNode.of(REDIS, FarNode.PATIENT);
        RateLimiter limiter = claims(far, 1, false).get(0).limiter();
        List<List<Claim>> calls = new ArrayList<>();
        for (int count = 2; count <= 4; count++) {
            calls.add(claims(far, count, false));
            calls.add(claims(far, count, true));
        }
        far.awaitRedis();
        far.network().silence(true);
        far.awaitOutage();
        long before = far.network().commands();
        long begin = System.nanoTime();
        long millis = 0;
        millis += millis(
                "peek", () -> assertThat(limiter.peek("caller", 1, 0).source()).isEqualTo(Source.FALLBACK));
        millis += millis("reset", () -> resetsOrFails(limiter));
        millis += millis("reserve", () -> limiter.reserve("caller", 1, 0));
        for (List<Claim> call : calls) {
            millis += millis(call.size() + " limits", () -> AllOf.reserve(call).release());
            millis += millis(
                    call.size() + " limits, not blocking",
                    () -> AllOf.reserveAsync(call).toCompletableFuture().join().release());
        }
        long asked = far.network().commands() - before;
        assertThat(millis).as("all of them together").isLessThan(TIMEOUT_MILLIS);
        assertThat(asked).isLessThanOrEqualTo(FarNode.probesSince(begin));
    }

    @ParameterizedTest
    @CsvSource({"2, false", "4, false", "2, true", "4, true"})
    void theFirstCallOfAnOutageWaitsForTheTimeoutOnceHoweverManyLimitsItHas(int count, boolean inFlight) {
        FarNode far = FarNode.of(REDIS, FarNode.PATIENT);
        List<Claim> claims = claims(far, count, inFlight);
        far.awaitRedis();
        AllOf.reserve(claims).release();
        far.network().silence(true);
        long millis = millis(
                "first call under " + count + " limits",
                () -> AllOf.reserve(claims).release());
        assertThat(millis).isLessThan(TIMEOUT_MILLIS + TIMEOUT_MILLIS / 2);
    }

    @Test
    void aHundredThreadsSendASilentServerLittle() throws Exception {
        hundredThreads(700);
    }

    private static void hundredThreads(long millis) throws Exception {
        FarNode far = FarNode.of(REDIS, RedisBackendOptions.DEFAULTS.expectedNodes(1));
        RateLimiter limiter = claims(far, 1, false).get(0).limiter();
        far.awaitRedis();
        far.network().silence(true);
        long before = far.network().commands();
        long begin = System.nanoTime();
        long end = begin + 1_000_000 * millis;
        LongAdder decisions = new LongAdder();
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < 100; i++) {
            String key = "k" + i;
            Thread thread = new Thread(() -> {
                while (System.nanoTime() - end < 0) {
                    limiter.reserve(key, 1, 0);
                    limiter.peek(key, 1, 0);
                    decisions.add(2);
                    LockSupport.parkNanos(100_000);
                }
            });
            threads.add(thread);
            thread.start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        long asked = far.network().commands() - before;
        System.out.printf(
                "OPEN 100 threads: %,d commands for %,d decisions in %d ms%n", asked, decisions.sum(), millis);
        // Two questions of each thread, and probes.
        assertThat(asked).isLessThanOrEqualTo(235 + FarNode.probesSince(begin));
    }

    /** Who does not block could ask without end before the first timeout. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void whatIsUnderWayIsBoundedAndWhoComesThenIsDecidedAsInAnOutage(boolean inFlight) {
        FarNode far = FarNode.of(REDIS, FarNode.PATIENT.timeout(Duration.ofSeconds(30)));
        RateLimiter limiter = claims(far, 1, inFlight).get(0).limiter();
        far.awaitRedis();
        far.network().silence(true);
        int callers = 12_000;
        CountDownLatch decided = new CountDownLatch(callers - 10_000);
        List<CompletableFuture<Reservation>> calls = new ArrayList<>();
        for (int i = 0; i < callers; i++) {
            CompletableFuture<Reservation> call =
                    limiter.reserveAsync("k" + i, 1, 0).toCompletableFuture();
            call.whenComplete((reservation, failure) -> decided.countDown());
            calls.add(call);
        }
        RedisProcess.until(() -> decided.getCount() == 0, "most are decided at once", FarNode.PATIENCE.dividedBy(2));
        assertThat(calls.stream().filter(CompletableFuture::isDone))
                .allSatisfy(call -> assertThat(call.join().decision().source()).isEqualTo(Source.FALLBACK));
    }
}
