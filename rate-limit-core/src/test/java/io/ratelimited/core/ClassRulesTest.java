package io.ratelimited.core;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

/** The rules find what breaks them, shown with the classes of the core. */
class ClassRulesTest {

    private static final String CORE = "io.ratelimited.core";
    private static final String[] PACKAGES = {CORE + ".testing", CORE + ".memory", CORE + ".memory.concurrency", CORE};

    @Test
    void aKnotIsFoundWithAllOfItsClasses() {
        assertThat(ClassRules.of(PACKAGES).knots(1))
                .contains("[" + CORE + ".memory.Cell, " + CORE + ".memory.CellParameters]");
    }

    @Test
    void anArrowThatPointsUpIsFoundAndAnExceptionThatNothingNeedsToo() {
        String arrow = CORE + ".InMemoryRateLimiter -> " + CORE + ".memory.CellRateLimiter";
        assertThat(ClassRules.of(PACKAGES).risingArrows()).contains(arrow + " points up");
        assertThat(ClassRules.of(PACKAGES)
                        .except(CORE + ".Limit", CORE + ".memory.Cell", "none")
                        .risingArrows())
                .contains(CORE + ".Limit -> " + CORE + ".memory.Cell is not there: remove the exception");
    }

    @Test
    void aPackageThatNobodyHasListedIsFound() {
        assertThat(ClassRules.of(CORE).risingArrows())
                .contains(CORE + ".testing.ManualTicker is in a package without a place in the list");
    }

    @Test
    void aFullPackageIsFound() {
        assertThat(ClassRules.of(PACKAGES).fullPackages(10)).hasSize(2).anyMatch(entry -> entry.startsWith(CORE + "="));
    }
}
