package io.ratelimited.core.internals.memory;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.testing.ManualTicker;
import java.time.Duration;
import java.time.Instant;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class SteadyClockTest {

    private static final boolean MONOTONIC = false;
    private static final boolean CALENDAR = true;

    @ParameterizedTest
    @ValueSource(longs = {0, -1, Long.MAX_VALUE, Long.MIN_VALUE, Long.MAX_VALUE - 500_000_000})
    void aStepBackIsHeldAtTheNewestTime(long base) {
        ManualTicker ticker = new ManualTicker(base, Instant.EPOCH);
        SteadyClock clock = new SteadyClock(ticker);
        ticker.advance(Duration.ofSeconds(1));
        long latest = clock.now(MONOTONIC);
        assertThat(latest).isEqualTo(base + 1_000_000_000);
        ticker.advance(Duration.ofSeconds(-30));
        assertThat(clock.now(MONOTONIC)).isEqualTo(latest);
        ticker.advance(Duration.ofSeconds(31));
        assertThat(clock.now(MONOTONIC)).isEqualTo(latest + 1_000_000_000);
        ticker.advanceNanos(500_000);
        assertThat(clock.now(MONOTONIC) - latest).isEqualTo(1_000_500_000);
        ticker.advanceNanos(-1);
        assertThat(clock.now(MONOTONIC) - latest).isEqualTo(1_000_500_000);
    }

    @Test
    void theTwoClocksAreHeldApart() {
        ManualTicker ticker = new ManualTicker(0, Instant.ofEpochSecond(1_000));
        SteadyClock clock = new SteadyClock(ticker);
        assertThat(clock.now(CALENDAR)).isEqualTo(1_000_000_000_000L);
        ticker.setWallClock(Instant.ofEpochSecond(2_000));
        assertThat(clock.now(CALENDAR)).isEqualTo(2_000_000_000_000L);
        assertThat(clock.now(MONOTONIC)).isZero();
        ticker.setWallClock(Instant.ofEpochSecond(500));
        ticker.advance(Duration.ofSeconds(1));
        assertThat(clock.now(CALENDAR)).isEqualTo(2_000_000_000_000L);
        assertThat(clock.now(MONOTONIC)).isEqualTo(1_000_000_000);
    }

    @Test
    void aWallClockThatStepsBackByMoreThanIsHeldIsFollowed() {
        ManualTicker ticker = new ManualTicker(0, Instant.ofEpochSecond(2_000));
        SteadyClock clock = new SteadyClock(ticker);
        clock.holdCalendar(60_000_000_000L, () -> clock.setBack(clock.steppedBackTo()));
        ticker.setWallClock(Instant.ofEpochSecond(1_940));
        assertThat(clock.now(CALENDAR)).isEqualTo(2_000_000_000_000L);
        assertThat(clock.steppedBackTo()).isEqualTo(SteadyClock.NOT_BACK);
        ticker.setWallClock(Instant.ofEpochSecond(1_939));
        assertThat(clock.now(CALENDAR)).isEqualTo(1_939_000_000_000L);
        ticker.setWallClock(Instant.ofEpochSecond(1_938));
        assertThat(clock.now(CALENDAR)).isEqualTo(1_939_000_000_000L);
    }

    @Test
    void aReadingThatArrivesLateIsNoStepBack() {
        ManualTicker ticker = new ManualTicker(0, Instant.ofEpochSecond(1_000));
        SteadyClock clock = new SteadyClock(ticker);
        clock.holdCalendar(
                60_000_000_000L, () -> assertThat(clock.steppedBackTo()).isEqualTo(SteadyClock.NOT_BACK));
        long early = clock.read(CALENDAR);
        ticker.setWallClock(Instant.ofEpochSecond(2_000));
        clock.now(CALENDAR);
        assertThat(clock.now(CALENDAR, early)).isEqualTo(2_000_000_000_000L);
    }
}
