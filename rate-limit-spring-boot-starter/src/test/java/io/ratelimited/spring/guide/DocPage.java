package io.ratelimited.spring.guide;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.StringWriter;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import javax.tools.JavaCompiler;
import javax.tools.StandardJavaFileManager;
import javax.tools.StandardLocation;
import javax.tools.ToolProvider;
import org.springframework.boot.env.YamlPropertySourceLoader;
import org.springframework.core.env.EnumerablePropertySource;
import org.springframework.core.io.ByteArrayResource;

/** The snippets of a section of the guide: compiled in a class loader of their own, and as properties. */
record DocPage(String text) {

    private static final Pattern SECTION = Pattern.compile("(?ms)^## (.+?)$(.*?)(?=^## |\\z)");
    private static final JavaCompiler COMPILER = ToolProvider.getSystemJavaCompiler();
    /** One for all snippets, so that the archives of the class path are opened once. */
    private static final StandardJavaFileManager FILES =
            COMPILER.getStandardFileManager(null, null, StandardCharsets.UTF_8);

    private static final Pattern CLASS = Pattern.compile("(?m)^(?:final )?(?:class|@?interface) (\\w+)");

    /** The sections of a page by title. */
    static Map<String, DocPage> sections(String page) throws Exception {
        Map<String, DocPage> sections = new LinkedHashMap<>();
        SECTION.matcher(Files.readString(Path.of("../docs", page)))
                .results()
                .forEach(section -> sections.put(section.group(1), new DocPage(section.group(2))));
        return sections;
    }

    /** What it shows of Java and YAML. */
    static DocPage page(Path page) throws Exception {
        return new DocPage(Files.readString(page));
    }

    static DocPage section(String page, String title) throws Exception {
        Map<String, DocPage> sections = sections(page);
        assertThat(sections).containsKey(title);
        return sections.get(title);
    }

    List<String> blocks(String kind) {
        return Pattern.compile("(?ms)^```" + kind + "\\n(.*?)^```$")
                .matcher(text)
                .results()
                .map(block -> block.group(1))
                .toList();
    }

    /** What the section says in YAML. */
    String[] properties() throws Exception {
        List<String> properties = new ArrayList<>();
        for (String yaml : blocks("yaml")) {
            EnumerablePropertySource<?> source = (EnumerablePropertySource<?>) new YamlPropertySourceLoader()
                    .load("page", new ByteArrayResource(yaml.getBytes(StandardCharsets.UTF_8)))
                    .get(0);
            Stream.of(source.getPropertyNames())
                    .map(name -> name + "=" + source.getProperty(name))
                    .forEach(properties::add);
        }
        return properties.toArray(String[]::new);
    }

    /** The classes of the section by name. */
    Map<String, Class<?>> classes(Path directory) throws Exception {
        Map<String, Class<?>> classes = new LinkedHashMap<>();
        List<Class<?>> compiled = compile(blocks("java"), directory);
        for (String java : blocks("java")) {
            var name = CLASS.matcher(java);
            assertThat(name.find()).isTrue();
            String simple = name.group(1);
            compiled.stream()
                    .filter(type -> type.getName().equals("guide." + simple))
                    .forEach(type -> classes.put(simple, type));
        }
        return classes;
    }

    /** The classes of the sources, of one package and in one loader. */
    static List<Class<?>> compile(List<String> sources, Path directory) throws Exception {
        List<Path> snippets = new ArrayList<>();
        for (String java : sources) {
            Path source = directory.resolve("Snippet" + snippets.size() + ".java");
            snippets.add(Files.writeString(source, "package guide;\n" + java));
        }
        // Without it, javac would open the whole class path again to look for plugins.
        FILES.setLocation(StandardLocation.ANNOTATION_PROCESSOR_PATH, List.of());
        FILES.setLocation(StandardLocation.CLASS_OUTPUT, List.of(directory.toFile()));
        StringWriter messages = new StringWriter();
        boolean compiled = COMPILER.getTask(
                        messages,
                        FILES,
                        null,
                        List.of("-parameters", "-proc:none"),
                        null,
                        FILES.getJavaFileObjectsFromPaths(snippets))
                .call();
        assertThat(compiled).as(messages::toString).isTrue();
        // Left open: the classes are used until the test is over.
        @SuppressWarnings("resource")
        URLClassLoader loader =
                new URLClassLoader(new URL[] {directory.toUri().toURL()}, DocPage.class.getClassLoader());
        List<Class<?>> classes = new ArrayList<>();
        try (Stream<Path> files = Files.list(directory.resolve("guide"))) {
            for (Path file : files.sorted().toList()) {
                classes.add(loader.loadClass(
                        "guide." + file.getFileName().toString().replace(".class", "")));
            }
        }
        return classes;
    }
}
