package io.ratelimited.core;

import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.core.importer.ClassFileImporter;
import org.junit.jupiter.api.Test;

/** The rules find what breaks them, shown with the classes of the core. */
class ClassRulesTest {

    private static final String CORE = "io.ratelimited.core";

    @Test
    void aKnotIsFoundWithAllOfItsClasses() {
        assertThat(ClassRules.of(CORE).knots(1))
                .contains("[" + CORE + ".internals.memory.Cell, " + CORE + ".internals.memory.CellParameters]");
    }

    @Test
    void aCircleOfPackagesIsFound() {
        assertThat(new ClassRules(new ClassFileImporter().importPackages("io.ratelimited.core.circle")).circles())
                .singleElement()
                .asString()
                .contains("core.circle.left", "core.circle.right");
    }
}
