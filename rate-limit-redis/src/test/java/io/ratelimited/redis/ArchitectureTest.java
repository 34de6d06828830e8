package io.ratelimited.redis;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static org.assertj.core.api.Assertions.assertThat;

import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import io.ratelimited.core.ClassRules;
import io.ratelimited.core.ForeignInsides;
import io.ratelimited.core.Ticker;
import io.ratelimited.redis.internals.connection.Threads;
import java.time.Instant;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** How the classes of the Redis module lie. */
@Tag("once")
class ArchitectureTest {

    private static final ClassRules RULES = ClassRules.of("io.ratelimited.redis");

    @Test
    void noKnotOfClassesIsLargerThanFour() {
        assertThat(RULES.arrows()).hasSizeGreaterThan(30);
        assertThat(RULES.knots()).isEmpty();
    }

    @Test
    void packagesAreFreeOfCircles() {
        assertThat(RULES.circles()).isEmpty();
    }

    /** So that a test can run a connection in one thread and on a time of its own. */
    @Test
    void onlyThreadsReadsAClockOrStartsAThread() {
        JavaClasses connection = new ClassFileImporter()
                .withImportOption(new ImportOption.DoNotIncludeTests())
                .importPackages("io.ratelimited.redis.internals.connection");
        assertThat(connection.get(Threads.class).getMethods()).isNotEmpty();
        noClasses()
                .that()
                .doNotHaveFullyQualifiedName(Threads.class.getName())
                .and()
                .doNotHaveFullyQualifiedName(Threads.class.getName() + "$Timer")
                .should()
                .callMethod(System.class, "nanoTime")
                .orShould()
                .callMethod(System.class, "currentTimeMillis")
                .orShould()
                .callMethod(Instant.class, "now")
                .orShould()
                .callMethod(Ticker.class, "system")
                .orShould()
                .callConstructor(Thread.class, Runnable.class)
                .check(connection);
    }

    @Test
    void nothingReachesIntoOthers() {
        assertThat(ForeignInsides.usedIn("io.ratelimited.redis")).isEmpty();
    }
}
