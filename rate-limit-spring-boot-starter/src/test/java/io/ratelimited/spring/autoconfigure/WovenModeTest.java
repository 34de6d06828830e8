package io.ratelimited.spring.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.Applications;
import io.ratelimited.spring.Fork;
import io.ratelimited.spring.InvalidRateLimitException;
import io.ratelimited.spring.internals.aop.ComposedRateLimitAspect;
import io.ratelimited.spring.internals.aop.RateLimitAspect;
import io.ratelimited.spring.woven.WovenApplication;
import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.aspectj.lang.ProceedingJoinPoint;
import org.aspectj.lang.annotation.Around;
import org.aspectj.lang.annotation.Aspect;
import org.aspectj.tools.ajc.Main;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Classes woven by AspectJ, in a process of their own with the weaver as its agent. */
@Tag("slow")
public final class WovenModeTest {

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
        "unlimitedByItself 2",
        "overriddenLater 2",
        "fallback 3",
        "fallbackFuture 3",
        "fallbackMono 3",
        "interface 2",
        "client 2",
        "clientDefault 2",
        "clientDefaultFuture 2",
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
        Path woven = weave(WovenApplication.class, location(RateLimitAspect.class) + File.pathSeparator + timing());
        assertThat(Fork.run(
                        directory,
                        woven + File.pathSeparator + Fork.classPath(entry -> true),
                        WovenApplication.class,
                        Fork.SHORT))
                .containsExactly(FACTS);
    }

    /** Has the compiler of AspectJ weave the classes beside one. */
    private Path weave(Class<?> type, String aspects) throws Exception {
        Path woven = directory.resolve("woven");
        Path plain = directory.resolve("plain");
        Path ofPackage =
                Files.createDirectories(plain.resolve(type.getPackageName().replace('.', '/')));
        try (Stream<Path> files =
                Files.list(location(type).resolve(type.getPackageName().replace('.', '/')))) {
            for (Path file : files.toList()) {
                Files.copy(file, ofPackage.resolve(file.getFileName()));
            }
        }
        List<String> errors = new ArrayList<>();
        Main.bareMain(
                new String[] {
                    "-inpath",
                    plain.toString(),
                    "-aspectpath",
                    aspects,
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

    /** A library with an aspect of the application. */
    private Path timing() throws Exception {
        Path library = directory.resolve("timing");
        String file = Timing.class.getName().replace('.', '/') + ".class";
        Files.createDirectories(library.resolve(file).getParent());
        Files.copy(location(Timing.class).resolve(file), library.resolve(file));
        return library;
    }

    private static Path location(Class<?> type) throws Exception {
        return Path.of(type.getProtectionDomain().getCodeSource().getLocation().toURI());
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

    /** The annotation of one of the methods {@code meta} is limited, and the aspect for those is missing. */
    @Test
    @Tag("proof")
    void classWovenByOneOfTheTwoAspectsIsAnErrorAtTheStart() throws Exception {
        assertThatThrownBy(() -> runWovenAtLoadTimeBy(RateLimitAspect.class))
                .hasMessageContaining(WovenApplication.Service.class.getName() + ".meta was not woven");
    }

    @Test
    void classWovenByOtherAspectsAtLoadTimeIsAnErrorAtTheStart() {
        assertThatThrownBy(() -> runWovenAtLoadTimeBy(Timing.class))
                .hasMessageContaining(WovenApplication.Service.class.getName())
                .hasMessageContaining("was not woven");
    }

    @Test
    @Tag("proof")
    void classWovenByOtherAspectsAtCompileTimeIsAnErrorAtTheStart() throws Exception {
        Path woven = weave(WovenApplication.class, timing().toString());
        assertThat(woven.resolve("io/ratelimited/spring/woven/WovenApplication$Service$AjcClosure1.class"))
                .exists();
        assertThatThrownBy(() -> Fork.run(
                        directory,
                        woven + File.pathSeparator + Fork.classPath(entry -> true),
                        WovenApplication.class,
                        Fork.SHORT))
                .hasMessageContaining(WovenApplication.Service.class.getName())
                .hasMessageContaining("was not woven");
    }

    @Test
    @Tag("proof")
    void otherAspectsMayBeWovenIntoTheSameMethods() throws Exception {
        assertThat(runWovenAtLoadTimeBy(RateLimitAspect.class, ComposedRateLimitAspect.class, Timing.class))
                .containsExactly(FACTS);
    }

    private List<String> runWovenAtLoadTimeBy(Class<?>... aspects) throws Exception {
        String names = Stream.of(aspects)
                .map(aspect -> "<aspect name=\"" + aspect.getName() + "\"/>")
                .collect(Collectors.joining());
        Path configuration = Files.writeString(directory.resolve("aop.xml"), """
                <aspectj>
                  <weaver options="-warn:none -Xlint:ignore"><include within="io.ratelimited.spring.woven..*"/></weaver>
                  <!-- <aspect name="io.ratelimited.spring.internals.aop.RateLimitAspect"/> -->
                  <aspects>%s</aspects>
                </aspectj>
                """.formatted(names));
        return Fork.run(
                directory,
                Fork.classPath(entry -> true),
                WovenApplication.class,
                Fork.SHORT,
                "-javaagent:" + Fork.jar("aspectjweaver"),
                "-Dorg.aspectj.weaver.loadtime.configuration=" + configuration.toUri());
    }

    /** An aspect of the application. */
    @Aspect
    public static final class Timing {

        private static final Timing WOVEN = new Timing();

        private Timing() {}

        public static Timing aspectOf() {
            return WOVEN;
        }

        @Around("execution(* io.ratelimited.spring.woven.WovenApplication.*.*(..))")
        public Object time(ProceedingJoinPoint call) throws Throwable {
            return Objects.requireNonNull(call).proceed();
        }
    }
}
