package io.ratelimited.core.internals.memory;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.core.internals.memory.Cell.Grant;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** How many entries a log has. */
class SlidingLogEntriesTest {

    private static SlidingLog log(String rate) {
        Limit limit = Limit.of("log", Algorithm.SLIDING_LOG).rate(rate).build();
        return (SlidingLog) CellFactory.parameters(limit, 0, 0).initial(0);
    }

    /** At no time is nothing in flight, so that the newest entry always has permits. */
    @ParameterizedTest
    @ValueSource(ints = {1, 2, 4})
    void callsThatCostNothingLeaveNoEntries(int inFlight) {
        SlidingLog log = log("5/d");
        Deque<Grant> calls = new ArrayDeque<>();
        for (int i = 1; i <= 10_000; i++) {
            Grant call = new Grant(1);
            assertThat(log.reserve(1, i, 0, call)).isZero();
            calls.add(call);
            if (calls.size() > inFlight) {
                assertThat(log.giveBack(calls.remove(), 1, i)).isTrue();
            }
        }
        assertThat(log.capacity()).isLessThanOrEqualTo(32);
        assertThat(log.remaining(10_000)).isEqualTo(5 - inFlight);
        calls.forEach(call -> log.giveBack(call, 1, 10_000));
        assertThat(log.remaining(10_000)).isEqualTo(5);
        assertThat(log.copy().remaining(10_000)).isEqualTo(5);
    }

    /** Whatever is given back in whatever order, the log counts as a list of all calls does. */
    @Test
    void aLogWithoutEmptyEntriesDecidesAsOneOfAllCalls() {
        for (int seed = 0; seed < 300; seed++) {
            Random random = new Random(seed);
            SlidingLog log = log("20/s");
            List<Grant> calls = new ArrayList<>();
            List<long[]> naive = new ArrayList<>();
            long now = 0;
            for (int step = 0; step < 300; step++) {
                now += random.nextInt(30_000_000);
                long at = now;
                long used = naive.stream()
                        .filter(entry -> at - entry[0] < 1_000_000_000L)
                        .mapToLong(entry -> entry[1])
                        .sum();
                assertThat(log.remaining(now))
                        .as("seed %d, step %d", seed, step)
                        .isEqualTo(Math.max(0, 20 - used));
                if (random.nextInt(3) > 0 || calls.isEmpty()) {
                    Grant call = new Grant(1 + random.nextInt(3));
                    if (log.reserve(call.permits(), now, 0, call) == 0) {
                        calls.add(call);
                        naive.add(new long[] {now, call.permits()});
                    }
                } else {
                    int index = random.nextInt(calls.size());
                    Grant call = calls.remove(index);
                    log.giveBack(call, call.permits(), now);
                    naive.remove(index);
                }
                if (random.nextInt(20) == 0) {
                    log = (SlidingLog) log.copy();
                }
            }
        }
    }
}
