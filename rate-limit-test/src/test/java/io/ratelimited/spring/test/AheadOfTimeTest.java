package io.ratelimited.spring.test;

import static io.ratelimited.spring.test.RateLimitAssertions.assertThatCall;
import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.Fork;
import java.io.File;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.springframework.aot.generate.FileSystemGeneratedFiles;
import org.springframework.aot.hint.RuntimeHints;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.context.ApplicationContext;
import org.springframework.test.context.TestContextManager;
import org.springframework.test.context.aot.TestContextAotGenerator;

/** A test that {@code spring-boot:process-test-aot} processed ahead of time. */
@Tag("slow")
class AheadOfTimeTest {

    /** The annotation overrides both properties. */
    @SpringBootTest(
            classes = Shop.Login.class,
            webEnvironment = SpringBootTest.WebEnvironment.NONE,
            properties = {"rate-limit.enabled=false", "rate-limit.backend=redis"})
    @AutoConfigureRateLimits
    static class Limited {

        void test() {}
    }

    @Test
    void eachTestMethodHasFreshLimitsAndAManualClock(@TempDir Path directory) throws Exception {
        Path classes = Files.createDirectory(directory.resolve("CLASS"));
        new TestContextAotGenerator(
                        new FileSystemGeneratedFiles(kind -> directory.resolve(kind.name())), new RuntimeHints(), true)
                .processAheadOfTime(Stream.of(Limited.class));
        compile(directory.resolve("SOURCE"), classes);
        assertThat(Fork.run(
                        directory,
                        classes + File.pathSeparator + Fork.classPath(entry -> true),
                        Runs.class,
                        Fork.SHORT,
                        "-Dspring.aot.enabled=true"))
                .containsExactly("limited 1", "limited 2");
    }

    private static void compile(Path sources, Path classes) throws Exception {
        List<String> arguments = new ArrayList<>(List.of(
                "-proc:none",
                "-nowarn",
                "-d",
                classes.toString(),
                "-cp",
                classes + File.pathSeparator + Fork.classPath(entry -> true)));
        try (Stream<Path> files = Files.walk(sources)) {
            files.map(Path::toString).filter(file -> file.endsWith(".java")).forEach(arguments::add);
        }
        assertThat(ToolProvider.getSystemJavaCompiler().run(null, null, null, arguments.toArray(String[]::new)))
                .isZero();
    }

    static class Runs {

        public static void main(String[] args) throws Exception {
            TestContextManager manager = new TestContextManager(Limited.class);
            ApplicationContext context = manager.getTestContext().getApplicationContext();
            Limited instance = new Limited();
            Method method = Limited.class.getDeclaredMethod("test");
            for (int run = 1; run <= 2; run++) {
                manager.beforeTestMethod(instance, method);
                Shop.Login login = context.getBean(Shop.Login.class);
                login.daily();
                assertThatCall(login::daily).isRateLimited().by("daily").retryAfter(Duration.ofMinutes(1));
                context.getBean(ManualTicker.class).advance(Duration.ofMinutes(1));
                assertThatCall(login::daily).isNotRateLimited();
                manager.afterTestMethod(instance, method, null);
                System.out.println("limited " + run);
            }
        }
    }
}
