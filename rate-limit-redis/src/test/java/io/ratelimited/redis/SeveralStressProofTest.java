package io.ratelimited.redis;

import org.junit.jupiter.api.Tag;

/** As many calls as a server decides in half a minute. {@code -Dstress.calls} chooses how many. */
@Tag("proof")
final class SeveralStressProofTest extends SeveralStressTest {

    @Override
    protected int calls() {
        return Integer.getInteger("stress.calls", 20_000);
    }
}
