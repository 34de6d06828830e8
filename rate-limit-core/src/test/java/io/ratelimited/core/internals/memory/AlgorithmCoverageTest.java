package io.ratelimited.core.internals.memory;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** Tests that list their limits themselves leave no algorithm out, also not one that comes later. */
class AlgorithmCoverageTest {

    private static void assertNamesAll(Stream<Limit> limits) {
        assertThat(limits.map(Limit::algorithm).distinct())
                .containsExactlyInAnyOrder(Algorithm.all().stream()
                        .filter(algorithm -> !algorithm.countsCallsInFlight())
                        .toArray(Algorithm[]::new));
    }

    @Test
    void everyAlgorithmIsComparedWithItsTwin() {
        assertNamesAll(TwinTest.limits().map(TwinTest.Subject::limit));
    }

    @Test
    void everyAlgorithmKeepsTheLaws() {
        assertNamesAll(LawsTest.limits());
    }

    @Test
    void theCellsOfEveryAlgorithmHandOn() {
        assertNamesAll(CellTest.limits());
    }

    @Test
    void everyAlgorithmHasAnExactTotalUnderThreads() {
        assertNamesAll(Stream.concat(ExactTotalsTest.counting(), ExactTotalsTest.pacing()));
    }
}
