package io.ratelimited.core.internals.memory.concurrency;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Call;
import io.ratelimited.core.End;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.several.AllOf;
import io.ratelimited.core.several.Claim;
import io.ratelimited.core.testing.ManualTicker;
import java.time.Duration;
import java.util.List;
import java.util.PriorityQueue;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * A small service in virtual time: eight processors serve calls one after the other, 20 ms each on average, before a
 * dependency of 40 ms. The large simulation, with peers, is {@code rate-limit-benchmarks/run overload}.
 */
@Tag("slow")
class AdaptiveOverloadTest {

    private static final int PROCESSORS = 8;
    private static final double CAPACITY = PROCESSORS / 0.02;
    private static final long DEADLINE = 500_000_000L;
    private static final long SECOND = 1_000_000_000L;

    /** What came of the calls of one class. */
    private static final class Tally {
        long offered;
        long refused;
        long inTime;
    }

    private record Leaves(long at, Reservation call, long arrived, Tally tally, End end) {}

    /** A run of the service. */
    private static final class Service {

        private final ManualTicker ticker = new ManualTicker();
        private final RateLimiter limiter = new InMemoryRateLimiter(
                Limit.of("service", Algorithm.ADAPTIVE)
                        .lateAfter(Duration.ofNanos(DEADLINE))
                        .priorities(List.of("critical", "background"))
                        .build(),
                ticker,
                1);
        private final PriorityQueue<Leaves> leaving =
                new PriorityQueue<>((one, other) -> Long.compare(one.at, other.at));
        private final long[] freeAt = new long[PROCESSORS];
        /** Refuses nobody. */
        private final RateLimiter quota = new InMemoryRateLimiter(
                Limit.of("quota", Algorithm.TOKEN_BUCKET).rate("unlimited").build(), ticker, 1);

        private final SplittableRandom random;
        private final boolean several;
        /** Share of the calls that a cache answers. */
        private double cached;
        /** Share of the calls that need a hundred permits. */
        private double heavy;

        private int processors = PROCESSORS;
        /** When callers who wait for their answers call next. */
        private final PriorityQueue<Long> calling = new PriorityQueue<>();

        private long now;

        private Service(long seed) {
            this(seed, false);
        }

        /** @param several whether calls are under another limit, too */
        private Service(long seed, boolean several) {
            this.random = new SplittableRandom(seed);
            this.several = several;
        }

        private Reservation reserve(int rank) {
            int permits = heavy > 0 && random.nextDouble() < heavy ? 100 : 1;
            return several
                    ? AllOf.reserve(List.of(Claim.of(quota, null, 1, 0), Claim.of(limiter, null, 1, 0, rank)))
                    : limiter.reserve(Call.of(null, permits, 0, rank));
        }

        private double exponential() {
            return -Math.log(1 - random.nextDouble());
        }

        /**
         * Offers calls for some seconds.
         *
         * @param load in multiples of what the processors serve; calls that a cache answers come in addition
         * @param critical the share of the critical calls
         * @return the critical calls and the others
         */
        private Tally[] offer(int seconds, double load, double critical) {
            Tally[] tallies = {new Tally(), new Tally()};
            long end = now + seconds * SECOND;
            for (long next = next(load); next < end; next = next(load)) {
                leaveUntil(next);
                int rank = random.nextDouble() < critical ? 0 : 1;
                boolean isCached = cached > 0 && random.nextDouble() < cached;
                Tally tally = tallies[isCached ? 0 : rank];
                tally.offered++;
                Reservation call = reserve(rank);
                if (call.isRefused()) {
                    tally.refused++;
                } else if (isCached) {
                    leaving.add(new Leaves(now + SECOND / 200, call, now, tally, End.ANSWERED));
                } else if (cached > 0 && wait(first()) > SECOND) {
                    leaving.add(new Leaves(now + SECOND, call, now, tally, End.OVERLOADED));
                } else {
                    leaving.add(new Leaves(serve(), call, now, tally, End.ANSWERED));
                }
            }
            leaveUntil(end);
            return tallies;
        }

        /** Lets callers call for some seconds, who pause for a second after each answer or rejection; first adds some. */
        private Tally callers(int more, int seconds) {
            Tally tally = new Tally();
            long end = now + seconds * SECOND;
            for (int i = 0; i < more; i++) {
                calling.add(pause(now));
            }
            while (calling.element() < end) {
                leaveUntil(calling.remove());
                Reservation call = reserve(1);
                long leaves = now;
                if (call.isRefused()) {
                    tally.refused++;
                } else {
                    leaves = serve();
                    leaving.add(new Leaves(leaves, call, now, tally, End.ANSWERED));
                }
                calling.add(pause(leaves));
            }
            leaveUntil(end);
            return tally;
        }

