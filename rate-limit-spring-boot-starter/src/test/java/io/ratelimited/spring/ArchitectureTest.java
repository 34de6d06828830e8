package io.ratelimited.spring;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.ArchConfiguration;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import io.ratelimited.core.BeanNames;
import io.ratelimited.core.ClassRules;
import io.ratelimited.core.ForeignInsides;
import io.ratelimited.spring.limit.LogText;
import java.lang.reflect.Field;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.springframework.aop.Advisor;
import org.springframework.aop.framework.Advised;
import org.springframework.asm.Type;
import org.springframework.util.ReflectionUtils;
import reactor.core.publisher.Hooks;
import reactor.core.scheduler.Schedulers;

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

    /** A line quotes callers, records of others and failures: each is escaped whole, in one place. */
    @Test
    void everyLineOfALogIsWrittenInOnePlaceOfEachModule() {
        noClasses()
                .that()
                .doNotHaveFullyQualifiedName(LogText.class.getName())
                .and()
                .doNotHaveFullyQualifiedName(LogText.class.getName() + "$Lines")
                .and()
                .doNotHaveFullyQualifiedName("io.ratelimited.redis.connection.Threads")
                .should()
                .dependOnClassesThat()
                .haveNameMatching(
                        "(java[.]lang[.]System.Logger|java[.]util[.]logging|org[.]slf4j[.]Logger|org[.]apache[.]commons[.]logging).*")
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
            case "fields" -> 0;
            case "limit" -> 1;
            case "call" -> 2;
            case "aop" -> 3;
            case "check", "client" -> 5;
            case "web", "redis", "actuate" -> 6;
            case "web.servlet", "web.reactive", "web.graphql" -> 7;
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

    /** The class files of the application may be read: no public door shows what a method calls. */
    private static final Set<String> ALLOWED_INSIDES = Set.of("io.ratelimited.spring.check.SelfCalls");

    @Test
    void nothingReachesIntoOthers() {
        assertThat(ForeignInsides.usedIn("io.ratelimited.spring").keySet()).isEqualTo(ALLOWED_INSIDES);
    }

    @Test
    void whatReachesIntoOthersIsFound() {
        assertThat(ForeignInsides.usedIn(Burglar.class).get(ArchitectureTest.class.getName()))
                .containsExactly(
                        "org.springframework.aop.framework.Advised.addAdvisor(int, org.springframework.aop.Advisor)",
                        "org.springframework.aop.framework.Advised.removeAdvisor(int)",
                        "org.springframework.asm.Type",
                        "org.springframework.util.ReflectionUtils.findField(java.lang.Class, java.lang.String)",
                        "org.springframework.util.ReflectionUtils.makeAccessible(java.lang.reflect.Field)",
                        "reactor.core.publisher.Hooks",
                        "reactor.core.scheduler.Schedulers.onScheduleHook(java.lang.String, java.util.function.Function)");
    }

    @SuppressWarnings("unused")
    private static final class Burglar {

        void move(Advised proxy, Advisor advisor) {
            proxy.removeAdvisor(1);
            proxy.addAdvisor(0, advisor);
        }

        void open(Class<?> foreign) {
            Field field = ReflectionUtils.findField(foreign, "secret");
            ReflectionUtils.makeAccessible(field);
        }

        String read(Class<?> foreign) {
            return Type.getInternalName(foreign);
        }

        void hook() {
            Hooks.onOperatorDebug();
            Schedulers.onScheduleHook("burglar", task -> task);
        }
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

    @Test
    void everyBeanHasANameThatNoApplicationPicks() {
        assertThat(BeanNames.othersMayPick()).containsExactly("rateLimitHealthIndicator");
    }
}
