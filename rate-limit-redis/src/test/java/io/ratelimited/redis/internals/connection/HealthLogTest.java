package io.ratelimited.redis.internals.connection;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.redis.LogLines;
import java.io.IOException;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.logging.Level;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

class HealthLogTest {

    @RegisterExtension
    final LogLines log = new LogLines();

    private final ManualTicker clock = new ManualTicker();
    private final Health health = new Health(new Threads(clock, Runnable::run, Runnable::run));

    @Test
    void aServerThatComesAndGoesDoesNotFloodTheLog() {
        for (int i = 0; i < 100; i++) {
            health.away(new IOException("late"));
            clock.advance(Duration.ofMillis(50));
            health.back();
            clock.advance(Duration.ofMillis(50));
        }
        assertThat(log.all()).hasSize(10);
        assertThat(log.all().get(9))
                .isEqualTo(
                        "Redis is available again; this changes often, so it is not logged for a minute: see the health endpoint");

        clock.advance(Duration.ofMinutes(1));
        health.away(new IOException("late"));
        assertThat(log.all()).hasSize(11);
        assertThat(log.all().get(10)).startsWith("Redis is unavailable (java.io.IOException: late)");
    }

    @Test
    void theFirstConnectionIsNoWarning() {
        health.away(new IOException("absent"));
        health.back();
        health.away(new IOException("gone"));
        health.back();
        assertThat(log.levels()).containsExactly(Level.WARNING, Level.INFO, Level.WARNING, Level.WARNING);
        assertThat(log.all().get(1)).isEqualTo("Redis is available: connected");
    }

    @Test
    void anOutageThatOutlastsThePauseOfTheLogIsLoggedWithItsBeginning() {
        for (int i = 0; i < 10; i++) {
            health.away(new IOException("late"));
            health.back();
        }
        health.describeShare(() -> ": local admits 1/2 of each limit");
        clock.advance(Duration.ofMillis(1500));
        health.away(new IOException("late"));
        Instant began = health.since();
        health.stillAway(new IOException("gone"));
        assertThat(log.all()).hasSize(10);

        clock.advance(Duration.ofMinutes(1));
        health.stillAway(new IOException("gone"));
        health.stillAway(new IOException("gone"));
        assertThat(log.all()).hasSize(11);
        assertThat(log.all().get(10))
                .isEqualTo("Redis has been unavailable since " + began.truncatedTo(ChronoUnit.SECONDS)
                        + " (java.io.IOException: gone). The on-failure policy applies: local admits 1/2 of each limit."
                        + " Check the connection. [RL-301]");
    }
}
