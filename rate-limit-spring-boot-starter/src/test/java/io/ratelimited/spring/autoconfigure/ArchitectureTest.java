package io.ratelimited.spring.autoconfigure;

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
import io.ratelimited.spring.internals.text.LogText;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.springframework.aop.Advisor;
import org.springframework.aop.framework.Advised;
import org.springframework.asm.Type;
import org.springframework.expression.spel.SpelNode;
import org.springframework.util.ReflectionUtils;
import reactor.core.publisher.Hooks;
import reactor.core.scheduler.Schedulers;

/** Which package may use which, in every module that the starter sees. */
@Tag("once")
class ArchitectureTest {

    private static final JavaClasses ALL = ArchConfiguration.withThreadLocalScope(configuration -> {
        // The rules ask for names of packages only, so that no class of a library need be read.
        configuration.setResolveMissingDependenciesFromClassPath(false);
        return new ClassFileImporter()
                .withImportOption(new ImportOption.DoNotIncludeTests())
                .withImportOption(location -> !location.contains("-tests.jar"))
                // The copy of Caffeine that the jar of the core holds.
                .withImportOption(location -> !location.contains("/io/ratelimited/core/caffeine/"))
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
                .doNotHaveFullyQualifiedName("io.ratelimited.redis.internals.connection.Threads")
                .should()
                .dependOnClassesThat()
                .haveNameMatching(
                        "(java[.]lang[.]System.Logger|java[.]util[.]logging|org[.]slf4j[.]Logger|org[.]apache[.]commons[.]logging).*")
                .check(ALL);
    }

    @Test
    void limitsOfSpringUseNothingOfSpringBoot() {
        noClasses()
                .that()
                .resideInAnyPackage(
                        "io.ratelimited.spring",
                        "io.ratelimited.spring.internals.aop..",
                        "io.ratelimited.spring.backend..",
                        "io.ratelimited.spring.internals.bean..",
                        "io.ratelimited.spring.internals.block..",
                        "io.ratelimited.spring.internals.call..",
                        "io.ratelimited.spring.internals.check..",
                        "io.ratelimited.spring.internals.client..",
                        "io.ratelimited.spring.config..",
                        "io.ratelimited.spring.internals.expression..",
                        "io.ratelimited.spring.fields..",
                        "io.ratelimited.spring.internals.limit..",
                        "io.ratelimited.spring.internals.overload..",
                        "io.ratelimited.spring.internals.request..",
                        "io.ratelimited.spring.internals.text..",
                        "io.ratelimited.spring.internals.web..")
                .should()
                .dependOnClassesThat()
                .resideInAPackage("org.springframework.boot..")
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

    /** Of the starter and of the modules that it stands on. */
    @Test
    void packagesAreFreeOfCircles() {
        assertThat(RULES.arrows()).hasSizeGreaterThan(150);
        assertThat(RULES.circles()).isEmpty();
    }

    @Test
    void noKnotOfClassesIsLargerThanFour() {
        assertThat(RULES.knots()).isEmpty();
    }

    /**
     * The class files of the application may be read: no public door shows what a method calls, or which aspects are woven
     * into it. The stack of a failure is copied, and not looked at, where its texts are escaped.
     */
    private static final Set<String> ALLOWED_INSIDES = Set.of(
            "io.ratelimited.spring.internals.check.SelfCalls",
            "io.ratelimited.spring.internals.check.WovenMethods",
            "io.ratelimited.spring.internals.text.LogText");

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
                        "org.springframework.expression.spel.SpelNode.toStringAST()",
                        "org.springframework.util.ReflectionUtils.findField(java.lang.Class, java.lang.String)",
                        "org.springframework.util.ReflectionUtils.makeAccessible(java.lang.reflect.Field)",
                        "reactor.core.publisher.Hooks",
                        "reactor.core.scheduler.Schedulers.onScheduleHook(java.lang.String,"
                                + " java.util.function.Function)");
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

        String print(SpelNode expression) {
            return expression.toStringAST();
        }

        void hook() {
            Hooks.onOperatorDebug();
            Schedulers.onScheduleHook("burglar", task -> task);
        }
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

    /**
     * An application of one stack lacks the classes of the other: a class that is loaded on both and names one of them fails
     * to link, even where the code that names it never runs.
     */
    @Test
    void theServletApiIsKnownToThePackagesOfServletsAlone() {
        assertThat(naming("jakarta/servlet/", "org/springframework/web/servlet/"))
                .isNotEmpty()
                .allMatch(name -> name.matches("io[.]ratelimited[.]spring[.]([a-z]+[.])*servlet[.][^.]+"));
    }

    @Test
    void webFluxIsKnownToThePackagesOfReactiveApplicationsAlone() {
        assertThat(naming(
                        "org/springframework/web/server/ServerWebExchange",
                        "org/springframework/web/server/WebFilter",
                        "org/springframework/http/server/reactive/"))
                .isNotEmpty()
                .allMatch(name -> name.matches("io[.]ratelimited[.]spring[.]([a-z]+[.])*reactive[.][^.]+"));
    }

    /** Each of these is loaded where Reactor is, and after a look for it. */
    @Test
    void reactorIsKnownToFewClasses() {
        assertThat(naming("reactor/core/"))
                .filteredOn(name -> !name.matches(".*[.](reactive|graphql)[.][^.]+"))
                .containsExactlyInAnyOrder(
                        "io.ratelimited.spring.internals.aop.ReactiveCalls",
                        "io.ratelimited.spring.internals.aop.ReactiveCalls$Subscribed",
                        "io.ratelimited.spring.autoconfigure.client.ClientRateLimitAutoConfiguration$ReactiveConfiguration",
                        "io.ratelimited.spring.autoconfigure.client.ClientRateLimitAutoConfiguration$BootsReactiveConfiguration",
                        "io.ratelimited.spring.internals.call.Continuations$Parallel",
                        "io.ratelimited.spring.internals.call.EventLoops$Reactor",
                        "io.ratelimited.spring.internals.client.FollowingConnector",
                        "io.ratelimited.spring.internals.client.FollowingConnector$WithoutBody",
                        "io.ratelimited.spring.internals.client.ReactiveClientFilter");
    }

    /** The classes whose constants name a package: the types of lambdas are nothing that a call or a field shows. */
    private static List<String> naming(String... packages) {
        return ALL.stream()
                .filter(type -> Stream.of(packages).anyMatch(bytes(type)::contains))
                .map(JavaClass::getFullName)
                .toList();
    }

    private static String bytes(JavaClass type) {
        try (InputStream file = type.getSource().orElseThrow().getUri().toURL().openStream()) {
            return new String(file.readAllBytes(), StandardCharsets.ISO_8859_1);
        } catch (IOException ex) {
            throw new UncheckedIOException(ex);
        }
    }

    @Test
    void everyBeanHasANameThatNoApplicationPicks() {
        assertThat(BeanNames.othersMayPick()).containsExactly("rateLimitHealthIndicator");
    }
}
