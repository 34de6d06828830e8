package io.ratelimited.core.internals.memory;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Fifty thousand keys, and the table of all floods. */
@Tag("proof")
final class KeyFloodAttacksProofTest extends KeyFloodAttacksTest {

    @Override
    int maximum() {
        return 50_000;
    }

    @Override
    List<Double> floods() {
        return List.of(1.25, 1.5, 2.0, 3.0, 5.0, 10.0);
    }

    /** Percent of strangers that are rejected at the most, by how many times the most keys: as {@code docs/keys.md} has them. */
    private static final Map<Integer, Map<Double, Double>> OF_THE_PAGE = Map.of(
            1, Map.of(1.5, 0.0, 2.0, 0.0, 3.0, 0.0, 5.0, 1.0, 10.0, 36.0),
            5, Map.of(1.5, 0.0, 2.0, 0.1, 3.0, 5.0, 5.0, 37.0, 10.0, 73.0));

    private static final Set<Algorithm> ON_THE_PAGE =
            EnumSet.of(Algorithm.TOKEN_BUCKET, Algorithm.FIXED_WINDOW, Algorithm.SLIDING_LOG);

    private static void requireAsOnThePage(Algorithm algorithm, int calls, double times, double percent) {
        Double stated = Objects.requireNonNull(OF_THE_PAGE.get(calls)).get(times);
        if (stated != null && ON_THE_PAGE.contains(algorithm)) {
            assertThat(percent)
                    .as("%s, × %s, %d calls", algorithm, times, calls)
                    .isLessThanOrEqualTo(stated + (stated > 1 ? 2 : 0.8));
        }
    }

    /** Prints how many of 100 strangers are refused, by floods of a cache of 10,000 keys: a larger flood refuses no fewer. */
    @Test
    void table() {
        StringBuilder table = new StringBuilder("| refused strangers, % | calls |");
        floods().forEach(times -> table.append(" × %s |".formatted(times)));
        for (Algorithm algorithm : algorithms().toList()) {
            for (int calls : new int[] {1, 5}) {
                table.append("\n| `%s` | %d |".formatted(algorithm, calls));
                double refused = 0;
                for (double times : floods()) {
                    double fewer = refused;
                    refused = refusedAfter(algorithm, 10_000, times, calls);
                    assertThat(refused).as("%s, × %s", algorithm, times).isGreaterThanOrEqualTo(fewer);
                    table.append(" %.2f |".formatted(refused / 100.0));
                    requireAsOnThePage(algorithm, calls, times, refused / 100);
                }
            }
        }
        System.out.println(table);
    }
}
