package io.ratelimited.redis;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.ClassRules;
import org.junit.jupiter.api.Test;

/** How the classes of the Redis module lie; no arrow points up, and no exception is allowed. */
class ArchitectureTest {

    private static final ClassRules RULES =
            ClassRules.of("io.ratelimited.redis", "io.ratelimited.redis.limiter", "io.ratelimited.redis.connection");

    @Test
    void noKnotOfClassesIsLargerThanFour() {
        assertThat(RULES.arrows()).hasSizeGreaterThan(30);
        assertThat(RULES.knots()).isEmpty();
    }

    @Test
    void arrowsBetweenPackagesPointDown() {
        assertThat(RULES.risingArrows()).isEmpty();
    }

    @Test
    void noPackageHasMoreThanTwentyFiles() {
        assertThat(RULES.fullPackages()).isEmpty();
    }
}
