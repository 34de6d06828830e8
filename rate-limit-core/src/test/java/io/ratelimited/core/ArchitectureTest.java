package io.ratelimited.core;

import static com.tngtech.archunit.core.domain.JavaCall.Predicates.target;
import static com.tngtech.archunit.core.domain.properties.HasName.Predicates.name;
import static com.tngtech.archunit.core.domain.properties.HasOwner.Predicates.With.owner;
import static com.tngtech.archunit.lang.conditions.ArchConditions.callMethod;
import static com.tngtech.archunit.lang.conditions.ArchConditions.callMethodWhere;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.domain.properties.HasName;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import io.ratelimited.core.internals.candidates.CandidatesCommand;
import java.lang.reflect.Field;
import java.time.Clock;
import java.util.List;
import java.util.function.Supplier;
import org.assertj.core.api.InstanceOfAssertFactories;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** What may use what inside the core. */
@Tag("once")
class ArchitectureTest {

    private static final JavaClasses CORE = new ClassFileImporter()
            .withImportOption(new ImportOption.DoNotIncludeTests())
            .importPackages("io.ratelimited.core");

    private static final String MEMORY = "io.ratelimited.core.internals.memory.";

    private static final ClassRules RULES = ClassRules.of("io.ratelimited.core");

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
    void noKnotOfClassesIsLargerThanFour() {
        assertThat(RULES.knots()).isEmpty();
    }

    @Test
    void packagesAreFreeOfCircles() {
        assertThat(RULES.circles()).isEmpty();
    }

    @Test
    void nothingReachesIntoOthers() {
        assertThat(ForeignInsides.usedIn("io.ratelimited.core")).isEmpty();
    }

    @Test
    void whatReachesIntoOthersIsFound() {
        assertThat(ForeignInsides.usedIn(Burglar.class))
                .containsOnlyKeys(ArchitectureTest.class.getName())
                .extractingByKey(ArchitectureTest.class.getName(), InstanceOfAssertFactories.COLLECTION)
                .containsExactly(
                        "java.lang.Class.getDeclaredField(java.lang.String)",
                        "java.lang.StackWalker",
                        "java.lang.StackWalker$Option",
                        "java.lang.Thread.getStackTrace()",
                        "java.lang.Throwable.getStackTrace()",
                        "java.lang.reflect.Field.getInt(java.lang.Object)",
                        "java.lang.reflect.Field.setAccessible(boolean)");
    }

    @SuppressWarnings("unused")
    private static final class Burglar {

        int read(Object foreign) throws ReflectiveOperationException {
            Field field = foreign.getClass().getDeclaredField("secret");
            field.setAccessible(true);
            return field.getInt(foreign);
        }

        Object walk(Exception ex) {
            Supplier<StackTraceElement[]> trace = ex::getStackTrace;
            return List.of(
                    trace.get(),
                    Thread.currentThread().getStackTrace(),
                    StackWalker.getInstance(StackWalker.Option.RETAIN_CLASS_REFERENCE)
                            .getCallerClass());
        }
    }

    @Test
    void theTestKitIsUsedByTestsAndByTheReplayOfLogsOnly() {
        noClasses()
                .that()
                .resideOutsideOfPackage("io.ratelimited.core.testing")
                .and()
                .doNotBelongToAnyOf(CandidatesCommand.class)
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
                .areAssignableTo(MEMORY + "Cell")
                .or()
                .areAssignableTo(MEMORY + "CellParameters")
                .or()
                .areAssignableTo(MEMORY + "PermitTime")
                .should()
                .dependOnClassesThat()
                .areAssignableTo(Ticker.class)
                .orShould()
                .dependOnClassesThat()
                .areAssignableTo(MEMORY + "SteadyClock")
                .orShould()
                .dependOnClassesThat()
                .areAssignableTo(MEMORY + "CachedCells")
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
}
