package io.ratelimited.core.several;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.Threads;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.testing.ManualTicker;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/**
 * Callers of several limits and of one race for the last permits, on a clock that stands. Nobody gives anything back, so who
 * was refused by a permit that nobody has in the end was refused wrongly.
 */
class SeveralRacesTest {

    private static final int CALLERS = 3;
    private static final int LIMITS = 3;
    private static final int TOGETHER = 500;

    private static final List<Algorithm> ALGORITHMS =
            Algorithm.all().stream().filter(each -> !each.findsItsLimit()).toList();

    int races() {
        return 3_000;
    }

    /** Some limits with one or two permits left, and what each caller asks them for. */
    private static final class Race {

        private final ManualTicker ticker = new ManualTicker();
        private final List<RateLimiter> limiters = new ArrayList<>();
        private final List<List<Integer>> wanted = new ArrayList<>();
        private final List<Integer> ways = new ArrayList<>();
        private final boolean[] admitted = new boolean[CALLERS];
        private final String key;

        private Race(Random random) {
            key = "k" + random.nextInt(2);
            for (int i = 0; i < LIMITS; i++) {
                limiters.add(new InMemoryRateLimiter(limit(random, i), ticker, 100));
                prepare(limiters.get(i));
            }
            for (int caller = 0; caller < CALLERS; caller++) {
                List<Integer> numbers =
                        new ArrayList<>(IntStream.range(0, LIMITS).boxed().toList());
                Collections.shuffle(numbers, random);
                wanted.add(List.copyOf(numbers.subList(0, 1 + random.nextInt(LIMITS))));
                ways.add(random.nextInt(3));
            }
        }

        private static Limit limit(Random random, int number) {
            Algorithm algorithm = ALGORITHMS.get(random.nextInt(ALGORITHMS.size()));
            Limit.Builder limit = Limit.of("limit" + number, algorithm);
            int permits = 1 + random.nextInt(2);
            if (algorithm == Algorithm.CONCURRENCY) {
                return limit.maxConcurrent(permits).build();
            }
            limit.rate(permits + "/h");
            return (algorithm == Algorithm.WARM_UP ? limit.warmup(Duration.ZERO) : limit).build();
        }

        /** The first joint call of a limit and of a key has been made, and has left nothing behind. */
        private void prepare(RateLimiter limiter) {
            AllOf.reserve(List.of(Claim.of(limiter, key, 1, 0), Claim.of(limiter, key, 0, 0)))
                    .cancel();
        }

        private void call(int caller) {
            List<Claim> claims = wanted.get(caller).stream()
                    .map(number -> Claim.of(limiters.get(number), key, 1, 0))
                    .toList();
            RateLimiter first = claims.get(0).limiter();
            if (claims.size() == 1
                    && ways.get(caller) == 0
                    && !first.limit().algorithm().countsCallsInFlight()) {
                admitted[caller] = first.tryAcquire(key, 1);
                return;
            }
            Reservation reservation = ways.get(caller) == 1
                    ? AllOf.reserveAsync(claims).toCompletableFuture().join()
                    : AllOf.reserve(claims);
            admitted[caller] = !reservation.isRefused();
        }

        private boolean isFree(int number) {
            return limiters.get(number).peek(key, 1, 0).admitted();
        }

        /** Each refused caller finds a limit without a permit, and each limit has as many fewer as callers went. */
        private void check(String where) {
            for (int caller = 0; caller < CALLERS; caller++) {
                assertThat(!admitted[caller] && wanted.get(caller).stream().allMatch(this::isFree))
                        .as("%s: caller %s of %s was refused, %s", where, caller, wanted, described())
                        .isFalse();
            }
            for (int number = 0; number < LIMITS; number++) {
                int limit = number;
                long went = IntStream.range(0, CALLERS)
                        .filter(caller -> admitted[caller] && wanted.get(caller).contains(limit))
                        .count();
                long left = 0;
                while (!limiters.get(number).reserve(key, 1, 0).isRefused()) {
                    left++;
                }
                assertThat(went + left)
                        .as("%s: limit %s of %s, %s", where, limit, wanted, described())
                        .isEqualTo(permits(limiters.get(number).limit()));
            }
        }

        private static long permits(Limit limit) {
            return switch (limit.algorithm()) {
                case CONCURRENCY -> limit.maxConcurrent();
                case LEAKY_BUCKET, SMOOTH_BURSTY, WARM_UP -> 1;
                default -> limit.rate().permits();
            };
        }

        private String described() {
            return limiters.stream()
                    .map(limiter -> limiter.limit().toString())
                    .toList()
                    .toString();
        }
    }

    /** Spins, so that all begin within the time of one call, and yields to a caller that has no processor. */
    @SuppressWarnings("ThreadPriorityCheck") // waiting for another thread, not relying on when it runs
    private static void awaitAll(AtomicInteger arrived, int all) {
        for (int spins = 0; arrived.get() < all; spins++) {
            if (spins < 200) {
                Thread.onSpinWait();
            } else {
                Thread.yield();
            }
        }
    }

    @Test
    void nobodyIsRefusedByWhatIsChargedForAMoment() throws Exception {
        Random random = new Random(41);
        Race[] races = new Race[races()];
        for (int i = 0; i < races.length; i++) {
            races[i] = new Race(random);
        }
        // No machine is so slow that its threads do not end a few hundred.
        for (int from = 0; from < races.length; from += TOGETHER) {
            List<Race> some = Arrays.asList(races).subList(from, Math.min(races.length, from + TOGETHER));
            AtomicInteger arrived = new AtomicInteger();
            Threads.run(CALLERS, caller -> {
                for (int i = 0; i < some.size(); i++) {
                    arrived.incrementAndGet();
                    awaitAll(arrived, CALLERS * (i + 1));
                    some.get(i).call(caller);
                }
                return null;
            });
        }
        for (int i = 0; i < races.length; i++) {
            races[i].check("race " + i);
        }
    }
}
