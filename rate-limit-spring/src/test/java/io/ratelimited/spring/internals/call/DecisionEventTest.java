package io.ratelimited.spring.internals.call;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.tuple;

import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.ContextRunner;
import io.ratelimited.spring.RateLimits;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import jdk.jfr.Recording;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordingFile;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What a flight recording shows of limits. */
class DecisionEventTest {

    private static final String NAME = "io.ratelimited.Decision";

    private final ContextRunner runner = ContextRunner.limited(new ManualTicker().autoAdvance())
            .withPropertyValues(
                    "rate-limit.limits.refused.rate=1/h",
                    "rate-limit.limits.short.rate=100/s",
                    "rate-limit.limits.short.burst=1",
                    "rate-limit.limits.short.policy=wait",
                    "rate-limit.limits.long.rate=2/s",
                    "rate-limit.limits.long.burst=1",
                    "rate-limit.limits.long.policy=wait");

    @TempDir
    private Path directory;

    private List<RecordedEvent> recorded(Recording recording) throws IOException {
        recording.start();
        runner.run(context -> {
            RateLimits limits = context.getBean(RateLimits.class);
            limits.tryAcquire("refused", "ann");
            limits.tryAcquire("refused", "ann");
            for (String limit : List.of("short", "long")) {
                limits.execute(limit, "ann", () -> "at once");
                limits.execute(limit, "ann", () -> "after a wait");
            }
        });
        recording.stop();
        Path file = directory.resolve("limits.jfr");
        recording.dump(file);
        return RecordingFile.readAllEvents(file);
    }

    @Test
    void aRecordingShowsRefusalsAndLongWaits() throws IOException {
        try (Recording recording = new Recording()) {
            recording.enable(NAME);

            assertThat(recorded(recording))
                    .extracting(
                            event -> event.getString("limit"),
                            event -> event.getString("outcome"),
                            event -> event.getDuration("waited"))
                    .containsExactly(
                            tuple("refused", "rejected", Duration.ZERO),
                            tuple("long", "delayed", Duration.ofMillis(500)));
        }
    }

    @Test
    void aRecordingThatDoesNotAskForItHasNothing() throws IOException {
        try (Recording recording = new Recording()) {
            assertThat(recorded(recording))
                    .noneMatch(event -> event.getEventType().getName().equals(NAME));
        }
    }
}
