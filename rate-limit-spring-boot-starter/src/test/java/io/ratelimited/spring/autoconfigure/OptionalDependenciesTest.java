package io.ratelimited.spring.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.spring.Fork;
import java.nio.file.Path;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** An application that has none of the optional dependencies, in a process of its own. */
@Tag("slow")
final class OptionalDependenciesTest {

    private static final Pattern OPTIONAL = Pattern.compile(
            "(reactor|reactive-streams|rxjava|kotlin|context-propagation|micrometer|jakarta.servlet|tomcat|jetty|"
                    + "assertj|junit|mockito|spring-test|spring-boot-test|springdoc|swagger|spring-graphql|graphql-java|java-dataloader|spring-web|spring-boot-(actuator|restclient|health|web|data|micrometer|servlet|jackson|http|reactor)).*");

    @Test
    void methodsAreLimitedWithoutThem(@TempDir Path directory) throws Exception {
        assertThat(Fork.run(
                        directory,
                        Fork.classPath(entry -> !OPTIONAL.matcher(
                                        Path.of(entry).getFileName().toString())
                                .matches()),
                        BareApplication.class,
                        Fork.SHORT))
                .containsExactly("blocking 2", "waited 1");
    }
}
