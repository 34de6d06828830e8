package io.ratelimited.sample.docs;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;

/** What there is to read: the pages at the top of the repository and those of the guide. */
final class Pages {

    static final Path ROOT = Path.of("..");

    private Pages() {}

    /** Paths of all pages from the top of the repository. */
    static List<String> all() throws IOException {
        try (Stream<Path> top = Files.list(ROOT);
                Stream<Path> guide = Files.walk(ROOT.resolve("docs"))) {
            return Stream.concat(top, guide)
                    .map(path -> ROOT.relativize(path).toString().replace('\\', '/'))
                    .filter(path -> path.endsWith(".md"))
                    .sorted()
                    .toList();
        }
    }
}
