package io.ratelimited.sample;

import org.junit.jupiter.api.Tag;

/** Ten thousand requests. */
@Tag("proof")
final class LoadProofTest extends LoadTests {

    @Override
    int calls() {
        return 200;
    }
}
