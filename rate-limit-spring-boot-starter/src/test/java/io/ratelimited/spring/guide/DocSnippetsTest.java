package io.ratelimited.spring.guide;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.autoconfigure.RateLimitAutoConfiguration;
import io.ratelimited.spring.internals.aop.ComposedRateLimitAspect;
import io.ratelimited.spring.internals.aop.LimitedMethods;
import io.ratelimited.spring.internals.aop.RateLimitAspect;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.springframework.boot.autoconfigure.aop.AopAutoConfiguration;
import org.springframework.boot.env.YamlPropertySourceLoader;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.core.env.PropertySource;
import org.springframework.core.io.ByteArrayResource;

/**
 * The snippets of the guide: those of a section are one application, which is compiled and started, and whose limits are
 * resolved.
 */
@TestInstance(Lifecycle.PER_CLASS)
@Tag("slow")
final class DocSnippetsTest {

    private static final Path GUIDE = Path.of("../docs/annotation.md");
    private static final Path KOTLIN = Path.of("src/test/kotlin/io/ratelimited/spring/guide/Newsletters.kt");
    private static final Pattern SECTION = Pattern.compile("(?ms)^## (.+?)$(.*?)(?=^## |\\z)");
    private static final Pattern SNIPPET = Pattern.compile("(?ms)^```(\\w+)\\n(.*?)^```$");
    private static final String PACKAGE = "package guide;\n";

    @TempDir
    private Path directory;

    Stream<Section> sections() throws IOException {
        List<Section> sections = new ArrayList<>();
        Matcher matcher = SECTION.matcher(Files.readString(GUIDE));
        while (matcher.find()) {
            sections.add(Section.of(matcher.group(1), matcher.group(2)));
        }
        assertThat(sections).hasSizeGreaterThan(8);
        return sections.stream().filter(section -> !section.java.isEmpty() || !section.yaml.isEmpty());
    }

    @ParameterizedTest
    @MethodSource("sections")
    void snippetsOfASectionAreAnApplicationThatStarts(Section section) throws Exception {
        Path classes = compile(section.java);
        try (URLClassLoader loader = new URLClassLoader(
                        new URL[] {classes.toUri().toURL()}, getClass().getClassLoader());
                AnnotationConfigApplicationContext context = new AnnotationConfigApplicationContext()) {
            context.setClassLoader(loader);
            for (String yaml : section.yaml) {
                for (PropertySource<?> source : new YamlPropertySourceLoader()
                        .load(
                                "snippet " + yaml.hashCode(),
                                new ByteArrayResource(yaml.getBytes(StandardCharsets.UTF_8)))) {
                    context.getEnvironment().getPropertySources().addFirst(source);
                }
            }
            context.registerBean(io.ratelimited.core.Ticker.class, () -> new ManualTicker());
            context.register(AopAutoConfiguration.class, RateLimitAutoConfiguration.class);
            List<Class<?>> beans = beans(classes, loader);
            beans.forEach(context::register);
            context.refresh();
            LimitedMethods methods = context.getBean(LimitedMethods.class);
            int limited = 0;
            for (Class<?> bean : beans) {
                assertThat(context.getBean(bean)).isNotNull();
                for (Method method : bean.getDeclaredMethods()) {
                    limited += methods.find(method, bean) == null ? 0 : 1;
                }
            }
            assertThat(limited > 0).isEqualTo(section.java.stream().anyMatch(java -> java.contains("@RateLimited")));
        }
    }

    @Test
    void theAspectsToWeaveHaveTheirNames() throws IOException {
        Matcher xml = SNIPPET.matcher(Files.readString(Path.of("../docs/engineering/woven.md")));
        assertThat(xml.find()).isTrue();
        assertThat(xml.group(2)).contains(RateLimitAspect.class.getName(), ComposedRateLimitAspect.class.getName());
    }

    private Path compile(List<String> snippets) throws IOException {
        Path classes = Files.createTempDirectory(directory, "section");
        List<String> arguments =
                new ArrayList<>(List.of("-parameters", "-proc:none", "-d", classes.toString(), "-cp", classPath()));
        for (int i = 0; i < snippets.size(); i++) {
            Path source = classes.resolve("Snippet" + i + ".java");
            arguments.add(Files.writeString(source, PACKAGE + snippets.get(i)).toString());
        }
        if (!snippets.isEmpty()) {
            var messages = new java.io.ByteArrayOutputStream();
            int status = ToolProvider.getSystemJavaCompiler()
                    .run(null, messages, messages, arguments.toArray(String[]::new));
            assertThat(status)
                    .as(() -> messages.toString(StandardCharsets.UTF_8))
                    .isZero();
        }
        return classes;
    }

    private static String classPath() {
        return System.getProperty("java.class.path").replace(';', File.pathSeparatorChar);
    }

    private static List<Class<?>> beans(Path classes, ClassLoader loader) throws Exception {
        Map<String, Class<?>> beans = new TreeMap<>();
        Path guide = classes.resolve("guide");
        if (Files.isDirectory(guide)) {
            try (Stream<Path> files = Files.list(guide)) {
                for (Path file : files.toList()) {
                    String name = file.getFileName().toString().replace(".class", "");
                    Class<?> type = loader.loadClass("guide." + name);
                    if (type.isAnnotationPresent(org.springframework.stereotype.Service.class)
                            && !Modifier.isAbstract(type.getModifiers())) {
                        beans.put(name, type);
                    }
                }
            }
        }
        return List.copyOf(beans.values());
    }

    /** A section of the guide. */
    record Section(String title, List<String> java, List<String> yaml) {

        private static Section of(String title, String text) {
            Section section = new Section(title, new ArrayList<>(), new ArrayList<>());
            Matcher matcher = SNIPPET.matcher(text);
            while (matcher.find()) {
                switch (matcher.group(1)) {
                    case "java" -> section.java.add(matcher.group(2));
                    case "yaml" -> section.yaml.add(matcher.group(2));
                    case "kotlin" -> assertThat(matcher.group(2)).isEqualTo(kotlin());
                    default -> throw new IllegalStateException("no test for " + matcher.group(1));
                }
            }
            return section;
        }

        /** What KotlinAnnotationTest starts, without its package: only the build compiles Kotlin. */
        private static String kotlin() {
            try {
                return Files.readString(KOTLIN).replaceFirst("package .*\n\n", "");
            } catch (IOException ex) {
                throw new UncheckedIOException(ex);
            }
        }

        @Override
        public String toString() {
            return title;
        }
    }
}
