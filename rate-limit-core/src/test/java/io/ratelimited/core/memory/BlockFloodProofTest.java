package io.ratelimited.core.memory;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Thirty thousand keys, and the table of larger floods. */
@Tag("proof")
final class BlockFloodProofTest extends BlockFloodTest {

    @Override
    int maximum() {
        return 30_000;
    }

    /** Prints how many of 100 strangers, who call once, are rejected: a larger flood rejects no fewer. */
    @Test
    void table() {
        StringBuilder table = new StringBuilder("| rejected strangers, % |");
        double[] floods = {1.5, 2, 3, 5};
        for (double times : floods) {
            table.append(" × %s |".formatted(times));
        }
        for (Flood kind : floods()) {
            double fewer = 0;
            table.append("\n| in %s, block %s, charged %s |".formatted(kind.lasting(), kind.block(), kind.charged()));
            for (double times : floods) {
                double rejected = rejected(new Flood(times, kind.lasting(), kind.block(), kind.charged()));
                assertThat(rejected).isGreaterThanOrEqualTo(fewer);
                fewer = rejected;
                table.append(" %.2f |".formatted(rejected));
            }
        }
        System.out.println(table);
    }
}
