package io.ratelimited.core.internals.memory.concurrency;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Call;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.several.AllOf;
import io.ratelimited.core.several.Claim;
import io.ratelimited.core.testing.ManualTicker;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Classes of calls against their naive twin: a list of calls in flight and a list of those that wait. */
class ClassesTest {

    private static final List<String> PRIORITIES = List.of("critical", "normal", "batch");

    private static RateLimiter limiter(Algorithm algorithm, int most, Map<String, Double> shares) {
        return limiter(algorithm, most, 1_000, shares);
    }

    private static RateLimiter limiter(Algorithm algorithm, int most, int seats, Map<String, Double> shares) {
        Limit limit = Limit.of("classes", algorithm)
                .maxConcurrent(most)
                .maxWaiting(seats)
                .priorities(PRIORITIES)
                .shares(shares)
                .build();
        return new InMemoryRateLimiter(limit, new ManualTicker(), 10);
    }

    private static int fill(RateLimiter limiter, int rank) {
        int admitted = 0;
        while (!limiter.reserve(Call.of(null, 1, 0, rank)).isRefused()) {
            admitted++;
        }
        return admitted;
    }

    /** P1 */
    @ParameterizedTest
    @EnumSource(names = {"CONCURRENCY", "ADAPTIVE"})
    void worseClassesLeavePlacesToBetterOnes(Algorithm algorithm) {
        RateLimiter limiter = limiter(algorithm, 20, Map.of());
        assertThat(fill(limiter, 2)).isEqualTo(16);
        assertThat(limiter.peek(Call.of(null, 1, 0, 2)).admitted()).isFalse();
        assertThat(limiter.peek(Call.of(null, 1, 0, 1)).admitted()).isTrue();
        assertThat(fill(limiter, 1)).isEqualTo(2);
        assertThat(fill(limiter, 0)).isEqualTo(2);
    }

    /** P2 */
    @ParameterizedTest
    @EnumSource(names = {"CONCURRENCY", "ADAPTIVE"})
    void aShareKeepsPlacesForAWorseClass(Algorithm algorithm) {
        RateLimiter limiter = limiter(algorithm, 20, Map.of("batch", 0.1));
        assertThat(fill(limiter, 0)).isEqualTo(18);
        assertThat(fill(limiter, 2)).isEqualTo(2);
        assertThat(fill(limiter, 0)).isZero();
    }

    /** P2: the highest class may use more places than were found, but not those of a share. */
    @Test
    void aShareHoldsAgainstAFloodOfTheHighestClassUnderALimitThatWasFound() {
        Classes classes = Classes.of(Limit.of("classes", Algorithm.ADAPTIVE)
                .priorities(PRIORITIES)
                .shares(Map.of("batch", 0.1))
                .build());
        int[] used = new int[Classes.MOST];
        long ceiling = classes.ceiling(0, 1, 20, 33, used);
        assertThat(ceiling).isEqualTo(31);
        used[0] = (int) ceiling;
        assertThat(classes.ceiling(2, 1, 20, 33, used)).isGreaterThan(ceiling);
        assertThat(classes.ceiling(1, 1, 20, 33, used)).isLessThan(20);
    }

    /** P2: 7 % of 100 are 7, though 0.07 * 100 is above 7 in binary. */
    @Test
    void aShareIsRoundedUpToWholePermitsAndNoFurther() {
        RateLimiter limiter = limiter(Algorithm.CONCURRENCY, 100, Map.of("batch", 0.07));
        assertThat(limiter.reserve(Call.of(null, 93, 0, 0)).isRefused()).isFalse();
        for (int percent = 1; percent < 100; percent++) {
            double share = Double.parseDouble("0." + (percent < 10 ? "0" : "") + percent);
            Classes classes = Classes.of(Limit.of("classes", Algorithm.ADAPTIVE)
                    .priorities(PRIORITIES)
                    .shares(Map.of("batch", share))
                    .build());
            for (int places = 1; places <= 200; places++) {
                int kept = (percent * places + 99) / 100;
                assertThat(classes.isWithinShare(2, kept, places, new int[3]))
                        .as("%s %% of %s", percent, places)
                        .isTrue();
                assertThat(classes.isWithinShare(2, kept + 1, places, new int[3]))
                        .as("%s %% of %s", percent, places)
                        .isFalse();
            }
        }
    }

