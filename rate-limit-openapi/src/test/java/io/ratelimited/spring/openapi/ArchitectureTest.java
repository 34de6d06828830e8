package io.ratelimited.spring.openapi;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.BeanNames;
import io.ratelimited.core.ForeignInsides;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** What the classes of this module may use. */
@Tag("once")
final class ArchitectureTest {

    @Test
    void nothingReachesIntoOthers() {
        assertThat(ForeignInsides.usedIn("io.ratelimited.spring.openapi")).isEmpty();
    }

    @Test
    void everyBeanHasANameThatNoApplicationPicks() {
        assertThat(BeanNames.othersMayPick()).containsExactly("rateLimitHealthIndicator");
    }
}
