package io.ratelimited.spring;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.ArchConfiguration;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
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
        assertThat(arrowsUp(usesOf("io.ratelimited.spring"))).isEqualTo(ALLOWED_UP);
    }

    @Test
    void noKnotOfClassesIsLargerThanThree() {
        Map<String, Set<String>> uses = usesOf("io.ratelimited.spring");
        assertThat(uses).hasSizeGreaterThan(60);
        assertThat(knots(uses)).allSatisfy(knot -> assertThat(knot).hasSizeLessThanOrEqualTo(3));
    }

    @Test
    void noPackageHasMoreThanTwentyFiles() {
        Map<String, Long> files = usesOf("io.ratelimited.spring").keySet().stream()
                .collect(Collectors.groupingBy(ArchitectureTest::packageOf, Collectors.counting()));
        assertThat(files).allSatisfy((name, classes) -> assertThat(classes).isLessThan(20)); // and its package-info
    }

    @Test
    void theKnotsAreFoundAndTheArrowsUp() {
        Map<String, Set<String>> uses = Map.of(
                "a",
                Set.of("b"),
                "b",
                Set.of("c"),
                "c",
                Set.of("a", "d"),
                "d",
                Set.of("e"),
                "e",
                Set.of("d"),
                "f",
                Set.of());
        assertThat(knots(uses)).containsExactlyInAnyOrder(Set.of("a", "b", "c"), Set.of("d", "e"));
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

    /** The top-level classes of a package and those below it that each of them uses. */
    private static Map<String, Set<String>> usesOf(String root) {
        Map<String, Set<String>> uses = new TreeMap<>();
        for (JavaClass type : ALL) {
            String user = type.getName().replaceAll("\\$.*", "");
            if (!user.startsWith(root + ".") || user.endsWith("package-info")) {
                continue;
            }
            Set<String> used = uses.computeIfAbsent(user, name -> new TreeSet<>());
            type.getDirectDependenciesFromSelf().stream()
                    .map(dependency -> dependency
                            .getTargetClass()
                            .getBaseComponentType()
                            .getName()
                            .replaceAll("\\$.*", ""))
                    .filter(name -> name.startsWith(root + ".") && !name.equals(user))
                    .forEach(used::add);
        }
        return uses;
    }

    /** Classes that reach each other in a circle: the strongly connected components of more than one. */
    private static List<Set<String>> knots(Map<String, Set<String>> uses) {
        Map<String, Set<String>> reached = new HashMap<>();
        uses.keySet().forEach(start -> {
            Set<String> seen = new TreeSet<>();
            Deque<String> open = new ArrayDeque<>(uses.get(start));
            while (!open.isEmpty()) {
                String next = open.pop();
                if (seen.add(next)) {
                    open.addAll(uses.getOrDefault(next, Set.of()));
                }
            }
            reached.put(start, seen);
        });
        return reached.keySet().stream()
                .map(type -> reached.get(type).stream()
                        .filter(other -> reached.getOrDefault(other, Set.of()).contains(type))
                        .collect(Collectors.toSet()))
                .filter(knot -> knot.size() > 1)
                .distinct()
                .toList();
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
