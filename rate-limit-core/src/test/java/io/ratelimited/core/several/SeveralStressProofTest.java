package io.ratelimited.core.several;

import org.junit.jupiter.api.Tag;

/** Ten times as many calls. {@code -Dstress.calls} chooses how many. */
@Tag("proof")
final class SeveralStressProofTest extends SeveralStressTest {

    @Override
    protected int calls() {
        return Integer.getInteger("stress.calls", 200_000);
    }
}
