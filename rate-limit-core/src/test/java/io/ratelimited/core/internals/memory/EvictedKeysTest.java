package io.ratelimited.core.internals.memory;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.core.internals.memory.block.SaltedHash;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.Random;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/** What evicted keys have spent (E1 to E3), with so few places that all keys share them. */
class EvictedKeysTest {

    private static final int KEYS = 12;
    /** What a warm-up never exceeds. A delay makes a limiter warmer or colder, so its exact costs are no bound. */
    private static final Limit PACING = Limit.of("evicted", Algorithm.WARM_UP)
            .rate("10/s")
            .warmup(Duration.ZERO)
            .build();

    private static Limit limit(Algorithm algorithm) {
        Limit.Builder limit = Limit.of("evicted", algorithm).rate("10/s");
        return (algorithm == Algorithm.WARM_UP ? limit.warmup(Duration.ofSeconds(1)) : limit).build();
    }

    private static Cell continued(EvictedKeys evicted, CellParameters parameters, Object key, long now) {
        Cell cell = evicted.continued(key);
        Cell fresh = parameters.initial(now);
        if (cell == null) {
            return fresh;
        }
        cell.absorb(fresh);
        return cell;
    }

    /** E1, E2: whatever is granted, the naive twin of the key, which forgets nothing, grants too, and no later. */
    @ParameterizedTest
    @EnumSource(
            mode = EnumSource.Mode.EXCLUDE,
            names = {"CONCURRENCY", "ADAPTIVE", "DEFAULT"})
    void noKeyIsGrantedMoreThanItsTwinHoweverOftenItIsEvicted(Algorithm algorithm) {
        int granted = 0;
        for (int seed = 0; seed < Integer.getInteger("schedules", 15) * 20; seed++) {
            Random random = new Random(seed);
            Limit limit = limit(algorithm);
            CellParameters parameters = CellFactory.parameters(limit, 0, 0);
            EvictedKeys evicted =
                    new EvictedKeys(1 + random.nextInt(3), 1 + random.nextInt(8), new SaltedHash(seed, 1));
            Map<Integer, Cell> cells = new HashMap<>();
            Twin[] twins = new Twin[KEYS];
            for (int key = 0; key < KEYS; key++) {
                twins[key] = Twin.of(algorithm == Algorithm.WARM_UP ? PACING : limit, 0);
            }
            long now = 0;
            for (int step = 0; step < 300; step++) {
                now += random.nextInt(3) == 0 ? random.nextInt(200_000_000) : 0;
                int key = random.nextInt(KEYS);
                if (random.nextInt(3) == 0) {
                    evict(evicted, cells.remove(key), key, now);
                    continue;
                }
                Cell cell = cells.get(key);
                if (cell == null) {
                    cell = continued(evicted, parameters, key, now);
                    cells.put(key, cell);
                }
                long permits = 1L + random.nextInt(4);
                long maxWait = random.nextInt(4) == 0 ? 300_000_000 : 0;
                long outcome = cell.reserve(permits, now, maxWait, null);
                if (outcome >= 0) {
                    granted++;
                    assertThat(twins[key].decide(permits, now, maxWait))
                            .as(algorithm + ", seed " + seed + ", step " + step)
                            .isBetween(0L, outcome + 1);
                    twins[key].grant(permits, now);
                }
            }
            long end = now;
            evicted.forget(cell -> cell.nanosToInitial(end) == 0);
        }
        assertThat(granted).isGreaterThan(1_000);
    }

    private static void evict(EvictedKeys evicted, @Nullable Cell cell, Object key, long now) {
        if (cell != null) {
            Cell last = cell.retire();
            if (last.nanosToInitial(now) > 0) {
                evicted.add(key, last, now);
            }
        }
    }

