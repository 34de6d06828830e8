package io.ratelimited.redis;

import static io.ratelimited.redis.RedisProcess.until;
import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.testing.ManualTicker;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Instances with different settings learn of each other, on a clock moved by hand. */
class SharedSettingsTest {

    private static final String HEARD = "rl:{~nodes}:~settings";
    private static final String TEXTS = "rl:{~nodes}:~settings-texts";

    @RegisterExtension
    static final RedisServers REDIS = RedisServers.standalone();

    private final ManualTicker ticker = RedisServers.ticker();

    /** An instance that knows what others have once it has come by. */
    private final class Instance {

        private final RedisBackend backend;
        private final AtomicReference<String> own = new AtomicReference<>();
        private final AtomicInteger times = new AtomicInteger();
        private volatile List<String> others = List.of();

        private Instance(String settings) {
            own.set(settings);
            backend = REDIS.backend(
                    REDIS.connector(),
                    RedisBackendOptions.DEFAULTS.ticker(ticker).timeout(Duration.ofSeconds(20)),
                    time -> ticker.epochNanos() / 1000 + RedisServers.OUTLIVES);
            backend.settings().share(own::get, told -> {
                others = told;
                times.incrementAndGet();
            });
        }

        private List<String> comesBy() throws Exception {
            int before = times.get();
            backend.settings().exchange().get(60, TimeUnit.SECONDS);
            until(() -> times.get() > before, "told", Duration.ofSeconds(60));
            return others;
        }
    }

    @Test
    void equalSettingsAreSharedOnceAndSaidToNobody() throws Exception {
        Instance one = new Instance("a");
        Instance two = new Instance("a");
        one.comesBy();
        assertThat(two.comesBy()).isEmpty();
        assertThat(one.comesBy()).isEmpty();
        long texts = REDIS.server().ask(commands -> commands.hlen(TEXTS));
        assertThat(texts).isEqualTo(1);
    }

    @Test
    void differentSettingsAreKnownToEachUntilTheLastInstanceHasLeft() throws Exception {
        Instance oldOne = new Instance("old");
        Instance oldTwo = new Instance("old");
        oldOne.comesBy();
        oldTwo.comesBy();
        Instance newOne = new Instance("new");
        assertThat(newOne.comesBy()).containsExactly("old");
        assertThat(oldOne.comesBy()).containsExactly("new");
        assertThat(oldTwo.comesBy()).containsExactly("new");

        oldOne.backend.close(); // the other stays
        ticker.advance(Duration.ofSeconds(8));
        oldTwo.comesBy();
        assertThat(newOne.comesBy()).containsExactly("old");
        ticker.advance(Duration.ofSeconds(8));
        assertThat(newOne.comesBy()).containsExactly("old");

        oldTwo.backend.close();
        ticker.advance(Duration.ofSeconds(8));
        assertThat(newOne.comesBy()).isEmpty();
        List<String> left = REDIS.server().ask(commands -> commands.hvals(TEXTS));
        assertThat(left).containsExactly("new");
    }

    @Test
    void anInstanceThatIsConfiguredAnewIsKnownByItsNewSettings() throws Exception {
        Instance one = new Instance("a");
        Instance two = new Instance("a");
        one.comesBy();
        two.own.set("b");
        assertThat(two.comesBy()).containsExactly("a");
        assertThat(one.comesBy()).containsExactly("b");
        one.own.set("b");
        one.comesBy();
        ticker.advance(Duration.ofSeconds(12));
        assertThat(two.comesBy()).isEmpty();
    }

    @Test
    void aRedisThatHasLostItsDataEndsNoDifference() throws Exception {
        Instance one = new Instance("a");
        Instance two = new Instance("b");
        one.comesBy();
        assertThat(two.comesBy()).containsExactly("a");
        assertThat(one.comesBy()).containsExactly("b");
        REDIS.server().ask(commands -> commands.del(HEARD, TEXTS));
        assertThat(one.comesBy()).containsExactly("b");
        assertThat(two.comesBy()).containsExactly("a");
        assertThat(one.comesBy()).containsExactly("b");
        long texts = REDIS.server().ask(commands -> commands.hlen(TEXTS));
        assertThat(texts).isEqualTo(2);
    }

    @Test
    void anInstanceHearsOfNoMoreThanTwentyOthers() throws Exception {
        Instance one = new Instance("a");
        double now = ticker.epochNanos() / 1e3;
        REDIS.server().ask(commands -> {
            for (int i = 0; i < 30; i++) {
                commands.zadd(HEARD, now, "digest" + i);
                commands.hset(TEXTS, "digest" + i, "text" + i);
            }
            return null;
        });
        assertThat(one.comesBy()).hasSize(20).allMatch(text -> text.startsWith("text"));
        // The padding of the tests' time is an hour.
        long expires = REDIS.server().ask(commands -> commands.pttl(TEXTS));
        assertThat(expires).isBetween(3_600_000L, 3_612_000L);
    }
}
