package io.ratelimited.sample;

import org.junit.jupiter.api.Tag;

/** Ten thousand requests. */
@Tag("proof")
final class LoadProofTest extends LoadTest {

    @Override
    int calls() {
        return 200;
    }
}
