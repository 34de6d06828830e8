package io.ratelimited.core.memory;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** A hundred thousand keys, and the table of all floods. */
@Tag("proof")
final class KeyFloodAttacksProofTest extends KeyFloodAttacksTest {

    @Override
    int maximum() {
        return 100_000;
    }

    @Override
    List<Double> floods() {
        return List.of(1.25, 1.5, 2.0, 3.0, 5.0, 10.0);
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
                    refused = refusedAfter(algorithm, maximum() / 10, times, calls);
                    assertThat(refused).as("%s, × %s", algorithm, times).isGreaterThanOrEqualTo(fewer);
                    table.append(" %.2f |".formatted(refused / 100.0));
                }
            }
        }
        System.out.println(table);
    }
}
