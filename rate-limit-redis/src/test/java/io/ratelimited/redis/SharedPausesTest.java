package io.ratelimited.redis;

import static io.ratelimited.redis.RedisProcess.until;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.testing.ManualTicker;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Pauses in Redis, on a clock moved by hand. */
@Tag("slow")
class SharedPausesTest {

    private static final Duration PATIENCE = Duration.ofSeconds(60);
    private static final String KEY = "rl:{~pauses}";

    @RegisterExtension
    static final RedisServers REDIS = RedisServers.standalone();

    private final ManualTicker ticker = RedisServers.ticker();

    private static void publish(RedisBackend backend, String name, Duration lasting) throws Exception {
        backend.pauses().publish(name, lasting).get(60, TimeUnit.SECONDS);
    }

    private static Map<String, Duration> followed(RedisBackend backend) {
        Map<String, Duration> told = new ConcurrentHashMap<>();
        backend.pauses().follow(told::put);
        return told;
    }

    @Test
    void theLaterEndHoldsAndIsToldToEveryNode() throws Exception {
        RedisBackend one = REDIS.backend(ticker);
        Map<String, Duration> told = followed(REDIS.backend(ticker));
        publish(one, "a", Duration.ofSeconds(10));
        until(() -> Duration.ofSeconds(10).equals(told.get("a")), "told", PATIENCE);
        publish(one, "a", Duration.ofSeconds(5));
        publish(one, "b", Duration.ofSeconds(5));
        until(() -> told.containsKey("b"), "told", PATIENCE);
        assertThat(told).containsEntry("a", Duration.ofSeconds(10));
        ticker.advance(Duration.ofSeconds(4));
        publish(one, "a", Duration.ofSeconds(10));
        until(() -> REDIS.server().ask(commands -> commands.zcard(KEY)) == 2, "told", PATIENCE);
        Map<String, Duration> late = followed(REDIS.backend(ticker));
        until(() -> late.size() == 2, "told", PATIENCE);
        assertThat(late).containsEntry("a", Duration.ofSeconds(10)).containsEntry("b", Duration.ofSeconds(1));
    }

    /** Redis counts in microseconds. */
    @Test
    void theShortestPauseIsStored() throws Exception {
        RedisBackend one = REDIS.backend(ticker);
        publish(one, "a", Duration.ofNanos(1));
        List<String> stored = REDIS.server().ask(commands -> commands.zrange(KEY, 0, -1));
        assertThat(stored).containsExactly("a");
    }

    @Test
    void whatIsOverIsRemovedAndTheKeyExpires() throws Exception {
        RedisBackend one = REDIS.backend(ticker);
        publish(one, "a", Duration.ofSeconds(10));
        ticker.advance(Duration.ofSeconds(10));
        publish(one, "b", Duration.ofSeconds(5));
        List<String> left = REDIS.server().ask(commands -> commands.zrange(KEY, 0, -1));
        assertThat(left).containsExactly("b");
        // The padding of the tests' time is an hour.
        long expires = REDIS.server().ask(commands -> commands.pttl(KEY));
        assertThat(expires).isBetween(3_600_000L, 3_605_000L);
    }

    @Test
    void thereAreNoMoreThanAThousand() throws Exception {
        RedisBackend one = REDIS.backend(ticker);
        publish(one, "a", Duration.ofSeconds(10));
        double end = ticker.epochNanos() / 1e3 + 9e6;
        REDIS.server().ask(commands -> {
            for (int i = 0; i < 999; i++) {
                commands.zadd(KEY, end, "other" + i);
            }
            return null;
        });
        assertThatThrownBy(() -> publish(one, "b", Duration.ofSeconds(10)))
                .hasRootCauseMessage("instances share at most 1000 pauses at a time");
        publish(one, "a", Duration.ofSeconds(20));
        Double dropped = REDIS.server().ask(commands -> commands.zscore(KEY, "b"));
        assertThat(dropped).isNull();
        assertThat((double) REDIS.server().ask(commands -> commands.zscore(KEY, "a")))
                .isGreaterThan(end);
        ticker.advance(Duration.ofSeconds(10));
        publish(one, "b", Duration.ofSeconds(10));
        long left = REDIS.server().ask(commands -> commands.zcard(KEY));
        assertThat(left).isEqualTo(2);
    }
}
