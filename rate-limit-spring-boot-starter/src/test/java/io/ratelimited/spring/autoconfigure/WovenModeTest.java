package io.ratelimited.spring.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.Applications;
import io.ratelimited.spring.Fork;
import io.ratelimited.spring.InvalidRateLimitException;
import io.ratelimited.spring.internals.aop.RateLimitAspect;
import io.ratelimited.spring.woven.WovenApplication;
import java.io.File;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.aspectj.tools.ajc.Main;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Classes woven by AspectJ, in a process of their own with the weaver as its agent. */
final class WovenModeTest {

    private static final String[] FACTS = {
        "public 2",
        "self 2",
        "private 2",
        "static 2",
        "new 2",
        "meta 2",
        "future 2",
        "mono 2",
        "charged 3",
        "override 2",
        "unannotated 2",
        "unannotatedBySelf 2",
        "unannotatedByProxy 2",
        "overriddenByAnother 2",
        "overriddenLater 2",
        "fallback 3",
        "fallbackFuture 3",
        "fallbackMono 3",
        "interface 2",
        "remaining 1",
        "another 2",
        "closed 3"
    };

    @TempDir
    private Path directory;

    @Test
    void classesWovenAtLoadTimeAreLimitedHoweverTheyAreCalledAndNeverTwice() throws Exception {
        assertThat(Fork.run(
                        directory,
                        Fork.classPath(entry -> true),
                        WovenApplication.class,
                        Fork.SHORT,
                        "-javaagent:" + Fork.jar("aspectjweaver")))
                .containsExactly(FACTS);
    }

    @Test
    void classesWovenAtCompileTimeAreLimitedHoweverTheyAreCalledAndNeverTwice() throws Exception {
        Path woven = weave(WovenApplication.class);
        assertThat(Fork.run(
                        directory,
                        woven + File.pathSeparator + Fork.classPath(entry -> true),
                        WovenApplication.class,
                        Fork.SHORT))
                .containsExactly(FACTS);
    }

    /** Has the compiler of AspectJ weave the classes beside one, with this module as its aspect library. */
    private Path weave(Class<?> type) throws Exception {
        Path woven = directory.resolve("woven");
        Path plain = directory.resolve("plain");
        Path ofPackage =
                Files.createDirectories(plain.resolve(type.getPackageName().replace('.', '/')));
        try (Stream<Path> files = Files.list(Path.of(type.getResource(".").toURI()))) {
            for (Path file : files.toList()) {
                Files.copy(file, ofPackage.resolve(file.getFileName()));
            }
        }
        URI library = RateLimitAspect.class
                .getProtectionDomain()
                .getCodeSource()
                .getLocation()
                .toURI();
        List<String> errors = new ArrayList<>();
        Main.bareMain(
                new String[] {
                    "-inpath",
                    plain.toString(),
                    "-aspectpath",
                    Path.of(library).toString(),
                    "-d",
                    woven.toString(),
                    "-classpath",
                    Fork.classPath(entry -> true),
                    "-17"
                },
                false,
                errors,
                errors,
                new ArrayList<>(),
                new ArrayList<>(),
                new ArrayList<>());
        assertThat(errors).isEmpty();
        return woven;
    }

    @Test
    void classThatShouldBeWovenAndIsNotIsAnErrorAtTheStart() {
        assertThatThrownBy(() -> Applications.start(
                                new ManualTicker(),
                                new Class<?>[] {WovenApplication.Service.class},
                                "rate-limit.aspect.mode=woven",
                                "rate-limit.defaults.rate=2/h")
                        .close())
                .rootCause()
                .isInstanceOf(InvalidRateLimitException.class)
                .hasMessageContaining("rate-limit.aspect.mode is woven")
                .hasMessageFindingMatch("WovenApplication\\$Service\\.\\w+ was not woven");
    }

    /** The annotation of the method {@code meta} is limited, and the aspect for those is missing. */
    @Test
    void classWovenByOneOfTheTwoAspectsIsAnErrorAtTheStart() throws Exception {
        Path aspects = Files.writeString(directory.resolve("aop.xml"), """
                <aspectj>
                  <weaver options="-warn:none -Xlint:ignore"><include within="io.ratelimited.spring.woven..*"/></weaver>
                  <aspects><aspect name="io.ratelimited.spring.internals.aop.RateLimitAspect"/></aspects>
                </aspectj>
                """);
        assertThatThrownBy(() -> Fork.run(
                        directory,
                        Fork.classPath(entry -> true),
                        WovenApplication.class,
                        Fork.SHORT,
                        "-javaagent:" + Fork.jar("aspectjweaver"),
                        "-Dorg.aspectj.weaver.loadtime.configuration=" + aspects.toUri()))
                .hasMessageContaining(WovenApplication.Service.class.getName() + ".meta was not woven");
    }
}
