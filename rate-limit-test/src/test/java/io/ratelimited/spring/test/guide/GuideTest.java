package io.ratelimited.spring.test.guide;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;

/** The sources of this package are those of the pages, which need WebFlux. */
class GuideTest {

    private static final Path SOURCES = Path.of("src/test/java/io/ratelimited/spring/test/guide");

    @Test
    void thePagesShowTheseSources() throws IOException {
        assertThat(page("docs/testing-your-limits.md")).contains(source("QuoteControllerFluxTest"));
        assertThat(page("README.md")).contains(source("QuoteController"));
    }

    private static String page(String name) throws IOException {
        return Files.readString(Path.of("..", name));
    }

    /** As on a page: without its package. */
    private static String source(String name) throws IOException {
        return "```java\n"
                + Files.readString(SOURCES.resolve(name + ".java")).replaceFirst("package .*;\n\n", "")
                + "```\n";
    }
}
