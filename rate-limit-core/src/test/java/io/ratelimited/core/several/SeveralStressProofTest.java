package io.ratelimited.core.several;

import org.junit.jupiter.api.Tag;

/** A million calls. {@code -Dstress.calls} chooses how many. */
@Tag("proof")
final class SeveralStressProofTest extends SeveralStressTest {

    @Override
    protected int calls() {
        return Integer.getInteger("stress.calls", 1_000_000);
    }
}
