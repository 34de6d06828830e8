package io.ratelimited.redis.simulation;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.redis.simulation.Simulations.Plans;
import java.io.File;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** The simulation notices changes of the shipped code: those of {@link MethodMutants} and {@link ScriptMutants}. */
@Tag("once")
class MutantsTest {

    private static final String CLASS_PATH = System.getProperty("java.class.path");
    /** Of processor time. */
    private static final double SECONDS = Double.parseDouble(System.getProperty("simulation.seconds", "60"));

    static List<Mutant> mutants() {
        return Stream.<Mutant>concat(MethodMutants.all().stream(), ScriptMutants.all().stream())
                .toList();
    }

    @ParameterizedTest
    @MethodSource("mutants")
    @Tag("proof")
    void aMutantFindsWhatItChanges(Mutant mutant, @TempDir Path classes) throws IOException {
        mutant.writeTo(classes);
        assertThat(classes).isNotEmptyDirectory();
    }

    @Test
    void aMutantWhoseTargetDoesNotExistSaysWhichItIs(@TempDir Path classes) {
        Stream.<Mutant>of(
                        MethodMutant.skipped("breaks", Plans.TINY, "internals.connection.Absent", "look", "connect"),
                        MethodMutant.skipped("breaks", Plans.TINY, "internals.connection.Server", "absent", "connect"),
                        MethodMutant.skipped("breaks", Plans.TINY, "internals.connection.Server", "look", "absent"),
                        MethodMutant.unwritten("breaks", Plans.TINY, "internals.connection.Server", "look", "absent"),
                        MethodMutant.changed(
                                "breaks",
                                Plans.TINY,
                                "internals.connection.Server",
                                "absent",
                                MethodMutants.NotAsking.class),
                        ScriptMutant.functions("breaks", Plans.TINY, List.of("fixed_window.absent"), "nil"))
                .forEach(mutant -> assertThatThrownBy(() -> mutant.writeTo(classes))
                        .isInstanceOf(AssertionError.class)
                        .hasMessageContaining("bsent")
                        .hasMessageContaining("for the mutant: breaks"));
    }

    @Test
    @Tag("proof")
    @Tag("mutants")
    void theShippedCodeItselfShowsNothing(@TempDir Path directory) throws Exception {
        for (Plans plans : Plans.values()) {
            assertThat(noticed(plans, directory, 1)).isNull();
        }
    }

    @ParameterizedTest
    @MethodSource("mutants")
    @Tag("proof")
    @Tag("mutants")
    void aMutantIsNoticedWithinAMinute(Mutant mutant, @TempDir Path classes) throws Exception {
        mutant.writeTo(classes);
        Lua.shared().lastFailure();
        long begin = ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
        String noticed = noticed(mutant.plans(), classes, SECONDS);
        double seconds = (ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime() - begin) / 1e9;
        System.out.printf(
                Locale.ROOT,
                "MUTANT %s after %.1f s: %s: %s%n",
                noticed == null ? "SURVIVES" : "noticed",
                seconds,
                mutant,
                noticed);
        assertThat(Lua.shared().lastFailure()).as("the mutant cannot run").isNull();
        assertThat(noticed).as(mutant.breaks()).isNotNull();
    }

    /** The first line of what the simulation reports about changed classes; null when it notices nothing. */
    private static @Nullable String noticed(Plans plans, Path classes, double seconds) throws Exception {
        List<URL> urls = new ArrayList<>();
        urls.add(classes.toUri().toURL());
        for (String entry : CLASS_PATH.split(File.pathSeparator, -1)) {
            urls.add(Path.of(entry).toUri().toURL());
        }
        try (URLClassLoader loader = new Changed(urls.toArray(URL[]::new))) {
            Method run = loader.loadClass(Simulations.class.getName())
                    .getDeclaredMethod("runFor", String.class, long.class, double.class);
            run.setAccessible(true);
            run.invoke(null, plans.name(), 1_000, seconds);
            return null;
        } catch (InvocationTargetException ex) {
            if (ex.getCause() instanceof AssertionError broken) {
                return String.valueOf(broken.getMessage()).lines().findFirst().orElse("");
            }
            // A mutant that cannot run shows nothing.
            throw ex;
        }
    }

    /** Loads the classes of the project anew. */
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
                if (!name.startsWith("io.ratelimited.") || COMMON.contains(name)) {
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
