package io.ratelimited.spring;

import static com.tngtech.archunit.base.DescribedPredicate.alwaysTrue;
import static com.tngtech.archunit.core.domain.properties.HasName.Predicates.name;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;
import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.ArchConfiguration;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import com.tngtech.archunit.library.dependencies.SliceAssignment;
import com.tngtech.archunit.library.dependencies.SliceIdentifier;
import java.util.Set;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

/** Which package may use which, in every module that the starter sees. */
class ArchitectureTest {

    private static final JavaClasses ALL = ArchConfiguration.withThreadLocalScope(configuration -> {
        // The rules ask for names of packages only, so that no class of a library need be read.
        configuration.setResolveMissingDependenciesFromClassPath(false);
        return new ClassFileImporter()
                .withImportOption(new ImportOption.DoNotIncludeTests())
                .withImportOption(location -> !location.contains("-tests.jar"))
                .importPackages("io.ratelimited");
    });

    @Test
    void theCoreUsesNothingOfTheOthers() {
        assertThat(ALL.contain(io.ratelimited.core.RateLimiter.class)).isTrue();
        noClasses()
                .that()
                .resideInAPackage("io.ratelimited.core..")
                .should()
                .dependOnClassesThat()
                .resideInAnyPackage("io.ratelimited.spring..", "io.ratelimited.redis..", "org.springframework..")
                .check(ALL);
    }

    @Test
    void theRedisModuleUsesNothingOfSpring() {
        noClasses()
                .that()
                .resideInAPackage("io.ratelimited.redis..")
                .should()
                .dependOnClassesThat()
                .resideInAnyPackage("io.ratelimited.spring..", "org.springframework..")
                .allowEmptyShould(true) // it is optional
                .check(ALL);
    }

    /** Web, actuator and backends are built on the calls of methods, which know none of them. */
    @Test
    void callsOfMethodsKnowNothingOfWhatIsBuiltOnThem() {
        noClasses()
                .that()
                .resideInAPackage("io.ratelimited.spring")
                .should()
                .dependOnClassesThat()
                .resideInAPackage("io.ratelimited.spring.(*)..")
                .check(ALL);
    }

    @Test
    void noTwoPackagesUseEachOther() {
        // Users write the name InMemoryRateLimiter, which picks the limiter of core.memory that fits.
        slices().assignedFrom(new Packages())
                .should()
                .beFreeOfCycles()
                .ignoreDependency(name("io.ratelimited.core.InMemoryRateLimiter"), alwaysTrue())
                .check(ALL);
    }

    @Test
    void onePackageOfTheStarterKnowsRedis() {
        Set<String> packages = ALL.stream()
                .filter(type -> type.getPackageName().startsWith("io.ratelimited.spring"))
                .filter(
                        type -> type.getDirectDependenciesFromSelf().stream()
                                .anyMatch(
                                        dependency -> dependency
                                                .getTargetClass()
                                                .getPackageName()
                                                .matches(
                                                        "(io\\.ratelimited\\.redis|io\\.lettuce|org\\.springframework\\..*redis)\\b.*")))
                .map(JavaClass::getPackageName)
                .collect(Collectors.toSet());
        assertThat(packages).hasSizeLessThanOrEqualTo(1).doesNotContain("io.ratelimited.spring");
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
