package io.ratelimited.redis.simulation;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What {@code docs/engineering/cluster.md} promises, on random schedules of calls and faults. */
@Tag("once")
@Tag("slow")
class SimulationTest {

    @Test
    void schedulesKeepEveryPromise() {
        System.out.println(Simulations.run(LongStream.rangeClosed(1, 100).mapToObj(Plan::small)));
    }

    @Test
    void clustersAndCallersThatSleepAndLongOutagesKeepEveryPromise() {
        System.out.println(Simulations.run(LongStream.rangeClosed(1, 25).mapToObj(WidePlan::of)));
    }

    /** {@code -Dsimulation.wide} chooses how many. */
    @Test
    @Tag("proof")
    void manyOfThemKeepEveryPromise() {
        int count = Integer.getInteger("simulation.wide", 400);
        System.out.println(Simulations.run(LongStream.range(26, 26 + count).mapToObj(WidePlan::of)));
    }

    @Test
    void outagesOneAfterTheOtherKeepEveryPromise() {
        System.out.println(Simulations.run(LongStream.rangeClosed(1, 30).mapToObj(OutagePlan::of)));
    }

    /** {@code -Dsimulation.outages} chooses how many. */
    @Test
    @Tag("proof")
    void manyOutagesOneAfterTheOtherKeepEveryPromise() {
        int count = Integer.getInteger("simulation.outages", 400);
        System.out.println(Simulations.run(LongStream.range(31, 31 + count).mapToObj(OutagePlan::of)));
    }

    @Test
    void lateRepliesOneAfterTheOtherKeepEveryPromise() {
        System.out.println(Simulations.run(LongStream.rangeClosed(1, 30).mapToObj(OutagePlan::lateReplies)));
    }

    /** {@code -Dsimulation.outages} chooses how many. */
    @Test
    @Tag("proof")
    void manyLateRepliesOneAfterTheOtherKeepEveryPromise() {
        int count = Integer.getInteger("simulation.outages", 400);
        System.out.println(Simulations.run(LongStream.range(31, 31 + count).mapToObj(OutagePlan::lateReplies)));
    }

    @Test
    void changesForAllNodesReachAllNodes() {
        System.out.println(Simulations.run(LongStream.rangeClosed(1, 100).mapToObj(FleetPlan::of)));
    }

    /** {@code -Dsimulation.fleet} chooses how many. */
    @Test
    @Tag("proof")
    void manyChangesForAllNodesReachAllNodes() {
        int count = Integer.getInteger("simulation.fleet", 1_200);
        System.out.println(Simulations.run(LongStream.range(101, 101 + count).mapToObj(FleetPlan::of)));
    }

    @Test
    void blocksKeepEveryPromise() {
        System.out.println(Simulations.run(LongStream.rangeClosed(1, 30).mapToObj(BlockPlan::of)));
    }

    /** {@code -Dsimulation.blocks} chooses how many. */
    @Test
    @Tag("proof")
    void manyBlocksKeepEveryPromise() {
        int count = Integer.getInteger("simulation.blocks", 800);
        System.out.println(Simulations.run(LongStream.range(31, 31 + count).mapToObj(BlockPlan::of)));
    }

    /** Four threads ask all the time; callers whom an outage has caught are decided up to 5 ms later. */
    @Test
    void freezesGiveOneBurstMoreAtMost() {
        assertThat(Simulations.admittedInFreezes(3)).isLessThanOrEqualTo(Simulations.mostInFreezes(3));
    }

    @Test
    @Tag("proof")
    void eightFreezesGiveOneBurstMoreAtMost() {
        long admitted = Simulations.admittedInFreezes(8);
        System.out.println("MINTED eight freezes: " + admitted + " permits");
        assertThat(admitted).isLessThanOrEqualTo(Simulations.mostInFreezes(8));
    }

    /** In its first second: nobody has set how many nodes there are. */
    @Test
    void fourNodesThatHaveNotCountedEachOtherAdmitNoMoreThanTheLimitTogether() {
        assertThat(Simulations.admittedByYoungFleet()).isLessThanOrEqualTo(100 + 1_000);
    }

    @Test
    void schedulesChargeWhatCallsHaveCost() {
        System.out.println(Simulations.run(LongStream.rangeClosed(1, 30).mapToObj(Plan::settling)));
    }

    @Test
    void seedsThatHaveShownADefectDoNotShowItAgain() {
        System.out.println(Simulations.run(Simulations.regressions()));
    }

    /** The log loses the time between a permit's leaving the window and the next question. */
    @ParameterizedTest
    @CsvSource({"TOKEN_BUCKET, 0", "GCRA, 0", "FIXED_WINDOW, 0", "SLIDING_LOG, 0", "TOKEN_BUCKET, 0.05"})
    void whatIsAllowedIsAdmitted(Algorithm algorithm, double overshoot) {
        double part = Simulations.admitted(algorithm, overshoot);
        System.out.printf("ADMITTED %s, overshoot %s: %.4f%n", algorithm, overshoot, part);
        assertThat(part).isGreaterThanOrEqualTo(overshoot > 0 ? 0.98 : 0.99);
    }

    /** {@code -Dsimulation.tiny} chooses how many. */
    @Test
    @Tag("proof")
    void tinySchedulesKeepEveryPromise() {
        int count = Integer.getInteger("simulation.tiny", 3_000);
        System.out.println(Simulations.run(LongStream.rangeClosed(1, count).mapToObj(Plan::tiny)));
    }

    /** {@code -Dsimulation.schedules}, {@code -Dsimulation.settling} and {@code -Dsimulation.first} choose others. */
    @Test
    @Tag("proof")
    void manySchedulesKeepEveryPromise() {
        long first = Long.getLong("simulation.first", 101);
        System.out.println(
                Simulations.run(LongStream.range(first, first + Integer.getInteger("simulation.schedules", 1_000))
                        .mapToObj(Plan::small)));
        System.out.println(
                Simulations.run(LongStream.range(first, first + Integer.getInteger("simulation.settling", 400))
                        .mapToObj(Plan::settling)));
    }

    @Test
    void theSameSeedShowsTheSame() {
        for (long seed = 1; seed <= 10; seed++) {
            assertThat(Simulations.seen(seed)).isEqualTo(Simulations.seen(seed));
        }
    }
}