        private long pause(long from) {
            return from + (long) (exponential() * SECOND);
        }

        private long next(double load) {
            return now + (long) (exponential() * (1 - cached) / (CAPACITY * load) * SECOND);
        }

        /** The processor that is free first. */
        private int first() {
            int first = 0;
            for (int i = 1; i < processors; i++) {
                first = freeAt[i] < freeAt[first] ? i : first;
            }
            return first;
        }

        private long wait(int processor) {
            return freeAt[processor] - now;
        }

        /** The time at which a call that comes now leaves. */
        private long serve() {
            int first = first();
            freeAt[first] = Math.max(now, freeAt[first]) + (long) (0.02 * exponential() * SECOND);
            return freeAt[first] + (long) ((0.02 + 0.04 * random.nextDouble()) * SECOND);
        }

        private void leaveUntil(long time) {
            while (!leaving.isEmpty() && leaving.peek().at <= time) {
                Leaves next = leaving.remove();
                moveTo(next.at);
                next.tally.inTime += now - next.arrived <= DEADLINE ? 1 : 0;
                next.call.release(next.end);
            }
            moveTo(time);
        }

        private void moveTo(long time) {
            ticker.advanceNanos(time - now);
            now = time;
        }
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3})
    void whenQuietNothingIsRefused(long seed) {
        Tally quiet = new Service(seed).offer(60, 0.6, 0)[1];
        assertThat(quiet.refused).isZero();
        assertThat(quiet.inTime).isGreaterThan(quiet.offered - 100);
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3})
    void inOverloadNearlyAllIsServedThatCanBeAndAfterwardsAll(long seed) {
        Service service = new Service(seed);
        service.offer(10, 0.5, 0);
        Tally overload = service.offer(40, 3, 0)[1];
        assertThat(overload.inTime / (40 * CAPACITY)).isGreaterThan(0.93);
        service.offer(10, 0.5, 0);
        assertThat(service.offer(10, 0.5, 0)[1].refused).isZero();
    }

    /** The refusals of other limits on a call must not hide its own: a limit that refuses nobody has no reason to grow. */
    @ParameterizedTest
    @CsvSource({"1, false", "2, false", "3, false", "1, true", "2, true", "3, true"})
    void afterAQuietTimeItGrowsAgainAloneAndBesideAnotherLimit(long seed, boolean several) {
        Service service = new Service(seed, several);
        service.offer(120, 0.05, 0);
        service.offer(10, 3, 0);
        assertThat(service.offer(20, 3, 0)[1].inTime / (20 * CAPACITY)).isGreaterThan(0.93);
    }

    /** Until the arrivals of twelve times the load are told from a burst, some wait; that costs a second and a half. */
    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3})
    void atTwelveTimesTheLoadTheCriticalCallsAreServed(long seed) {
        Service service = new Service(seed);
        service.offer(10, 0.5, 0.3);
        Tally[] begin = service.offer(2, 12, 0.3 / 12);
        assertThat((double) begin[0].inTime / begin[0].offered).isGreaterThan(0.2);
        Tally[] overload = service.offer(40, 12, 0.3 / 12);
        assertThat((double) overload[0].inTime / overload[0].offered).isGreaterThan(0.994);
        assertThat((overload[0].inTime + overload[1].inTime) / (40 * CAPACITY)).isGreaterThan(0.9);
    }

    /** Calls that a cache answers stay quick, and those that wait for a second time out: the time-outs tell of now. */
    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3})
    void anOverloadOfSomeCallsIsLimitedAlsoWhileOthersAreQuick(long seed) {
        Service service = new Service(seed);
        service.cached = 0.6;
        service.offer(20, 0.5, 0);
        Tally overload = service.offer(40, 1.5, 0)[1];
        assertThat(overload.inTime / (40 * CAPACITY)).isGreaterThan(0.8);
    }

    /** One percent of the calls need a hundred permits. */
    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3})
    void rareCallsOfManyPermitsHideNoOverload(long seed) {
        Service service = new Service(seed);
        service.heavy = 0.01;
        service.offer(20, 0.5, 0);
        Tally overload = service.offer(40, 1.5, 0)[1];
        assertThat(overload.inTime / (40 * CAPACITY)).isGreaterThan(0.8);
    }

    /** Callers who wait for their answers: no more and more calls are in flight, and no more arrive than usual. */
    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3})
    void anOverloadOfCallersWhoWaitForTheirAnswersIsLimited(long seed) {
        Service service = new Service(seed);
        service.callers(300, 30);
        service.processors = PROCESSORS / 4;
        service.callers(0, 10);
        Tally overload = service.callers(0, 40);
        assertThat(overload.inTime / (40 * CAPACITY / 4)).isGreaterThan(0.7);
    }
}