    /** The least of a share is a permit, and the largest number of permits overflows nothing. */
    @Test
    void sharesOfAnySizeCount() {
        Classes classes = Classes.of(Limit.of("classes", Algorithm.CONCURRENCY)
                .maxConcurrent(Integer.MAX_VALUE)
                .priorities(PRIORITIES)
                .shares(Map.of("batch", 1e-12, "normal", 0.99))
                .build());
        assertThat(classes.isWithinShare(2, 1, 20, new int[3])).isTrue();
        assertThat(classes.isWithinShare(2, 2, 20, new int[3])).isFalse();
        assertThat(classes.isWithinShare(1, 2_126_008_811, Integer.MAX_VALUE, new int[3]))
                .isTrue();
        assertThat(classes.isWithinShare(1, 2_126_008_811 + 1, Integer.MAX_VALUE, new int[3]))
                .isFalse();
    }

    /** P3 */
    @Test
    void aSinglePlaceIsForEveryClass() {
        for (int rank = 0; rank < 3; rank++) {
            assertThat(fill(limiter(Algorithm.CONCURRENCY, 1, Map.of("critical", 0.5, "normal", 0.4)), rank))
                    .isEqualTo(1);
        }
    }

    @Test
    void aCallOfNoClassOrOfAnUnknownOneIsOfTheMiddle() {
        for (int rank : new int[] {RateLimiter.NO_RANK, -7, 3, Integer.MAX_VALUE}) {
            RateLimiter limiter = limiter(Algorithm.CONCURRENCY, 20, Map.of());
            assertThat(fill(limiter, rank)).isEqualTo(18);
        }
    }

    /** Places of calls that came before the share do not count as its own, and come back all the same. */
    @Test
    void aCallThatWaitsInAClassThatIsTakenAwayIsStillServed() {
        RateLimiter limiter = limiter(Algorithm.CONCURRENCY, 1, Map.of("batch", 0.5));
        Reservation running = limiter.reserve(Call.of(null, 1, 0, 0));
        CompletableFuture<Boolean> better =
                limiter.reserve(Call.of(null, 1, Long.MAX_VALUE, 0)).awaitAsync();
        CompletableFuture<Boolean> waiting =
                limiter.reserve(Call.of(null, 1, Long.MAX_VALUE, 2)).awaitAsync();
        limiter.update(Limit.of("classes", Algorithm.CONCURRENCY)
                .maxConcurrent(1)
                .priorities(List.of("critical"))
                .build());
        running.release();
        assertThat(better).isCompletedWithValue(true);
        assertThat(waiting).isNotCompleted();
        limiter.update(
                Limit.of("classes", Algorithm.CONCURRENCY).maxConcurrent(2).build());
        assertThat(waiting).isCompletedWithValue(true);
    }

    @Test
    void aShareThatComesLaterCountsCallsFromThenOn() {
        RateLimiter limiter = limiter(Algorithm.CONCURRENCY, 10, Map.of());
        Reservation before = limiter.reserve(Call.of(null, 1, 0, 2));
        limiter.update(limiter.limit().toBuilder().shares(Map.of("batch", 0.2)).build());
        before.release();
        assertThat(fill(limiter, 0)).isEqualTo(8);
        assertThat(fill(limiter, 2)).isEqualTo(2);
    }

    @ParameterizedTest
    @EnumSource(names = {"CONCURRENCY", "ADAPTIVE"})
    void whereAllSeatsAreTakenTheLastOfTheWorstClassGivesItsSeatToABetterOne(Algorithm algorithm) {
        RateLimiter limiter = limiter(algorithm, 1, 2, Map.of());
        Reservation running = limiter.reserve(Call.of(null, 1, 0, 0));
        CompletableFuture<Boolean> first =
                limiter.reserve(Call.of(null, 1, 1_000, 2)).awaitAsync();
        CompletableFuture<Boolean> second =
                limiter.reserve(Call.of(null, 1, 1_000, 2)).awaitAsync();
        assertThat(limiter.peek(Call.of(null, 1, 1_000, 2)).admitted()).isFalse();
        assertThat(limiter.reserve(Call.of(null, 1, 1_000, 2)).isRefused()).isTrue();
        assertThat(limiter.peek(Call.of(null, 1, 0, 0)).admitted()).isFalse();
        assertThat(limiter.reserve(Call.of(null, 1, 0, 0)).isRefused()).isTrue();
        assertThat(second).isNotCompleted();

        assertThat(limiter.peek(Call.of(null, 1, 1_000, 0)).admitted()).isTrue();
        CompletableFuture<Boolean> best =
                limiter.reserve(Call.of(null, 1, 1_000, 0)).awaitAsync();
        assertThat(second).isCompletedWithValue(false);
        assertThat(limiter.waiting()).isEqualTo(2);
        running.release();
        assertThat(best).isCompletedWithValue(true);
        assertThat(first).isNotCompleted();
    }

