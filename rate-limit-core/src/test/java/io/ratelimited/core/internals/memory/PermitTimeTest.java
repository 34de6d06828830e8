package io.ratelimited.core.internals.memory;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Rate;
import java.math.BigInteger;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class PermitTimeTest {

    private static final long YEAR = 365L * 86_400_000_000_000L;

    private static long reach(Rate rate) {
        return rate.permits() > rate.period().toNanos() ? 29 * YEAR : 146 * YEAR;
    }

    private static BigInteger exactUnits(Rate rate, long elapsed) {
        BigInteger units = BigInteger.valueOf(rate.permits())
                .multiply(BigInteger.valueOf(Math.max(1, rate.period().toNanos() / rate.permits())));
        BigInteger[] parts = BigInteger.valueOf(elapsed)
                .multiply(units)
                .divideAndRemainder(BigInteger.valueOf(rate.period().toNanos()));
        return parts[1].signum() < 0 ? parts[0].subtract(BigInteger.ONE) : parts[0];
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "1/d",
                "7/m",
                "3/s",
                "1000000/s",
                "300000000/s",
                "666666667/s",
                "999999937/s",
                "1000000000/s",
                "1000000001/s",
                "2000000000/s",
                "7777777777/s",
                "10000000000/s",
                "1/3650d",
                "13/365d",
                "863999999999999/d"
            })
    void timeIsMonotoneNeverBelowTheExactValueAndAtMostOneUnitAbove(String text) {
        Rate rate = Rate.parse(text);
        Random random = new Random(11);
        for (int i = 0; i < 20_000; i++) {
            long base = random.nextLong();
            PermitTime time = new PermitTime(rate, base);
            long elapsed = (long) (Math.pow(random.nextDouble(), 8) * reach(rate));
            elapsed = random.nextInt(10) == 0 ? -elapsed : elapsed;
            BigInteger exact = exactUnits(rate, elapsed);
            BigInteger actual = BigInteger.valueOf(time.at(base + elapsed));
            assertThat(actual.subtract(exact))
                    .as(text + " after " + elapsed)
                    .isBetween(
                            elapsed < 0 ? BigInteger.ONE.negate() : BigInteger.ZERO,
                            elapsed < 0 ? BigInteger.ZERO : BigInteger.ONE);
            assertThat(time.at(base + elapsed + 1)).isGreaterThanOrEqualTo(time.at(base + elapsed));
        }
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "1/d",
                "7/m",
                "3/s",
                "1000000/s",
                "501000000/s",
                "999999937/s",
                "1000000000/s",
                "1000000001/s",
                "10000000000/s"
            })
    void theTimeUntilATargetIsTheExactInverse(String text) {
        Rate rate = Rate.parse(text);
        Random random = new Random(12);
        for (int i = 0; i < 20_000; i++) {
            long base = random.nextLong();
            PermitTime time = new PermitTime(rate, base);
            long now = base + (long) (random.nextDouble() * reach(rate) / 4);
            long target = time.at(now) + (long) (Math.pow(random.nextDouble(), 10) * PermitTime.FAR);
            long wait = time.nanosUntil(target, now);
            assertThat(time.at(now + wait)).as(text).isGreaterThanOrEqualTo(target);
            if (wait > 0) {
                assertThat(time.at(now + wait - 1)).as(text).isLessThan(target);
            }
        }
    }

    @Test
    void aPermitIsAWholeNumberOfUnitsOfOneToTwoNanoseconds() {
        PermitTime third = new PermitTime(Rate.parse("3/s"), 0);
        assertThat(third.cost(1)).isEqualTo(333_333_333);
        assertThat(third.cost(3)).isEqualTo(999_999_999);
        assertThat(third.nanos(third.cost(1))).isEqualTo(333_333_334);
        assertThat(third.nanos(third.cost(3))).isEqualTo(1_000_000_000);
        assertThat(third.permits(third.cost(7) - 1)).isEqualTo(6);
        assertThat(third.permits(-third.cost(2))).isZero();
        assertThat(third.grain()).isZero();
    }

    @Test
    void aboveOnePermitANanosecondAUnitIsAPermit() {
        PermitTime tenth = new PermitTime(Rate.parse("10000000000/s"), 0);
        assertThat(tenth.cost(65_537)).isEqualTo(65_537);
        assertThat(tenth.nanos(65_537)).isEqualTo(6_554);
        assertThat(tenth.grain()).isEqualTo(9);
    }

    /** Above one permit a nanosecond the clock shows more than one unit at a time. */
    @Test
    void theGrainIsWhatPassesBetweenTwoReadingsBeyondAUnit() {
        assertThat(new PermitTime(Rate.parse("999999937/s"), 0).grain()).isZero();
        assertThat(new PermitTime(Rate.parse("1000000000/s"), 0).grain()).isZero();
        assertThat(new PermitTime(Rate.parse("1000000001/s"), 0).grain()).isOne();
        assertThat(new PermitTime(Rate.parse("2000000000/s"), 0).grain()).isOne();
    }

    @Test
    void theMostPermitsThatCostLessThanTheCapCostWhatTheyTake() {
        PermitTime third = new PermitTime(Rate.parse("3/s"), 0);
        long most = PermitTime.FAR / third.cost(1);
        assertThat(third.cost(most)).isEqualTo(most * third.cost(1)).isLessThan(PermitTime.FAR);
        assertThat(third.cost(most + 1)).isEqualTo(PermitTime.FAR);
    }

    @Test
    void aHugeCostOrTargetIsCappedInsteadOfOverflowing() {
        for (String text : new String[] {"1/s", "3/s", "7/m", "1/3650d", "10000000000/s"}) {
            PermitTime time = new PermitTime(Rate.parse(text), Long.MAX_VALUE - 5);
            assertThat(time.cost(Long.MAX_VALUE)).isEqualTo(PermitTime.FAR);
            assertThat(time.nanosUntil(PermitTime.FAR * 3, Long.MAX_VALUE)).isPositive();
        }
    }
}
