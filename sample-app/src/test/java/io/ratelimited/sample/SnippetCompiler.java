package io.ratelimited.sample;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.StringWriter;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import javax.tools.JavaCompiler;
import javax.tools.StandardJavaFileManager;
import javax.tools.StandardLocation;
import javax.tools.ToolProvider;

/** Compiles what the guide and the live page show, as they stand: a snippet has the imports that it needs. */
public final class SnippetCompiler {

    private static final JavaCompiler COMPILER = ToolProvider.getSystemJavaCompiler();
    /** One for all snippets, so that the archives of the class path are opened once. */
    private static final StandardJavaFileManager FILES =
            COMPILER.getStandardFileManager(null, null, StandardCharsets.UTF_8);

    private SnippetCompiler() {}

    /** The classes that the snippets declare, in a loader of their own. */
    public static List<Class<?>> compile(List<String> snippets, Path directory) throws Exception {
        return compile(Map.of("guide", snippets), directory);
    }

    /**
     * The classes that the snippets declare, in one loader.
     *
     * @param packages the snippets of each package, so that classes of several may have one name
     */
    public static List<Class<?>> compile(Map<String, List<String>> packages, Path directory) throws Exception {
        Path classes = Files.createDirectories(directory.resolve("classes"));
        List<Path> sources = new ArrayList<>();
        for (Map.Entry<String, List<String>> named : packages.entrySet()) {
            for (String snippet : named.getValue()) {
                Path source = directory.resolve("Snippet" + sources.size() + ".java");
                sources.add(Files.writeString(source, "package " + named.getKey() + ";\n" + snippet));
            }
        }
        // Without it, javac would open the whole class path again to look for plugins.
        FILES.setLocation(StandardLocation.ANNOTATION_PROCESSOR_PATH, List.of());
        FILES.setLocation(StandardLocation.CLASS_OUTPUT, List.of(classes.toFile()));
        StringWriter messages = new StringWriter();
        boolean compiled = COMPILER.getTask(
                        messages,
                        FILES,
                        null,
                        List.of("-parameters", "-proc:none"),
                        null,
                        FILES.getJavaFileObjectsFromPaths(sources))
                .call();
        assertThat(compiled).as(messages::toString).isTrue();
        // Left open: the classes are used until the test is over, and only memory holds them then.
        @SuppressWarnings("resource")
        URLClassLoader loader =
                new URLClassLoader(new URL[] {classes.toUri().toURL()}, SnippetCompiler.class.getClassLoader());
        List<Class<?>> loaded = new ArrayList<>();
        for (String name : packages.keySet()) {
            try (Stream<Path> files = Files.list(classes.resolve(name))) {
                for (Path file : files.sorted().toList()) {
                    loaded.add(loader.loadClass(
                            name + "." + file.getFileName().toString().replace(".class", "")));
                }
            }
        }
        return loaded;
    }
}
