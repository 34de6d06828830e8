package io.ratelimited.core.several;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Call;
import io.ratelimited.core.Decision;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.testing.ManualTicker;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * A call has charged a limit elsewhere, and is rejected by one in memory in the next moment. Calls that are rejected in between
 * have violated nothing; those that are rejected by permits that are used in the end have.
 */
class HeldForAMomentTest {

    private final ManualTicker time = new ManualTicker();
    private final RateLimiter memory = limiter("memory");
    private final RateLimiter other = limiter("other");
    private final List<String> violations = new ArrayList<>();
    private Runnable whenCharged = () -> {};
    /** Whether another call charges the far limiter, and gives back, while the next one is under way. */
    private boolean isOvertaken;

    private RateLimiter limiter(String name) {
        return new InMemoryRateLimiter(
                Limit.of(name, Algorithm.TOKEN_BUCKET).rate("1/h").build(), time, 10);
    }

    /** Has one permit, and notes violations as a limit with blocks does. */
    private final FarLimiter far = new FarLimiter(limiter("far"), Runnable::run) {

        @Override
        public Limit limit() {
            return super.limit().toBuilder().block(Duration.ofMinutes(10)).build();
        }

        @Override
        public Reservation reserve(Call call) {
            if (!isOvertaken) {
                return super.reserve(call);
            }
            isOvertaken = false;
            Reservation[] decided = new Reservation[1];
            whenCharged = () -> {
                decided[0] = super.reserve(call);
                assertThat(memory.tryAcquire("key", 1)).isTrue();
            };
            assertThat(AllOf.reserve(claims(this, memory)).isRefused()).isTrue();
            return decided[0];
        }

        @Override
        void decided(Call call, Reservation reservation) {
            if (!reservation.isRefused()) {
                whenCharged.run();
            } else if (call.patienceNanos() <= call.maxWaitNanos()) {
                violations.add("at once");
            }
        }

        @Override
        public Decision refused(Call call, Decision refusal) {
            if (!peek(call.key(), call.permits(), call.patienceNanos()).admitted()) {
                violations.add("noted");
            }
            return refusal;
        }
    };

    private List<Claim> claims(RateLimiter... limiters) {
        return Stream.of(limiters)
                .map(limiter -> Claim.of(limiter, "key", 1, 0))
                .toList();
    }

    private enum Rival {
        ALONE,
        ALONE_ASYNC,
        BESIDE_MEMORY,
        BESIDE_MEMORY_ASYNC
    }

    private boolean isAdmitted(Rival rival) {
        List<Claim> claims = rival.name().startsWith("ALONE") ? claims(far) : claims(far, other);
        Reservation call = rival.name().endsWith("ASYNC")
                ? AllOf.reserveAsync(claims).toCompletableFuture().join()
                : AllOf.reserve(claims);
        return !call.isRefused();
    }

    @ParameterizedTest
    @EnumSource
    void aRejectionByPermitsThatComeBackIsNoViolation(Rival rival) {
        whenCharged = () -> {
            assertThat(isAdmitted(rival)).isFalse();
            assertThat(memory.tryAcquire("key", 1)).isTrue();
        };
        assertThat(AllOf.reserve(claims(far, memory)).isRefused()).isTrue();
        assertThat(violations).isEmpty();
        assertThat(other.peek("key", 1, 0).admitted()).isTrue();
        whenCharged = () -> {};
        assertThat(isAdmitted(rival)).isTrue();
        assertThat(Held.size()).isZero();
    }

    @ParameterizedTest
    @EnumSource
    void aRejectionByPermitsThatAreUsedIsAViolation(Rival rival) {
        whenCharged = () -> {
            assertThat(isAdmitted(rival)).isFalse();
            assertThat(violations).as("before it is known").isEmpty();
        };
        assertThat(AllOf.reserve(claims(far, memory)).isRefused()).isFalse();
        assertThat(violations).containsExactly("noted");
        assertThat(Held.size()).isZero();
    }

    @Test
    void aCallThatIsUnderWayBeforeThePermitsAreHeldViolatesNothingEither() {
        List<Claim> earlier = List.of(Claim.of(far, "other", 1, 0), Claim.of(memory, "other", 1, 0));
        assertThat(AllOf.reserve(earlier).isRefused()).isFalse();
        isOvertaken = true;
        assertThat(isAdmitted(Rival.ALONE)).isFalse();
        assertThat(violations).isEmpty();
        whenCharged = () -> {};
        assertThat(isAdmitted(Rival.ALONE)).isTrue();
        assertThat(isAdmitted(Rival.ALONE)).isFalse();
        assertThat(violations).containsExactly("noted");
        assertThat(Held.size()).isZero();
    }

    /** Calls that hammer an exhausted limit hold nothing, and excuse nobody. */
    @ParameterizedTest
    @EnumSource
    void aRejectionWithoutSuchPermitsIsAViolation(Rival rival) {
        assertThat(far.tryAcquire("key", 1)).isTrue();
        assertThat(isAdmitted(rival)).isFalse();
        assertThat(violations).isNotEmpty();
    }

    @Test
    void permitsOfAnotherKeyExcuseNobody() {
        whenCharged = () -> {
            whenCharged = () -> {};
            assertThat(far.tryAcquire("other", 1)).isTrue();
            assertThat(AllOf.reserve(List.of(Claim.of(far, "other", 1, 0))).isRefused())
                    .isTrue();
            assertThat(violations).isNotEmpty();
            assertThat(memory.tryAcquire("key", 1)).isTrue();
        };
        assertThat(AllOf.reserve(claims(far, memory)).isRefused()).isTrue();
        assertThat(violations).hasSize(1);
    }
}
