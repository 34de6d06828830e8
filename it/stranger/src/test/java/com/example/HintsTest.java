package com.example;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.testing.ManualTicker;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.springframework.aot.hint.RuntimeHints;
import org.springframework.aot.hint.RuntimeHintsRegistrar;
import org.springframework.aot.hint.TypeReference;
import org.springframework.core.io.support.SpringFactoriesLoader;

/**
 * The hints of native images for the copy of Caffeine in the jar of the core. The copy loads its caches by name, and the
 * name is that of the copy in the released jar only.
 */
class HintsTest {

    private static final String COPY = "io.ratelimited.core.caffeine.cache.";
    /** A cache and its entries; their superclasses have two letters. */
    private static final Pattern LOADED_BY_NAME = Pattern.compile(Pattern.quote(COPY) + "[A-Z]{3,}(?= )");

    @Test
    void eachHintedClassIsInTheJar() {
        assertThat(hinted())
                .isNotEmpty()
                .allSatisfy(name -> assertThatCode(() -> Class.forName(name)).doesNotThrowAnyException());
    }

    @Test
    void eachClassThatTheCopyLoadsByNameIsHinted() throws Exception {
        Process process = new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "-Xlog:class+load",
                        "-cp",
                        System.getProperty("java.class.path"),
                        HintsTest.class.getName())
                .redirectErrorStream(true)
                .start();
        String log = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertThat(process.waitFor()).as(log).isZero();
        assertThat(LOADED_BY_NAME.matcher(log).results().map(MatchResult::group))
                .isNotEmpty()
                .isSubsetOf(hinted());
    }

    /** What keeps keys: logs in a cache bounded by weight, all else in one bounded by number. */
    public static void main(String[] arguments) {
        for (Algorithm algorithm : List.of(Algorithm.TOKEN_BUCKET, Algorithm.SLIDING_LOG)) {
            Limit limit = Limit.of("hints", algorithm).rate("5/s").build();
            new InMemoryRateLimiter(limit, new ManualTicker(), 100).tryAcquire("ann", 1);
        }
    }

    private static Set<String> hinted() {
        RuntimeHints hints = new RuntimeHints();
        ClassLoader loader = HintsTest.class.getClassLoader();
        SpringFactoriesLoader.forResourceLocation("META-INF/spring/aot.factories", loader)
                .load(RuntimeHintsRegistrar.class)
                .stream()
                .filter(registrar -> registrar.getClass().getName().startsWith("io.ratelimited."))
                .forEach(registrar -> registrar.registerHints(hints, loader));
        return hints.reflection()
                .typeHints()
                .map(hint -> hint.getType())
                .map(TypeReference::getName)
                .filter(name -> name.startsWith(COPY))
                .collect(Collectors.toCollection(TreeSet::new));
    }
}
