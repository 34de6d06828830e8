package io.ratelimited.redis;

import org.junit.jupiter.api.Tag;

/** As many calls as a server decides in a few minutes. */
@Tag("proof")
final class SeveralStressProofTest extends SeveralStressTest {

    @Override
    protected int calls() {
        return 200_000;
    }
}
