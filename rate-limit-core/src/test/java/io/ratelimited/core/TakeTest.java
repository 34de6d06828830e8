package io.ratelimited.core;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.Random;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** The short way to a decision decides as the long one. */
final class TakeTest {

    private static final List<String> RATES = List.of("10/s", "3/s", "7/m", "1/d", "1000000000/s", "10000000000/s");

    @ParameterizedTest
    @EnumSource(names = {"TOKEN_BUCKET", "GCRA", "SMOOTH_BURSTY", "LEAKY_BUCKET"})
    void takingAdmitsExactlyWhatReservingAdmits(Algorithm algorithm) {
        for (int seed = 0; seed < 300; seed++) {
            Random random = new Random(seed);
            Limit limit = Limit.of("take", algorithm)
                    .rate(RATES.get(random.nextInt(RATES.size())))
                    .build();
            long now = random.nextLong();
            Terms terms = Terms.of(limit, now);
            Cell taken = terms.fresh(now);
            Cell reserved = terms.fresh(now);
            long period = limit.rate().period().toNanos();
            for (int call = 0; call < 50; call++) {
                now += random.nextInt(4) == 0 ? -random.nextInt(1000) : (long) (random.nextDouble() * period / 5);
                long permits = random.nextInt(10) == 0 ? 1L << random.nextInt(63) : 1 + random.nextInt(3);
                boolean expected = reserved.reserve(permits, now, 0, null) >= 0;
                assertThat(taken.take(permits, now) >= 0)
                        .as("seed %s, call %s: %s permits at %s", seed, call, permits, now)
                        .isEqualTo(expected);
                assertThat(taken.remaining(now)).isEqualTo(reserved.remaining(now));
                assertThat(taken.nanosToFresh(now)).isEqualTo(reserved.nanosToFresh(now));
            }
            taken.retire();
            assertThat(taken.take(1, now)).isEqualTo(Cell.MOVED);
        }
    }
}
