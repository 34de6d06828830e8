package io.ratelimited.core.several;

import org.junit.jupiter.api.Tag;

/** A million calls. */
@Tag("proof")
final class SeveralStressProofTest extends SeveralStressTest {

    @Override
    protected int calls() {
        return 1_000_000;
    }
}
