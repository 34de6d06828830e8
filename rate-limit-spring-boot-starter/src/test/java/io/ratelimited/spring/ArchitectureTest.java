package io.ratelimited.spring;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.ArchConfiguration;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import io.ratelimited.core.ClassRules;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
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

    private static final ClassRules RULES = ClassRules.of("io.ratelimited.spring");

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

    /**
     * The floors of the starter, from the lowest. A class uses its own floor and those below; of two packages on one floor
     * neither uses the other.
     */
    private static int floor(String type) {
        String name = type.substring("io.ratelimited.spring.".length());
        if (name.endsWith("AutoConfiguration") || name.startsWith("autoconfigure.")) {
            return 8; // in the package that it wires, and in spring the one that users exclude by its name
        }
        if (!name.contains(".")) {
            return ENTRIES.contains(name) ? 4 : 0;
        }
        return switch (name.substring(0, name.lastIndexOf('.'))) {
            case "limit" -> 1;
            case "call" -> 2;
            case "aop" -> 3;
            case "check" -> 5;
            case "web", "redis", "actuate" -> 6;
            case "web.servlet", "web.reactive" -> 7;
            default -> throw new AssertionError("no floor for " + type);
        };
    }

    /** The types of {@code spring} that stand on the calls of methods; all others are leaves, which any class may use. */
    private static final Set<String> ENTRIES =
            Set.of("RateLimits", "ReservedPermits", "RateLimitAspect", "ComposedRateLimitAspect");

    /** Uses of a higher floor, and of another package on the same floor. */
    static Set<String> arrowsUp(Map<String, Set<String>> uses) {
        Set<String> up = new TreeSet<>();
        uses.forEach((user, used) -> used.forEach(type -> {
            boolean sideways = floor(user) == floor(type)
                    && floor(user) < 8
                    && !packageOf(user).equals(packageOf(type));
            if (floor(type) > floor(user) || sideways) {
                up.add(simple(user) + " -> " + simple(type));
            }
        }));
        return up;
    }

    /** Each arrow that runs back up has a reason here; there is none today. */
    private static final Set<String> ALLOWED_UP = Set.of();

    @Test
    void arrowsRunDown() {
        assertThat(RULES.arrows()).hasSizeGreaterThan(60);
        assertThat(arrowsUp(RULES.arrows())).isEqualTo(ALLOWED_UP);
    }

    @Test
    void noKnotOfClassesIsLargerThanFour() {
        assertThat(RULES.knots()).isEmpty();
    }

    @Test
    void noPackageHasMoreThanTwentyFiles() {
        assertThat(RULES.fullPackages()).isEmpty();
    }

    @Test
    void anArrowThatRunsUpIsFound() {
        String limit = "io.ratelimited.spring.limit.LimitRegistry";
        assertThat(arrowsUp(Map.of(
                        limit,
                        Set.of("io.ratelimited.spring.call.LimitUse", "io.ratelimited.spring.NamedLimit"),
                        "io.ratelimited.spring.call.LimitUse",
                        Set.of(limit),
                        "io.ratelimited.spring.redis.A",
                        Set.of("io.ratelimited.spring.web.B"))))
                .containsExactly("A -> B", "LimitRegistry -> LimitUse");
    }

    private static String packageOf(String type) {
        return type.substring(0, type.lastIndexOf('.'));
    }

    private static String simple(String type) {
        return type.substring(type.lastIndexOf('.') + 1);
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
}
