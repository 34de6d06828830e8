package io.ratelimited.core.internals.memory;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Call;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.testing.ManualTicker;
import java.lang.reflect.Method;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.jetbrains.kotlinx.lincheck.Actor;
import org.jetbrains.kotlinx.lincheck.execution.ExecutionScenario;
import org.jetbrains.lincheck.datastructures.IntGen;
import org.jetbrains.lincheck.datastructures.ModelCheckingOptions;
import org.jetbrains.lincheck.datastructures.Operation;
import org.jetbrains.lincheck.datastructures.Param;
import org.jetbrains.lincheck.datastructures.ThreadIdGen;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Many more histories, and every interleaving for every kind of them. */
@Tag("proof")
final class LinearizabilityProofTest extends LinearizabilityTest {

    @Override
    int histories() {
        return 2 * Integer.getInteger("lincheck.scale", 1);
    }

    static Stream<Class<?>> interleaved() {
        return kinds();
    }

    /** P2: the permits of a share are either free for it or in use, at each step of a call of its class. */
    @Test
    void aCallFindsItsPermitsWhileOneOfAShareComesAndGoes() throws ReflectiveOperationException {
        Method take = SharesHistory.class.getMethod("take", int.class, int.class);
        Actor before = new Actor(take, List.of(0, 0));
        Actor takeBatch = new Actor(take, List.of(1, 1));
        Actor endBatch = new Actor(SharesHistory.class.getMethod("end", int.class), List.of(1));
        Actor ask = new Actor(SharesHistory.class.getMethod("ask", int.class), List.of(0));
        Actor second = new Actor(take, List.of(2, 0));
        new ModelCheckingOptions()
                .iterations(0)
                .invocationsPerIteration(40)
                .addCustomScenario(new ExecutionScenario(
                        List.of(before), List.of(List.of(takeBatch, endBatch), List.of(ask, second)), List.of(), null))
                .check(SharesHistory.class);
    }

    /** Two of four permits are for one class, so that two of each class never wait. */
    public static class SharesHistory {

        private final InMemoryRateLimiter limiter = new InMemoryRateLimiter(
                Limit.of("a", Algorithm.CONCURRENCY)
                        .maxConcurrent(4)
                        .priorities(List.of("critical", "batch"))
                        .shares(Map.of("batch", 0.5))
                        .build(),
                new ManualTicker(),
                1);
        private final @Nullable Reservation[] mine = new Reservation[8];

        @Operation
        public boolean take(
                @Param(gen = ThreadIdGen.class) int thread, @Param(gen = IntGen.class, conf = "0:1") int rank) {
            if (mine[thread] == null) {
                mine[thread] = limiter.reserve(Call.of(null, 1, TimeUnit.HOURS.toNanos(1), rank));
            }
            return mine[thread].awaitAsync().getNow(false);
        }

        @Operation
        public boolean ask(@Param(gen = IntGen.class, conf = "0:1") int rank) {
            return limiter.peek(Call.of(null, 1, 0, rank)).admitted();
        }

        @Operation
        public void end(@Param(gen = ThreadIdGen.class) int thread) {
            if (mine[thread] != null) {
                mine[thread].cancel();
                mine[thread] = null;
            }
        }
    }
}
