package io.ratelimited.core.internals.memory;

import org.junit.jupiter.api.Tag;

/** The laws under many more schedules. */
@Tag("proof")
final class LawsProofTest extends LawsTest {

    @Override
    int schedules() {
        return Integer.getInteger("schedules", 150);
    }
}
