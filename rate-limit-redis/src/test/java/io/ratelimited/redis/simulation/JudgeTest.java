package io.ratelimited.redis.simulation;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Decision.Source;
import io.ratelimited.core.Limit;
import io.ratelimited.redis.OnFailure;
import io.ratelimited.redis.simulation.Step.Kind;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** The judge of the simulation finds one permit too many in any window. */
@Tag("once")
class JudgeTest {

    private static final long SECOND = 1_000_000_000;

    private static List<String> violations(Algorithm algorithm, long... secondsOfCalls) {
        Limit limit = algorithm == Algorithm.TOKEN_BUCKET
                ? Limit.of("limit", algorithm).rate("1/h").burst(5).build()
                : Limit.of("limit", algorithm).rate("5/h").build();
        Plan plan = new Plan(1, 1, 1, limit, limit, OnFailure.LOCAL, 0, 1, 400_000, 0, List.of());
        List<Call> calls = new ArrayList<>();
        for (long seconds : secondsOfCalls) {
            Call call = new Call(new Step(seconds * SECOND, Kind.CALL, 0, 0, 1, 0), null, 1, seconds * SECOND, 0);
            call.source = Source.REDIS;
            call.wentAt = seconds * SECOND;
            call.decidedAt = call.wentAt;
            calls.add(call);
        }
        List<String> violations = new ArrayList<>();
        new Judge(plan, violations).windows(calls);
        return violations;
    }

    @ParameterizedTest
    @EnumSource(names = {"TOKEN_BUCKET", "SLIDING_LOG"})
    void onePermitTooManyIsFound(Algorithm algorithm) {
        assertThat(violations(algorithm, 10, 10, 10, 10, 10)).isEmpty();
        assertThat(violations(algorithm, 10, 10, 10, 10, 10, 10)).hasSize(1);
        assertThat(violations(algorithm, 10, 11, 12, 13, 14, 15)).hasSize(1);
    }

    /** An hour later, five more are allowed; of the bucket, one. */
    @Test
    void onlyTheWindowCounts() {
        long later = 10 + 3_601;
        assertThat(violations(Algorithm.SLIDING_LOG, 10, 10, 10, 10, 10, later, later, later, later, later))
                .isEmpty();
        assertThat(violations(Algorithm.SLIDING_LOG, 10, later, later, later, later, later, later))
                .hasSize(1);
        assertThat(violations(Algorithm.TOKEN_BUCKET, 10, 10, 10, 10, 10, later))
                .isEmpty();
        assertThat(violations(Algorithm.TOKEN_BUCKET, 10, 10, 10, 10, 10, later, later))
                .hasSize(1);
    }
}
