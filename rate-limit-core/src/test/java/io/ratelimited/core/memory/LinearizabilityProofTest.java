package io.ratelimited.core.memory;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Many more histories, and every interleaving for every kind of them. */
@Tag("proof")
final class LinearizabilityProofTest extends LinearizabilityTest {

    @Override
    int histories() {
        return 4 * Integer.getInteger("lincheck.scale", 1);
    }

    @ParameterizedTest
    @MethodSource("kinds")
    void everyInterleavingOfEveryKindEqualsSomeOrder(Class<?> history) {
        checkEveryInterleaving(history);
    }
}
