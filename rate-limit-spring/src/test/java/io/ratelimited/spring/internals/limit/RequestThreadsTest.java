package io.ratelimited.spring.internals.limit;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.spring.internals.limit.Sleeper.Standing;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** Which calls may sleep in the threads that serve requests. */
class RequestThreadsTest {

    private final RequestThreads threads = new RequestThreads(16);
    private final Set<Sleeper> displaced = new HashSet<>();

    private static Sleeper caller(Object... callers) {
        return new Sleeper(List.of(callers), List.of());
    }

    private Sleeper ranked(Object queue, int rank, Object... callers) {
        Sleeper sleeper = new Sleeper(List.of(callers), List.of(new Standing(queue, rank)));
        sleeper.whenDisplaced(() -> displaced.add(sleeper));
        return sleeper;
    }

    private void enter(Sleeper... sleepers) {
        for (Sleeper sleeper : sleepers) {
            assertThat(threads.mayEnter(0, sleeper)).isTrue();
            assertThat(threads.tryEnter(0, sleeper)).isTrue();
        }
    }

    private void cannotEnter(Sleeper sleeper) {
        assertThat(threads.mayEnter(0, sleeper)).isFalse();
        assertThat(threads.tryEnter(0, sleeper)).isFalse();
    }

    @Test
    void oneCallerOfALimitWithKeysTakesHalfOfTheThreadsThatMaySleep() {
        Sleeper last = caller("attacker");
        enter(caller("attacker"), caller("attacker"), caller("attacker"), last);
        cannotEnter(caller("attacker"));
        cannotEnter(caller("other", "attacker"));
        assertThat(threads.isRoomy()).isFalse();
        enter(caller("other"), caller("other"), caller("other"), caller("other"));
        cannotEnter(caller("third"));
        threads.leave(last);
        enter(caller("attacker"));
    }

    @Test
    void callsThatSleepCountWhereThereAreFewerThreads() {
        enter(caller(), caller(), caller(), caller());
        RequestThreads fewer = threads.orFewer(new RequestThreads(8));
        assertThat(fewer.tryEnter(0, caller())).isFalse();
        assertThat(fewer.half()).isEqualTo(4);
        assertThat(threads.orFewer(new RequestThreads(32))).isSameAs(threads);
    }

    @Test
    void aCallTakesThePlaceOfTheLastOneOfTheLowestPriority() {
        Sleeper last = ranked("limit", 2);
        Sleeper earlier = ranked("limit", 2);
        enter(ranked("limit", 0), ranked("limit", 1), earlier, last, ranked("limit", 1), caller(), caller(), caller());
        cannotEnter(ranked("limit", 2));
        cannotEnter(ranked("another", 0));
        cannotEnter(caller());
        enter(ranked("limit", 0));
        assertThat(displaced).containsExactly(last);
        threads.leave(last); // its place is another's now
        cannotEnter(ranked("limit", 2));
        enter(ranked("limit", 0));
        assertThat(displaced).containsExactlyInAnyOrder(last, earlier);
    }

    @Test
    void aCallWhoseCallerHasItsShareTakesThePlaceOfOneOfTheSameCaller() {
        Sleeper own = ranked("limit", 1, "ann");
        Sleeper foreign = ranked("limit", 1, "bob");
        enter(own, ranked("limit", 0, "ann"), ranked("limit", 0, "ann"), ranked("limit", 0, "ann"), foreign);
        enter(ranked("limit", 0, "ann"));
        assertThat(displaced).containsExactly(own);
        cannotEnter(ranked("limit", 0, "ann"));
    }

    @Test
    void nobodyTakesAPlaceWhileOneIsFree() {
        for (int i = 0; i < 8; i++) {
            enter(ranked("limit", 8 - i));
        }
        assertThat(displaced).isEmpty();
    }

    @Test
    void whereThereAreAsManyThreadsAsNeededEveryCallSleeps() {
        for (int i = 0; i < 1000; i++) {
            assertThat(RequestThreads.UNBOUNDED.isRoomy()).isTrue();
            assertThat(RequestThreads.UNBOUNDED.tryEnter(0, caller("attacker"))).isTrue();
        }
    }

    /** Any calls in any order: nobody takes more than his share, the higher priority stays, and all places come back. */
    @Test
    void noOrderOfCallsTakesMoreThanHalfOfTheThreads() {
        for (int seed = 0; seed < 300; seed++) {
            Random random = new Random(seed);
            RequestThreads some = new RequestThreads(2 + random.nextInt(12));
            List<Sleeper> asleep = new ArrayList<>();
            for (int step = 0; step < 200; step++) {
                if (!asleep.isEmpty() && random.nextInt(3) == 0) {
                    some.leave(asleep.remove(random.nextInt(asleep.size())));
                } else {
                    Sleeper next = random.nextBoolean()
                            ? ranked("limit" + random.nextInt(2), random.nextInt(3), "key" + random.nextInt(3))
                            : caller("key" + random.nextInt(3));
                    int before = asleep.size();
                    boolean entered = some.tryEnter(0, next);
                    asleep.removeIf(displaced::contains);
                    if (entered) {
                        asleep.add(next);
                        assertThat(asleep.size()).as("seed %d", seed).isGreaterThanOrEqualTo(before);
                    }
                }
                assertThat(asleep.size()).as("seed %d", seed).isLessThanOrEqualTo(some.half());
                for (int key = 0; key < 3; key++) {
                    String caller = "key" + key;
                    assertThat(asleep.stream().filter(one -> one.callers().contains(caller)))
                            .as("seed %d", seed)
                            .hasSizeLessThanOrEqualTo(some.half() - some.half() / 2);
                }
            }
            asleep.forEach(some::leave);
            assertThat(some.isRoomy()).isTrue();
            for (int i = 0; i < some.half(); i++) {
                assertThat(some.tryEnter(0, caller("key" + i)))
                        .as("seed %d", seed)
                        .isTrue();
            }
        }
    }
}