    /** E1: the numbers of the shared cell are slower, and it is full sooner all the same. */
    @ParameterizedTest
    @CsvSource({"false, 1", "true, 1", "false, 60", "true, 60"})
    void aKeyWithALargerBurstIsCoveredUntilItWouldBeFull(boolean changedBefore, long usedOfSlower) {
        CellParameters slower = CellFactory.parameters(
                Limit.of("evicted", Algorithm.TOKEN_BUCKET).rate("60/m").build(), 0, 0);
        CellParameters larger = CellFactory.parameters(
                Limit.of("evicted", Algorithm.TOKEN_BUCKET)
                        .rate("500/m")
                        .burst(1_000)
                        .build(),
                0,
                0);
        if (changedBefore) {
            larger.inheritOfOneCell(slower, 0);
        }
        for (int key = 0; key < 3; key++) {
            for (int second = 0; second < 120; second++) {
                long now = Duration.ofSeconds(second).toNanos();
                EvictedKeys evicted = new EvictedKeys(1, 2, new SaltedHash());
                Cell own = larger.full(0);
                assertThat(own.take(940, 0)).isZero();
                Cell kept = own.copy();
                for (int added = 0; added < 3; added++) {
                    Cell other = slower.full(0);
                    assertThat(other.take(usedOfSlower, 0)).isZero();
                    evicted.add(added == key ? "large" : "key" + added, added == key ? own.retire() : other, 0);
                }
                evicted.forget(cell -> cell.nanosToInitial(now) == 0);
                Cell again = evicted.continued("large");
                assertThat(again == null ? 1_000 : larger.follow(again, now).remaining(now))
                        .as("key %s after %s seconds", key, second)
                        .isLessThanOrEqualTo(kept.remaining(now));
            }
        }
    }

    /** A shared cell is dropped when no key that it covers has spent anything any more. */
    @Test
    void aCellThatIsKeptForAKeyWithALargerBurstIsDroppedThen() {
        CellParameters slower = CellFactory.parameters(
                Limit.of("evicted", Algorithm.TOKEN_BUCKET).rate("60/m").build(), 0, 0);
        CellParameters larger = CellFactory.parameters(
                Limit.of("evicted", Algorithm.TOKEN_BUCKET)
                        .rate("500/m")
                        .burst(1_000)
                        .build(),
                0,
                0);
        EvictedKeys evicted = new EvictedKeys(1, 1, new SaltedHash());
        Cell own = larger.full(0);
        assertThat(own.take(940, 0)).isZero();
        Cell other = slower.full(0);
        assertThat(other.take(1, 0)).isZero();
        evicted.add("large", own.retire(), 0);
        evicted.add("key", other.retire(), 0);
        long full = Duration.ofSeconds(113).toNanos();
        evicted.forget(cell -> cell.nanosToInitial(full) == 0);
        assertThat(evicted.continued("large")).isNull();
    }

    /** E3: of many keys that share one cell, each has spent 3 of 10; another one begins with 7 left. */
    @ParameterizedTest
    @EnumSource(names = {"TOKEN_BUCKET", "GCRA", "FIXED_WINDOW", "SLIDING_WINDOW", "SLIDING_LOG"})
    void whatKeysOfOnePlaceHaveSpentIsNotAdded(Algorithm algorithm) {
        CellParameters parameters = CellFactory.parameters(limit(algorithm), 0, 0);
        EvictedKeys evicted = new EvictedKeys(1, 1, new SaltedHash());
        // In another slot: the sum over slots counts, not the sum of the largest.
        long later = algorithm == Algorithm.SLIDING_WINDOW || algorithm == Algorithm.SLIDING_LOG ? 150_000_000 : 0;
        for (int key = 0; key < 64; key++) {
            Cell cell = parameters.initial(0);
            assertThat(cell.take(3, key % 2 == 0 ? 0 : later)).isZero();
            evicted.add("key" + key, cell.retire(), later);
        }
        assertThat(continued(evicted, parameters, "another", later).remaining(later))
                .isEqualTo(7);
    }

    @ParameterizedTest
    @EnumSource(
            mode = EnumSource.Mode.EXCLUDE,
            names = {"CONCURRENCY", "ADAPTIVE", "DEFAULT"})
    void placesAreEmptyAgainWhenTheirCellsAreFresh(Algorithm algorithm) {
        CellParameters parameters = CellFactory.parameters(limit(algorithm), 0, 0);
        EvictedKeys evicted = new EvictedKeys(1, 1, new SaltedHash());
        Cell cell = parameters.initial(0);
        assertThat(cell.take(1, 0)).isZero();
        evicted.add("key", cell.retire(), 0);
        long whole = Duration.ofHours(1).toNanos();
        evicted.forget(each -> each.nanosToInitial(0) == 0);
        assertThat(evicted.continued("key")).isNotNull();
        evicted.forget(each -> each.nanosToInitial(whole) == 0);
        assertThat(evicted.continued("key")).isNull();
    }
}
