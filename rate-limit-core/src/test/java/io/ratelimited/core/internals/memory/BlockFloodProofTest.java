package io.ratelimited.core.internals.memory;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The same with twice as many keys, and the figures of larger floods. */
@Tag("proof")
final class BlockFloodProofTest extends BlockFloodTest {

    /** Percent of strangers that are rejected at the most, by how many times the most keys: as {@code docs/keys.md} has them. */
    private static final Map<Double, Double> OF_THE_PAGE =
            new TreeMap<>(Map.of(1.5, 0.0, 2.0, 0.1, 3.0, 6.0, 5.0, 37.0));

    @Override
    int maximum() {
        return 10_000;
    }

    @ParameterizedTest
    @CsvSource({"10s, false", "30m, false", "10s, true"})
    void table(String lasting, boolean charged) {
        StringBuilder table = new StringBuilder("| within " + lasting + (charged ? ", charged |" : " |"));
        Duration time = Duration.parse("PT" + lasting);
        OF_THE_PAGE.forEach((times, percent) -> {
            double rejected = rejected(new Flood(times, time, Duration.ofHours(1), charged), 10_000);
            table.append(" × %s: %.2f |".formatted(times, rejected));
            assertThat(rejected).as("× %s", times).isLessThanOrEqualTo(percent + (percent > 1 ? 2 : 0.5));
        });
        System.out.println(table);
    }
}
