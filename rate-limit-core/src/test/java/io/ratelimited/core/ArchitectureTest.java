package io.ratelimited.core;

import static com.tngtech.archunit.core.domain.JavaCall.Predicates.target;
import static com.tngtech.archunit.core.domain.properties.HasName.Predicates.name;
import static com.tngtech.archunit.core.domain.properties.HasOwner.Predicates.With.owner;
import static com.tngtech.archunit.lang.conditions.ArchConditions.callMethod;
import static com.tngtech.archunit.lang.conditions.ArchConditions.callMethodWhere;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;

import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.domain.properties.HasName;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import com.tngtech.archunit.library.dependencies.SliceAssignment;
import com.tngtech.archunit.library.dependencies.SliceIdentifier;
import java.time.Clock;
import org.junit.jupiter.api.Test;

/** What may use what inside the core. */
class ArchitectureTest {

    private static final JavaClasses CORE = new ClassFileImporter()
            .withImportOption(new ImportOption.DoNotIncludeTests())
            .importPackages("io.ratelimited.core");

    @Test
    void theCoreUsesTheJdkCaffeineAndJSpecifyOnly() {
        classes()
                .should()
                .onlyDependOnClassesThat()
                .resideInAnyPackage(
                        "java..", "com.github.benmanes.caffeine..", "org.jspecify..", "io.ratelimited.core..")
                .check(CORE);
    }

    @Test
    void noTwoPackagesUseEachOther() {
        slices().assignedFrom(new Packages()).should().beFreeOfCycles().check(CORE);
    }

    @Test
    void theTestKitIsUsedByTestsOnly() {
        noClasses()
                .that()
                .resideOutsideOfPackage("io.ratelimited.core.testing")
                .should()
                .dependOnClassesThat()
                .resideInAPackage("io.ratelimited.core.testing")
                .check(CORE);
    }

    /** Time is an argument of a step: a cell knows no clock, no map of keys and no thread. */
    @Test
    void aCellKnowsNoClockMapOrThread() {
        noClasses()
                .that()
                .areAssignableTo(Cell.class)
                .or()
                .areAssignableTo(Terms.class)
                .or()
                .areAssignableTo(PermitTime.class)
                .should()
                .dependOnClassesThat()
                .areAssignableTo(Ticker.class)
                .orShould()
                .dependOnClassesThat()
                .areAssignableTo(SteadyClock.class)
                .orShould()
                .dependOnClassesThat()
                .areAssignableTo(Cells.class)
                .orShould()
                .dependOnClassesThat()
                .areAssignableTo(java.util.Map.class)
                .orShould()
                .dependOnClassesThat()
                .areAssignableTo(Thread.class)
                .check(CORE);
    }

    @Test
    void oneClassReadsTheClocksOfTheSystem() {
        noClasses()
                .that()
                .doNotBelongToAnyOf(SystemTicker.class)
                .should(callMethod(System.class, "nanoTime"))
                .orShould(callMethod(System.class, "currentTimeMillis"))
                .orShould(callMethodWhere(
                        target(name("now")).and(target(owner(HasName.Predicates.nameStartingWith("java.time"))))))
                .orShould()
                .dependOnClassesThat()
                .areAssignableTo(Clock.class)
                .check(CORE);
    }

    /** A package is a slice. */
    private static final class Packages implements SliceAssignment {

        @Override
        public SliceIdentifier getIdentifierOf(JavaClass type) {
            return SliceIdentifier.of(type.getPackageName());
        }

        @Override
        public String getDescription() {
            return "packages";
        }
    }
}
