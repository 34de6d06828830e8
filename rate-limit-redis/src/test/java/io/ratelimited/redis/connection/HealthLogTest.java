package io.ratelimited.redis.connection;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.testing.ManualTicker;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class HealthLogTest {

    private static final Logger LOGGER = Logger.getLogger("io.ratelimited.redis");

    private final List<String> lines = new CopyOnWriteArrayList<>();
    private final Handler handler = new Handler() {
        @Override
        public void publish(LogRecord line) {
            lines.add(line.getMessage());
        }

        @Override
        public void flush() {}

        @Override
        public void close() {}
    };
    private final ManualTicker clock = new ManualTicker();
    private final Health health = new Health(new Threads(clock, Runnable::run, Runnable::run));

    @BeforeEach
    void listen() {
        LOGGER.addHandler(handler);
    }

    @AfterEach
    void stopListening() {
        LOGGER.removeHandler(handler);
    }

    @Test
    void aServerThatComesAndGoesDoesNotFloodTheLog() {
        for (int i = 0; i < 100; i++) {
            health.away(new IOException("late"));
            clock.advance(Duration.ofMillis(50));
            health.back();
            clock.advance(Duration.ofMillis(50));
        }
        assertThat(lines).hasSize(10);
        assertThat(lines.get(9))
                .isEqualTo("Redis decides again; this comes and goes, and is not logged for a minute: ask health");

        clock.advance(Duration.ofMinutes(1));
        health.away(new IOException("late"));
        assertThat(lines).hasSize(11);
        assertThat(lines.get(10)).startsWith("Redis does not decide (java.io.IOException: late)");
    }

    @Test
    void anOutageThatOutlastsThePauseOfTheLogIsLogged() {
        for (int i = 0; i < 10; i++) {
            health.away(new IOException("late"));
            health.back();
        }
        health.away(new IOException("late"));
        health.stillAway(new IOException("gone"));
        assertThat(lines).hasSize(10);

        clock.advance(Duration.ofMinutes(1));
        health.stillAway(new IOException("gone"));
        health.stillAway(new IOException("gone"));
        assertThat(lines).hasSize(11);
        assertThat(lines.get(10)).isEqualTo("Redis does not decide (java.io.IOException: gone)");
    }
}
