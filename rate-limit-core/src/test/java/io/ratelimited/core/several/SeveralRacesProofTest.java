package io.ratelimited.core.several;

import org.junit.jupiter.api.Tag;

/** Ten times as many races. */
@Tag("proof")
final class SeveralRacesProofTest extends SeveralRacesTest {

    @Override
    int races() {
        return 30_000;
    }
}
