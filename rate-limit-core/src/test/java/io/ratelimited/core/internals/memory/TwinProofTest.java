package io.ratelimited.core.internals.memory;

import org.junit.jupiter.api.Tag;

/** The twins on many more timelines. */
@Tag("proof")
final class TwinProofTest extends TwinTest {

    @Override
    int timelines() {
        return Integer.getInteger("schedules", 100);
    }
}