    @ParameterizedTest
    @EnumSource(names = {"CONCURRENCY", "ADAPTIVE"})
    void ofCallsThatFindTheLastSeatFreeTheBetterOneHasItWhicheverSitsFirst(Algorithm algorithm) {
        RateLimiter limiter = limiter(algorithm, 1, 1, Map.of());
        Reservation running = limiter.reserve(Call.of(null, 1, 0, 0));
        Reservation worse = limiter.reserve(Call.of(null, 1, 1_000, 2));
        Reservation best = limiter.reserve(Call.of(null, 1, 1_000, 0));
        Reservation standing = limiter.reserve(Call.of(null, 1, 1_000, 2));
        CompletableFuture<Boolean> sitting = worse.awaitAsync();
        CompletableFuture<Boolean> turn = best.awaitAsync();
        assertThat(sitting).isCompletedWithValue(false);
        assertThat(turn).isNotCompleted();
        assertThat(standing.awaitAsync()).isCompletedWithValue(false);
        assertThat(limiter.waiting()).isOne();
        running.release();
        assertThat(turn).isCompletedWithValue(true);
    }

    /** Beside other limits the seat is given when their locks are free, since the call that loses it runs code of others. */
    @Test
    @Timeout(30) // a call that woke others under the locks would wait for itself
    void aSeatIsGivenToABetterCallThatHasOtherLimitsToo() {
        RateLimiter limiter = limiter(Algorithm.CONCURRENCY, 1, 1, Map.of());
        RateLimiter other = new InMemoryRateLimiter(
                Limit.of("other", Algorithm.CONCURRENCY).maxConcurrent(5).build(), new ManualTicker(), 10);
        Reservation running = limiter.reserve(Call.of(null, 1, 0, 0));
        CompletableFuture<Boolean> worse =
                limiter.reserve(Call.of(null, 1, 1_000, 2)).awaitAsync();
        CompletableFuture<Boolean> again = worse.thenApply(
                admitted -> !limiter.reserve(Call.of(null, 1, 0, 2)).isRefused());
        CompletableFuture<Boolean> best = AllOf.reserve(
                        List.of(Claim.of(other, null, 1, 0), Claim.of(limiter, null, 1, 1_000, 0)))
                .awaitAsync();
        assertThat(worse).isCompletedWithValue(false);
        assertThat(again).isCompletedWithValue(false);
        running.release();
        assertThat(best).isCompletedWithValue(true);
    }

    /** P2 */
    @ParameterizedTest
    @EnumSource(names = {"CONCURRENCY", "ADAPTIVE"})
    void aCallWithinItsShareIsAdmittedThoughHigherClassesFillTheQueue(Algorithm algorithm) {
        RateLimiter limiter = limiter(algorithm, 10, 2, Map.of("batch", 0.2));
        assertThat(fill(limiter, 0)).isEqualTo(8);
        List<CompletableFuture<Boolean>> higher = List.of(
                limiter.reserve(Call.of(null, 1, 1_000, 0)).awaitAsync(),
                limiter.reserve(Call.of(null, 1, 1_000, 0)).awaitAsync());
        for (long maxWait : new long[] {1_000, 0}) {
            assertThat(limiter.peek(Call.of(null, 1, maxWait, 2)).admitted()).isTrue();
            assertThat(limiter.reserve(Call.of(null, 1, maxWait, 2)).awaitAsync())
                    .isCompletedWithValue(true);
        }
        assertThat(limiter.reserve(Call.of(null, 1, 0, 2)).isRefused()).isTrue();
        assertThat(higher).noneMatch(CompletableFuture::isDone);
    }

    /** P4 */
    @Test
    void aCallHeavierThanItsClassMayEverHaveIsRejectedForGoodAndHoldsUpNobody() {
        RateLimiter limiter = limiter(Algorithm.CONCURRENCY, 10, Map.of("critical", 0.3));
        assertThat(limiter.peek(Call.of(null, 6, 1_000, 2)).never()).isTrue();
        assertThat(limiter.reserve(Call.of(null, 6, 1_000, 2)).decision().never())
                .isTrue();
        assertThat(limiter.reserve(Call.of(null, 5, 1_000, 2)).awaitAsync()).isCompletedWithValue(true);
        assertThat(limiter.reserve(Call.of(null, 11, 1_000, 0)).decision().never())
                .isTrue();
        Reservation adaptive = limiter(Algorithm.ADAPTIVE, 10, Map.of()).reserve(Call.of(null, 10, 0, 2));
        assertThat(adaptive.isRefused()).isFalse();
    }

    @Test
    void callsAreAdmittedAndServedByClassAsTheTwinSays() {
        for (int seed = 0; seed < 300; seed++) {
            new Twin(seed).run();
        }
    }

    private record Member(
            Reservation reservation, CompletableFuture<Boolean> turn, long permits, int rank, int number) {}

    private static final class Twin {

        private final Random random;
        private final String name;
        private final int most;
        private final int seats;
        private final double[] shares;
        private final RateLimiter limiter;
        private final List<Member> flying = new ArrayList<>();
        private final List<Member> queue = new ArrayList<>();
        private int numbers;

