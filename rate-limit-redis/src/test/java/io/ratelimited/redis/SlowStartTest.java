package io.ratelimited.redis;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** The first replies of a healthy Redis, which a slow or busy processor has late. */
class SlowStartTest {

    private static final int DELAY_MILLIS = 100;

    @RegisterExtension
    static final RedisServers REDIS = RedisServers.standalone();

    @RegisterExtension
    final LogLines log = new LogLines();

    @Test
    void repliesThatAreLateWhileTheApplicationStartsAreNoOutage() {
        Proxy network = REDIS.closeLater(new Proxy(REDIS.server().port()));
        network.delay(DELAY_MILLIS);
        RedisBackendOptions options =
                RedisBackendOptions.DEFAULTS.expectedNodes(1).timeout(Duration.ofMillis(DELAY_MILLIS / 4));
        RedisBackend backend = RedisBackend.of(RedisServers.settings(network.port()), options);
        RedisHealth started = backend.health();
        backend.close();
        assertThat(log.all()).noneMatch(line -> line.contains("[RL-301]"));
        assertThat(started.state()).isEqualTo(RedisHealth.State.UP);
        assertThat(started.errors()).isZero();
    }
}
