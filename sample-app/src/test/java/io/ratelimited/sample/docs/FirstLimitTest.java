package io.ratelimited.sample.docs;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.sample.Http;
import io.ratelimited.sample.SnippetCompiler;
import java.io.IOException;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.core.io.DefaultResourceLoader;

/** The first section of the README, followed: its controller in a web application of one's own, called. */
class FirstLimitTest {

    @TempDir
    private Path directory;

    @Test
    void theDependencyIsThatOfThisBuild() throws Exception {
        String pom = Files.readString(Pages.ROOT.resolve("pom.xml"));
        assertThat(first("xml"))
                .contains("<groupId>" + element(pom, "groupId") + "<", "<version>" + element(pom, "version") + "<")
                .contains("<artifactId>rate-limit-spring-boot-starter<");
        assertThat(first("groovy"))
                .contains("'" + element(pom, "groupId") + ":rate-limit-spring-boot-starter:" + element(pom, "version")
                        + "'");
        assertThat(Pages.ROOT.resolve("rate-limit-spring-boot-starter/pom.xml")).exists();
    }

    @ParameterizedTest
    @ValueSource(strings = {"docs/cluster.md", "docs/testing-your-limits.md", "docs/engineering/releasing.md"})
    void aPageNamesTheVersionOfThisBuildOrItsRelease(String page) throws IOException {
        String version = element(Files.readString(Pages.ROOT.resolve("pom.xml")), "version");
        assertThat(Pattern.compile("<artifactId>rate-limit-[a-z-]+</artifactId>\\s*<version>([^<]+)<")
                        .matcher(Files.readString(Pages.ROOT.resolve(page)))
                        .results()
                        .map(shown -> shown.group(1)))
                .isNotEmpty()
                .isSubsetOf(version, version.replace("-SNAPSHOT", ""));
    }

    @Test
    void theSixthCallIsRefused() throws Exception {
        try (ConfigurableApplicationContext own = start("")) {
            List<HttpResponse<String>> answers = sixCalls(own);
            assertThat(answers).extracting(HttpResponse::statusCode).containsExactly(200, 200, 200, 200, 200, 429);
            assertThat(answers.get(0).body()).isEqualTo("ACME 42.00");
            assertThat(answers.get(5).headers().firstValue("Retry-After")).isPresent();
        }
    }

    @Test
    void theYamlChangesTheLimitWithoutABuild() throws Exception {
        try (ConfigurableApplicationContext own = start(first("yaml"))) {
            assertThat(sixCalls(own))
                    .allMatch(answer -> answer.statusCode() == 200)
                    .allMatch(answer -> answer.headers()
                            .firstValue("RateLimit-Policy")
                            .orElse("")
                            .equals("\"quotes\";q=200;w=2"));
        }
    }

    private static List<HttpResponse<String>> sixCalls(ConfigurableApplicationContext own) {
        Http http = new Http(own.getEnvironment().getRequiredProperty("local.server.port", Integer.class));
        return Stream.generate(() -> http.get("/quotes/ACME")).limit(6).toList();
    }

    private ConfigurableApplicationContext start(String yaml) throws Exception {
        Class<?> controller =
                SnippetCompiler.compile(List.of(first("java")), directory).get(0);
        Path configuration = Files.writeString(directory.resolve("application.yml"), yaml);
        return new SpringApplicationBuilder(Own.class, controller)
                .resourceLoader(new DefaultResourceLoader(controller.getClassLoader()))
                .run(
                        "--server.port=0",
                        "--server.shutdown=immediate",
                        "--spring.config.location=" + configuration.toUri());
    }

    /** The first block of a kind in the README. */
    static String first(String kind) throws IOException {
        Matcher block = Pattern.compile("(?ms)^```" + kind + "\\n(.*?)^```$")
                .matcher(Files.readString(Pages.ROOT.resolve("README.md")));
        assertThat(block.find()).isTrue();
        return block.group(1);
    }

    private static String element(String xml, String name) {
        Matcher element = Pattern.compile("<" + name + ">([^<]+)<").matcher(xml);
        assertThat(element.find()).isTrue();
        return element.group(1);
    }

    @EnableAutoConfiguration
    static class Own {}
}
