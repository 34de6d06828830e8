package io.ratelimited.core.memory;

import org.junit.jupiter.api.Tag;

/** A million keys. */
@Tag("proof")
final class KeyFloodProofTest extends KeyFloodTest {

    @Override
    int flood() {
        return 1_000_000;
    }
}
