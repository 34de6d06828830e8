package io.ratelimited.core.internals.memory;

import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;

/** Many more histories, and every interleaving for every kind of them. */
@Tag("proof")
final class LinearizabilityProofTest extends LinearizabilityTest {

    @Override
    int histories() {
        return 2 * Integer.getInteger("lincheck.scale", 1);
    }

    static Stream<Class<?>> interleaved() {
        return kinds();
    }
}
