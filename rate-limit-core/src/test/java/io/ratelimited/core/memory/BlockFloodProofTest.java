package io.ratelimited.core.memory;

import org.junit.jupiter.api.Tag;

/** The same with twice as many keys. */
@Tag("proof")
final class BlockFloodProofTest extends BlockFloodTest {

    @Override
    int maximum() {
        return 20_000;
    }
}
