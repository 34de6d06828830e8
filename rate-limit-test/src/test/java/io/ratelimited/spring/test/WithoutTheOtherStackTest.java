package io.ratelimited.spring.test;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.spring.Fork;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Pattern;
import javax.tools.JavaCompiler;
import javax.tools.StandardJavaFileManager;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * The compiler reads the parameter types of every method that a name might mean: assertions may name no type that the
 * application under test has not.
 */
class WithoutTheOtherStackTest {

    private static final String SOURCE = """
            import static io.ratelimited.spring.test.%1$s.assertThat;
            import static io.ratelimited.spring.test.%1$s.assertThatCall;
            import static org.assertj.core.api.Assertions.assertThat;

            class Uses {
                void uses(io.ratelimited.core.Decision decision) {
                    assertThat(decision).isRateLimited().by("login");
                    assertThatCall(() -> {}).isNotRateLimited();
                    assertThat("text").isNotEmpty();
                }
            }
            """;

    @ParameterizedTest
    @CsvSource({
        "RateLimitAssertions, spring-webflux|reactor|reactive-streams|jakarta.servlet|tomcat|jetty|spring-webmvc",
        "RateLimitAssertions, spring-webflux|reactor|reactive-streams",
        "DecisionAssertions, spring-web|reactor|reactive-streams|jakarta.servlet|tomcat|jetty"
    })
    void assertionsCompile(String assertions, String missing, @TempDir Path directory) throws Exception {
        Path source = Files.writeString(directory.resolve("Uses.java"), SOURCE.formatted(assertions));
        String classPath = Fork.classPath(entry -> !Pattern.compile("(" + missing + ").*")
                .matcher(Path.of(entry).getFileName().toString())
                .matches());
        StringWriter messages = new StringWriter();
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        try (StandardJavaFileManager files = compiler.getStandardFileManager(null, null, null)) {
            assertThat(compiler.getTask(
                                    messages,
                                    files,
                                    null,
                                    List.of("-proc:none", "-cp", classPath, "-d", directory.toString()),
                                    null,
                                    files.getJavaFileObjects(source))
                            .call())
                    .as(messages::toString)
                    .isTrue();
        }
    }
}
