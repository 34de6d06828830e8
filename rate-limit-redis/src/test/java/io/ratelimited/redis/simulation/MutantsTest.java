package io.ratelimited.redis.simulation;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.File;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import javax.tools.ToolProvider;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** The simulation notices changes of the shipped code: {@code mutants.txt} has the list. See {@link MethodMutantsTest}. */
class MutantsTest {

    private static final Path SOURCES = Path.of("src", "main");
    /** Of processor time. */
    private static final double SECONDS = Double.parseDouble(System.getProperty("simulation.seconds", "60"));

    /**
     * A change. Runs of white space in the original stand for any.
     *
     * @param plans which schedules show it
     */
    record Mutant(String breaks, Path file, String plans, String original, String changed) {

        private Pattern pattern() {
            return Pattern.compile(Pattern.compile("\\s+")
                    .splitAsStream(original)
                    .map(Pattern::quote)
                    .collect(Collectors.joining("\\s+")));
        }

        private String source() throws IOException {
            return Files.readString(SOURCES.resolve(file));
        }

        @Override
        public String toString() {
            return breaks;
        }
    }

    static List<Mutant> mutants() throws IOException {
        String list;
        try (var in = MutantsTest.class.getResourceAsStream("mutants.txt")) {
            list = new String(Objects.requireNonNull(in).readAllBytes(), StandardCharsets.UTF_8);
        }
        List<Mutant> all = new ArrayList<>();
        for (String entry : Pattern.compile("\n\n").splitAsStream(list).toList()) {
            List<String> lines = entry.strip().lines().toList();
            if (!lines.get(0).startsWith("#")) {
                String[] place = lines.get(1).split(" ", -1);
                all.add(new Mutant(
                        lines.get(0),
                        Path.of(place[0]),
                        place.length == 1 ? "TINY" : place[1],
                        lines.get(2).substring(2),
                        lines.get(3).substring(2)));
            }
        }
        return all;
    }

    @Test
    void everyMutantFitsTheShippedCode() throws IOException {
        assertThat(mutants()).hasSizeGreaterThanOrEqualTo(49);
        for (Mutant mutant : mutants()) {
            assertThat(mutant.pattern().matcher(mutant.source()).results().count())
                    .as("%s: %s", mutant.file, mutant.original)
                    .isEqualTo(1);
        }
    }

    @Test
    @Tag("proof")
    void theShippedCodeItselfShowsNothing(@TempDir Path directory) throws Exception {
        String classPath = System.getProperty("java.class.path");
        for (Simulations.Plans plans : Simulations.Plans.values()) {
            assertThat(noticed(plans.name(), directory, classPath, 2)).isNull();
        }
    }

    @ParameterizedTest
    @MethodSource("mutants")
    @Tag("proof")
    void aMutantIsNoticedWithinAMinute(Mutant mutant, @TempDir Path directory) throws Exception {
        Path changed = directory.resolve(mutant.file.getFileName().toString());
        Files.writeString(
                changed,
                mutant.pattern().matcher(mutant.source()).replaceFirst(Matcher.quoteReplacement(mutant.changed)));
        String classPath = System.getProperty("java.class.path");
        Path classes = Files.createDirectories(directory.resolve("classes"));
        if (mutant.file.startsWith("java")) {
            int failed = ToolProvider.getSystemJavaCompiler()
                    .run(
                            null,
                            null,
                            null,
                            "-proc:none",
                            "-nowarn",
                            "-d",
                            classes.toString(),
                            "-cp",
                            classPath,
                            changed.toString());
            assertThat(failed).as("compiles").isZero();
        } else {
            Path resource = classes.resolve(Path.of("resources").relativize(mutant.file));
            Files.createDirectories(Objects.requireNonNull(resource.getParent()));
            Files.copy(changed, resource);
        }
        long begin = ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
        String noticed = noticed(mutant.plans, classes, classPath, SECONDS);
        double seconds = (ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime() - begin) / 1e9;
        System.out.printf(
                Locale.ROOT,
                "MUTANT %s after %.1f s: %s: %s%n",
                noticed == null ? "SURVIVES" : "noticed",
                seconds,
                mutant,
                noticed);
        assertThat(noticed).as(mutant.breaks).isNotNull();
    }

    /** The first line of what the simulation reports about changed classes; null when it notices nothing. */
    static @Nullable String noticed(String plans, Path classes, String classPath, double seconds) throws Exception {
        List<URL> urls = new ArrayList<>();
        urls.add(classes.toUri().toURL());
        for (String entry :
                Pattern.compile(File.pathSeparator).splitAsStream(classPath).toList()) {
            urls.add(Path.of(entry).toUri().toURL());
        }
        try (URLClassLoader loader = new Changed(urls.toArray(URL[]::new))) {
            Method run = loader.loadClass(Simulations.class.getName())
                    .getDeclaredMethod("runFor", String.class, long.class, double.class);
            run.setAccessible(true);
            run.invoke(null, plans, 1_000, seconds);
            return null;
        } catch (InvocationTargetException ex) {
            return String.valueOf(ex.getCause().getMessage())
                    .lines()
                    .findFirst()
                    .orElse("");
        }
    }

    /** Loads the classes of the module anew. */
    private static final class Changed extends URLClassLoader {

        /** What runs the scripts: those that are as they were stay compiled. */
        private static final Set<String> COMMON = Stream.of(Lua.class, Fields.class, RedisError.class)
                .map(Class::getName)
                .collect(Collectors.toSet());

        private Changed(URL[] urls) {
            super(urls, MutantsTest.class.getClassLoader());
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            synchronized (getClassLoadingLock(name)) {
                if (!name.startsWith("io.ratelimited.redis.") || COMMON.contains(name)) {
                    return super.loadClass(name, resolve);
                }
                Class<?> loaded = findLoadedClass(name);
                return loaded == null ? findClass(name) : loaded;
            }
        }

        @Override
        public @Nullable URL getResource(String name) {
            URL changed = findResource(name);
            return changed == null ? super.getResource(name) : changed;
        }
    }
}
