package io.ratelimited.core;

import org.junit.jupiter.api.Tag;

/** Many more histories. */
@Tag("proof")
final class LinearizabilityProofTest extends LinearizabilityTest {

    @Override
    int histories() {
        return 10 * Integer.getInteger("lincheck.scale", 1);
    }
}