        private Twin(int seed) {
            random = new Random(seed);
            name = "seed " + seed;
            most = 3 + random.nextInt(12);
            seats = 1 + random.nextInt(8);
            shares = new double[] {0, 0, random.nextBoolean() ? 0.25 : 0};
            Map<String, Double> stated = shares[2] == 0 ? Map.of() : Map.of("batch", shares[2]);
            limiter = limiter(Algorithm.CONCURRENCY, most, seats, stated);
        }

        private long used(int rank) {
            return flying.stream()
                    .filter(call -> rank < 0 || call.rank == rank)
                    .mapToLong(Member::permits)
                    .sum();
        }

        private long share(int rank) {
            return (long) Math.ceil(shares[rank] * most);
        }

        private boolean isWithinShare(int rank, long permits) {
            return used(rank) + permits <= share(rank);
        }

        private boolean fits(int rank, long permits) {
            long ceiling = most;
            if (!isWithinShare(rank, permits)) {
                ceiling -= rank * (long) Math.ceil(most / 10.0);
                for (int other = 0; other < 3; other++) {
                    ceiling -= other == rank ? 0 : Math.max(0, share(other) - used(other));
                }
            }
            return used(-1) + permits <= Math.max(1, ceiling);
        }

        private long heaviest(int rank) {
            long others = 0;
            for (int other = 0; other < 3; other++) {
                others += other == rank ? 0 : share(other);
            }
            long left = most - rank * (long) Math.ceil(most / 10.0) - others;
            return Math.max(share(rank), Math.max(1, left));
        }

        private void run() {
            for (int step = 0; step < 200; step++) {
                switch (random.nextInt(5)) {
                    case 0, 1 -> arrive(random.nextBoolean() ? 1_000 : 0);
                    case 2, 3 -> {
                        if (!flying.isEmpty()) {
                            flying.remove(random.nextInt(flying.size()))
                                    .reservation
                                    .release();
                            serve();
                        }
                    }
                    default -> {
                        if (!queue.isEmpty()) {
                            queue.remove(random.nextInt(queue.size()))
                                    .reservation
                                    .cancel();
                            serve();
                        }
                    }
                }
                assertThat(flying).as(name + ", step " + step).allMatch(call -> call.turn.isDone());
                assertThat(queue).as(name + ", step " + step).noneMatch(call -> call.turn.isDone());
                assertThat(limiter.peek(null, 1, 0).remaining()).as(name).isEqualTo(Math.max(0, most - used(-1)));
            }
        }

        private void arrive(long maxWait) {
            int rank = random.nextInt(3);
            long permits = 1L + random.nextInt(2);
            boolean withinShare = isWithinShare(rank, permits);
            boolean behind = queue.stream().anyMatch(call -> withinShare ? call.rank == rank : call.rank <= rank);
            boolean goes = !behind && fits(rank, permits);
            boolean never = permits > heaviest(rank);
            Member loser = goes || never || maxWait == 0 || queue.size() < seats ? null : loser(rank);
            boolean waits = !goes && !never && maxWait > 0 && (queue.size() < seats || loser != null);
            Reservation reservation = limiter.reserve(Call.of(null, permits, maxWait, rank));
            assertThat(reservation.isRefused()).as(name).isEqualTo(!goes && !waits);
            assertThat(reservation.decision().never()).as(name).isEqualTo(never);
            if (loser != null) {
                queue.remove(loser);
                assertThat(loser.turn).as(name).isCompletedWithValue(false);
            }
            if (!reservation.isRefused()) {
                Member call = new Member(reservation, reservation.awaitAsync(), permits, rank, numbers++);
                (goes ? flying : queue).add(call);
                serve();
            }
        }

        /** The last of the worst class that waits, if that class is worse. */
        private @Nullable Member loser(int rank) {
            return queue.stream()
                    .filter(call -> call.rank > rank)
                    .max(Comparator.comparingInt(Member::rank).thenComparingInt(Member::number))
                    .orElse(null);
        }

        private void serve() {
            for (Member next = next(); next != null; next = next()) {
                queue.remove(next);
                flying.add(next);
            }
        }

        /** The first of the best class; of another one only if it is within its share, or no better one waits. */
        private @Nullable Member next() {
            boolean behind = false;
            for (int rank = 0; rank < 3; rank++) {
                int own = rank;
                Member head = queue.stream()
                        .filter(call -> call.rank == own)
                        .min(Comparator.comparingInt(Member::number))
                        .orElse(null);
                if (head != null && (!behind || isWithinShare(rank, head.permits))) {
                    if (fits(rank, head.permits)) {
                        return head;
                    }
                    behind = true;
                }
            }
            return null;
        }
    }
}
