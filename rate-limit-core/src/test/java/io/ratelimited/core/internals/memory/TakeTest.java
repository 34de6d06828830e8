package io.ratelimited.core.internals.memory;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Rate;
import java.time.Duration;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** The short way to a decision decides as the long one. */
final class TakeTest {

    private static final List<String> RATES = List.of("10/s", "3/s", "7/m", "1/d", "1000000000/s", "10000000000/s");
    private static final List<String> RATES_OF_WINDOWS = List.of("1/s", "10/s", "3/s", "7/m", "1/d", "50/10ms");

    private static Limit limit(Algorithm algorithm, Random random) {
        boolean window = algorithm.name().matches("FIXED_WINDOW|SLIDING_.*");
        List<String> rates = window ? RATES_OF_WINDOWS : RATES;
        Rate rate = Rate.parse(rates.get(random.nextInt(rates.size())));
        Limit.Builder limit = Limit.of("take", algorithm).rate(rate);
        if (algorithm == Algorithm.WARM_UP) {
            return limit.warmup(Duration.ofSeconds(random.nextInt(20))).build();
        }
        return algorithm == Algorithm.TOKEN_BUCKET && random.nextInt(3) == 0
                ? limit.burst(1 + random.nextInt(5)).build()
                : limit.build();
    }

    @ParameterizedTest
    @EnumSource(
            mode = EnumSource.Mode.EXCLUDE,
            names = {"CONCURRENCY", "ADAPTIVE", "DEFAULT"})
    void takingAdmitsExactlyWhatReservingAdmits(Algorithm algorithm) {
        for (int seed = 0; seed < 300; seed++) {
            Random random = new Random(seed);
            Limit limit = limit(algorithm, random);
            // Monotonic time wraps; the calendar is that of this century.
            long now = algorithm == Algorithm.FIXED_WINDOW ? random.nextLong() >>> 2 : random.nextLong();
            CellParameters parameters = CellFactory.parameters(limit, now, now);
            Cell taken = parameters.initial(now);
            Cell reserved = parameters.initial(now);
            long period = limit.rate().period().toNanos();
            for (int call = 0; call < 50; call++) {
                now += random.nextInt(4) == 0 ? -random.nextInt(1000) : (long) (random.nextDouble() * period / 5);
                long permits = random.nextInt(10) == 0 ? 1L << random.nextInt(63) : 1 + random.nextInt(3);
                // Now and then a call that waits, so that the next ones find a debt.
                if (random.nextInt(10) == 0) {
                    long debt = reserved.reserve(permits, now, period, null);
                    assertThat(taken.reserve(permits, now, period, null)).isEqualTo(debt);
                }
                boolean expected = reserved.reserve(permits, now, 0, null) >= 0;
                assertThat(taken.take(permits, now) >= 0)
                        .as("seed %s, call %s: %s permits at %s", seed, call, permits, now)
                        .isEqualTo(expected);
                assertThat(taken.remaining(now)).isEqualTo(reserved.remaining(now));
                assertThat(taken.nanosToInitial(now)).isEqualTo(reserved.nanosToInitial(now));
            }
            taken.retire();
            assertThat(taken.take(1, now)).isEqualTo(Cell.MOVED);
            reserved.parameters().replaceBy(CellFactory.parameters(limit, now, now), now);
            assertThat(reserved.take(1, now)).isEqualTo(Cell.MOVED);
        }
    }
}
