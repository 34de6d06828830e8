package io.ratelimited.redis.simulation;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.stream.LongStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** What {@code docs/cluster.md} promises, on random schedules of calls and faults. */
class SimulationTest {

    @Test
    void twoThousandSchedulesKeepEveryPromise() {
        System.out.println(Simulations.run(LongStream.rangeClosed(1, 2_000)));
    }

    /** {@code -Dsimulation.schedules} and {@code -Dsimulation.first} choose others. */
    @Test
    @Tag("proof")
    void aMillionSchedulesKeepEveryPromise() {
        long first = Long.getLong("simulation.first", 1_000_000);
        System.out.println(
                Simulations.run(LongStream.range(first, first + Long.getLong("simulation.schedules", 1_000_000))));
    }

    @Test
    void theSameSeedShowsTheSame() {
        for (long seed = 1; seed <= 20; seed++) {
            assertThat(Simulations.seen(seed)).isEqualTo(Simulations.seen(seed));
        }
    }
}
