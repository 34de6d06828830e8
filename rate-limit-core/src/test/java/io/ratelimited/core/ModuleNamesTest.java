package io.ratelimited.core;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/** Applications that are modules themselves require ours by names that do not depend on the names of files. */
class ModuleNamesTest {

    private static List<String> all(String element, Path pom) throws Exception {
        return Pattern.compile("<" + Pattern.quote(element) + ">([^<]+)</")
                .matcher(Files.readString(pom))
                .results()
                .map((MatchResult found) -> found.group(1))
                .toList();
    }

    @Test
    void everyJarHasAModuleNameOfItsOwn() throws Exception {
        Path root = Path.of("..");
        List<String> names = new ArrayList<>();
        for (String module : all("module", root.resolve("pom.xml"))) {
            Path pom = root.resolve(module).resolve("pom.xml");
            if (!all("packaging", pom).contains("pom")) {
                List<String> own = all("automatic.module.name", pom);
                assertThat(own).as(module).hasSize(1);
                names.addAll(own);
            }
        }
        assertThat(names)
                .contains("io.ratelimited.core", "io.ratelimited.redis")
                .doesNotHaveDuplicates()
                .allMatch(name -> name.matches("io(\\.[a-z]+)+"));
        assertThat(all("Automatic-Module-Name", root.resolve("pom.xml"))).containsExactly("${automatic.module.name}");
    }
}
