package io.ratelimited.core.several;

import org.junit.jupiter.api.Tag;

/** Five times as many races. */
@Tag("proof")
final class SeveralRacesProofTest extends SeveralRacesTest {

    @Override
    int races() {
        return 15_000;
    }
}
