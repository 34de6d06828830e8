package io.ratelimited.core.internals.memory;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import org.junit.jupiter.api.Tag;

/** A million keys; a quarter of it for each of the other algorithms. */
@Tag("proof")
final class KeyFloodProofTest extends KeyFloodTest {

    @Override
    int flood(Limit limit) {
        return limit.algorithm() == Algorithm.TOKEN_BUCKET ? 1_000_000 : 250_000;
    }
}
