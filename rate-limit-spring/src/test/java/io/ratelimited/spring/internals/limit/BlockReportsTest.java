package io.ratelimited.spring.internals.limit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.tuple;

import io.ratelimited.core.CanonicalKey;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.CapturedLog;
import io.ratelimited.spring.ContextRunner;
import io.ratelimited.spring.LimitChange;
import io.ratelimited.spring.RateLimitBlockedEvent;
import io.ratelimited.spring.TestLimits;
import io.ratelimited.spring.internals.text.KeyMask;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import jdk.jfr.Recording;
import jdk.jfr.consumer.RecordingFile;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.springframework.context.event.EventListener;

/** Who hears of a block that begins. */
@ExtendWith(CapturedLog.Capture.class)
class BlockReportsTest {

    private final ManualTicker ticker = new ManualTicker();
    private final ContextRunner runner = ContextRunner.limited(ticker)
            .withBean(Listener.class)
            .withPropertyValues(
                    "rate-limit.limits.door.rate=1/s",
                    "rate-limit.limits.door.block=1m",
                    "rate-limit.limits.door.tiers.gold.rate=2/s");

    static class Listener {

        private final List<RateLimitBlockedEvent> events = new CopyOnWriteArrayList<>();
        private boolean fails;

        @EventListener
        void blocked(RateLimitBlockedEvent event) {
            events.add(event);
            if (fails) {
                throw new IllegalStateException("of the listener");
            }
        }
    }

    private static RateLimitBlockedEvent event(String key, long minutes, int level, boolean shadow) {
        return new RateLimitBlockedEvent(
                "door", KeyMask.mask(CanonicalKey.text(key)), Duration.ofMinutes(minutes), level, shadow);
    }

    @Test
    void eachBlockIsOneEventWithTheMaskOfTheKey() {
        runner.run(context -> {
            TestLimits limits = TestLimits.of(context);
            List<RateLimitBlockedEvent> events = context.getBean(Listener.class).events;
            for (int i = 0; i < 9; i++) {
                limits.tryAcquire("door", "ann");
            }
            assertThat(events).containsExactly(event("ann", 1, 1, false));
            ticker.advance(Duration.ofMinutes(1));
            for (int i = 0; i < 9; i++) {
                limits.tryAcquire("door", "ann");
            }
            assertThat(events).containsExactly(event("ann", 1, 1, false), event("ann", 2, 2, false));

            limits.change("door", LimitChange.of("policy", "shadow"));
            for (int i = 0; i < 2; i++) {
                limits.execute("door", "bob", () -> "goes");
            }
            assertThat(events).last().isEqualTo(event("bob", 1, 1, true));
            assertThat(((ConfiguredLimit) limits.limit("door")).blocks()).isEqualTo(3);
        });
    }

    @Test
    void blocksOfOwnBudgetsAreReportedToo() {
        runner.run(context -> {
            TestLimits limits = TestLimits.of(context);
            limits.override("door", "ann", LimitChange.of("tier", "gold"), null);
            limits.override("door", "bob", LimitChange.rate("3/s"), null);
            for (int i = 0; i < 4; i++) {
                limits.tryAcquire("door", "ann");
                limits.tryAcquire("door", "bob");
            }
            assertThat(context.getBean(Listener.class).events)
                    .containsExactly(event("ann", 1, 1, false), event("bob", 1, 1, false));
        });
    }

    @Test
    void aListenerThatFailsIsLoggedAndTheCallIsRefused(CapturedLog output) {
        runner.run(context -> {
            TestLimits limits = TestLimits.of(context);
            context.getBean(Listener.class).fails = true;
            assertThat(limits.tryAcquire("door", "ann")).isTrue();
            assertThat(limits.tryAcquire("door", "ann")).isFalse();
            assertThat(output)
                    .contains("Rate limit 'door' has blocked the key masked:")
                    .contains("of the listener")
                    .doesNotContain("ann,");
        });
    }

    /** Callers choose how many keys are blocked. */
    @Test
    void aListenerThatFailsForManyKeysIsLoggedOnceAMinute(CapturedLog output) {
        runner.run(context -> {
            TestLimits limits = TestLimits.of(context);
            context.getBean(Listener.class).fails = true;
            for (int minute = 0; minute < 2; minute++) {
                for (int key = 0; key < 20; key++) {
                    limits.tryAcquire("door", minute + "-" + key);
                    limits.tryAcquire("door", minute + "-" + key);
                }
                ticker.advance(Duration.ofMinutes(1));
            }
            assertThat(((ConfiguredLimit) limits.limit("door")).blocks()).isEqualTo(40);
            assertThat(output.toString().split("has blocked the key", -1)).hasSize(1 + 2);
        });
    }

    @Test
    void aFlightRecordingThatAsksForBlocksHasThem(@TempDir Path directory) throws Exception {
        Path file = directory.resolve("blocks.jfr");
        try (Recording recording = new Recording()) {
            recording.enable("io.ratelimited.Block");
            recording.start();
            runner.run(context -> {
                for (int i = 0; i < 5; i++) {
                    TestLimits.of(context).tryAcquire("door", "ann");
                }
            });
            recording.stop();
            recording.dump(file);
        }
        assertThat(RecordingFile.readAllEvents(file))
                .extracting(
                        event -> event.getString("limit"),
                        event -> event.getDuration("lasting"),
                        event -> event.getInt("level"),
                        event -> event.getBoolean("shadow"))
                .containsExactly(tuple("door", Duration.ofMinutes(1), 1, false));
    }
}
