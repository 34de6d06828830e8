package io.ratelimited.core;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.File;
import java.io.IOException;
import java.lang.annotation.Annotation;
import java.lang.annotation.Retention;
import java.lang.annotation.Target;
import java.lang.reflect.AnnotatedElement;
import java.lang.reflect.AnnotatedType;
import java.lang.reflect.Constructor;
import java.lang.reflect.Executable;
import java.lang.reflect.Field;
import java.lang.reflect.Member;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Parameter;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * What a module promises: its public and protected types and members outside internal packages, a line each. The list
 * that was reviewed is the part of {@code docs/api.txt} under the name of the module. Used by the tests of every module.
 */
public final class PublicApi {

    private static final Path SOURCES = Path.of("src/main/java");
    private static final Path CLASSES = Path.of("target/classes");
    private static final Path REVIEWED = Path.of("../docs/api.txt");
    private static final Path PAGE = Path.of("../docs/engineering/public-api.md");
    /** The name of a top-level type, in the line that declares it. */
    private static final Pattern TYPE =
            Pattern.compile("(?<=(class|interface|record|enum) )io[.]ratelimited[.][\\w.]+(?![\\w.$])");

    private static final Set<String> OF_EVERY_OBJECT = Set.of("equals", "hashCode", "toString");
    private static final Set<String> OF_EVERY_ENUM = Set.of("values", "valueOf");

    private PublicApi() {}

    /**
     * Fails if the public API of the module, which is the current directory, is not the reviewed one. With {@code
     * -Dapi=accept} it becomes the reviewed one.
     */
    public static void requireReviewed() throws IOException, ReflectiveOperationException {
        List<String> lines = lines();
        requireListed(REVIEWED, "# " + moduleName() + "\n\n", lines);
        requireListed(PAGE, "## " + moduleName() + "\n\n| type | what it is for |\n|---|---|\n", rows(lines));
    }

    private static String moduleName() {
        return Path.of("").toAbsolutePath().getFileName().toString();
    }

    /** A file has these lines under a heading, which ends with an empty line. With {@code -Dapi=accept} it gets them. */
    private static void requireListed(Path file, String heading, List<String> lines) throws IOException {
        String text = Files.readString(file);
        int start = text.contains(heading) ? text.indexOf(heading) + heading.length() : text.length();
        int end = text.indexOf("\n\n", start) < 0 ? text.length() : text.indexOf("\n\n", start) + 1;
        if ("accept".equals(System.getProperty("api")) && start < text.length()) {
            Files.writeString(
                    file,
                    text.substring(0, start) + String.join("\n", lines) + "\n"
                            + text.substring(Math.min(end, text.length())));
        } else {
            assertThat(difference(text.substring(start, end).lines().toList(), lines))
                    .as(
                            "%s differs. Where that is meant: mvn -pl %s -am test -Dtest=PublicApiTest"
                                    + " -Dsurefire.failIfNoSpecifiedTests=false -Dapi=accept",
                            file, moduleName())
                    .isEmpty();
        }
    }

    /** A row for each top-level type, with the first sentence of its Javadoc. */
    private static List<String> rows(List<String> lines) throws IOException {
        List<String> rows = new ArrayList<>();
        for (String line : lines) {
            Matcher type = TYPE.matcher(line);
            if (type.find()) {
                rows.add("| `" + type.group() + "` | " + firstSentence(type.group()) + " |");
            }
        }
        return rows;
    }

    private static String firstSentence(String type) throws IOException {
        String source = Files.readString(SOURCES.resolve(type.replace('.', '/') + ".java"));
        int declared = source.indexOf("\npublic ");
        int start = source.lastIndexOf("/**", declared);
        return source.substring(start + 3, source.indexOf("*/", start))
                .replaceAll("\\s*\\n \\*\\s*", " ")
                .replaceAll("\\{@link(?:plain)? [^ }]+ ([^}]+)}", "$1")
                .replaceAll("\\{@(?:code|link|value) #?([^}]+)}", "`$1`")
                .strip()
                .replaceAll("(?s)\\.(\\s.*)?$", ".");
    }

    /** Fails if another package of the module calls itself internal than those that the parent's pom leaves out of Javadoc. */
    public static void requireSameInternalPackages() throws IOException {
        String named = Files.readString(Path.of("../pom.xml"))
                .replaceAll("(?s).*<internal.packages>(.*)</internal.packages>.*", "$1");
        assertThat(internalPackages())
                .isEqualTo(Stream.of(named.split(","))
                        .filter(name -> Files.isDirectory(SOURCES.resolve(name.replace('.', '/'))))
                        .collect(Collectors.toCollection(TreeSet::new)));
    }

    /**
     * Fails if a public type of an internal package is internal neither by the name of its package nor by what Spring Boot
     * makes of it: auto-configurations, bound properties and endpoints are public by convention, and named by properties.
     */
    public static void requireInternalByName() throws IOException, ReflectiveOperationException {
        Set<String> packages = internalPackages();
        packages.removeIf(name -> name.contains(".internals"));
        List<String> others = new ArrayList<>();
        try (URLClassLoader loader = loaderOfItsOwn()) {
            for (Class<?> type : visibleTypes(loader)) {
                if (packages.contains(type.getPackageName())
                        && type.getEnclosingClass() == null
                        && Stream.of(type.getAnnotations()).noneMatch(PublicApi::isOfSpringBoot)) {
                    others.add(type.getName());
                }
            }
        }
        assertThat(others).isEmpty();
    }

    private static boolean isOfSpringBoot(Annotation annotation) {
        return annotation.annotationType().getName().startsWith("org.springframework.boot.");
    }

    private static List<Class<?>> visibleTypes(ClassLoader loader) throws IOException, ReflectiveOperationException {
        List<Class<?>> types = new ArrayList<>();
        for (Path file : filesUnder(CLASSES, ".class")) {
            String name = nameOf(CLASSES.relativize(file)).replaceAll("\\.class$", "");
            Class<?> type = name.endsWith("package-info") ? null : Class.forName(name, false, loader);
            if (type != null && isVisible(type)) {
                types.add(type);
            }
        }
        return types;
    }

    /** The packages of the module whose documentation begins with the word "Internal". */
    private static Set<String> internalPackages() throws IOException {
        Set<String> internal = new TreeSet<>();
        for (Path file : filesUnder(SOURCES, "package-info.java")) {
            if (Files.readString(file).replaceAll("[/*\\s]+", " ").startsWith(" Internal")) {
                internal.add(nameOf(SOURCES.relativize(file.getParent())));
            }
        }
        return internal;
    }

    static List<String> lines() throws IOException, ReflectiveOperationException {
        Set<String> internal = internalPackages();
        List<String> lines = new ArrayList<>();
        try (URLClassLoader loader = loaderOfItsOwn()) {
            for (Class<?> type : visibleTypes(loader)) {
                if (!internal.contains(type.getPackageName())) {
                    lines.addAll(linesOf(type));
                }
            }
        }
        return lines;
    }

    /** Of classes as they were compiled: a test that has rewritten those of this JVM leaves them without names of parameters. */
    private static URLClassLoader loaderOfItsOwn() throws IOException {
        List<URL> urls = new ArrayList<>();
        for (String entry : System.getProperty("java.class.path").split(File.pathSeparator, -1)) {
            urls.add(Path.of(entry).toUri().toURL());
        }
        return new URLClassLoader(urls.toArray(URL[]::new), ClassLoader.getPlatformClassLoader());
    }

    /** What has gone, and what has come. */
    static List<String> difference(List<String> before, List<String> after) {
        Set<String> gone = new TreeSet<>(withTypes(before));
        Set<String> come = new TreeSet<>(withTypes(after));
        come.removeAll(withTypes(before));
        gone.removeAll(withTypes(after));
        return Stream.concat(
                        gone.stream().map(line -> "- " + line), come.stream().map(line -> "+ " + line))
                .toList();
    }

    /** Each member behind the line of its type. */
    private static Set<String> withTypes(List<String> lines) {
        Set<String> all = new TreeSet<>();
        String type = "";
        for (String line : lines) {
            type = line.startsWith(" ") ? type : line;
            all.add(line.startsWith(" ") ? type + ":" + line : line);
        }
        return all;
    }

    static List<String> linesOf(Class<?> type) {
        List<String> members = new ArrayList<>();
        for (Class<?> of = type; of == type || (of != null && !isVisible(of)); of = of.getSuperclass()) {
            Stream.of(of.getDeclaredFields())
                    .filter(field -> isVisible(field, type))
                    .map(PublicApi::line)
                    .forEach(members::add);
            Stream.of(of.getDeclaredMethods())
                    .filter(method -> isVisible(method, type))
                    .filter(method -> !OF_EVERY_OBJECT.contains(method.getName()))
                    .filter(method -> !type.isEnum() || !OF_EVERY_ENUM.contains(method.getName()))
                    .map(PublicApi::line)
                    .forEach(members::add);
        }
        Stream.of(type.getDeclaredConstructors())
                .filter(constructor -> isVisible(constructor, type))
                .map(PublicApi::line)
                .forEach(members::add);
        Collections.sort(members);
        members.add(0, header(type));
        return members;
    }

    private static String header(Class<?> type) {
        StringBuilder header = new StringBuilder();
        for (Class<? extends Annotation> kind : List.of(Retention.class, Target.class)) {
            if (type.isAnnotationPresent(kind)) {
                header.append(brief(type.getAnnotation(kind).toString())).append(' ');
            }
        }
        if (type.isSealed()) {
            header.append("sealed ");
        }
        header.append(type.toGenericString());
        if (type.getSuperclass() != null
                && !type.isEnum()
                && !type.isRecord()
                && type.getSuperclass() != Object.class) {
            header.append(" extends ").append(brief(type.getGenericSuperclass().getTypeName()));
        }
        if (!type.isAnnotation() && type.getInterfaces().length > 0) {
            header.append(Arrays.stream(type.getGenericInterfaces())
                    .map(parent -> brief(parent.getTypeName()))
                    .collect(Collectors.joining(", ", type.isInterface() ? " extends " : " implements ", "")));
        }
        return header.toString();
    }

    private static String line(Field field) {
        return "  " + modifiers(field, Modifier.fieldModifiers()) + text(field.getAnnotatedType()) + " "
                + field.getName();
    }

    private static String line(Executable executable) {
        StringBuilder line = new StringBuilder("  ");
        line.append(modifiers(executable, Modifier.methodModifiers() & ~Modifier.SYNCHRONIZED & ~Modifier.NATIVE));
        if (executable instanceof Method method) {
            line.append(method.isDefault() ? "default " : "");
            line.append(typeParameters(method)).append(text(method.getAnnotatedReturnType()));
            line.append(" ").append(method.getName());
        } else {
            line.append(typeParameters(executable))
                    .append(executable.getDeclaringClass().getSimpleName());
        }
        line.append(
                Stream.of(executable.getParameters()).map(PublicApi::text).collect(Collectors.joining(", ", "(", ")")));
        if (executable.getExceptionTypes().length > 0) {
            line.append(Stream.of(executable.getExceptionTypes())
                    .map(Class::getSimpleName)
                    .collect(Collectors.joining(", ", " throws ", "")));
        }
        if (executable instanceof Method method && method.getDefaultValue() != null) {
            line.append(" default ").append(defaultValue(method.getDefaultValue()));
        }
        return line.append(deprecated(executable)).toString();
    }

    private static String text(Parameter parameter) {
        return text(parameter.getAnnotatedType()) + " " + parameter.getName();
    }

    private static String text(AnnotatedType type) {
        return brief(type.toString());
    }

    /** Without the names of packages. */
    private static String brief(String text) {
        return text.replaceAll("\\b(?:[a-z][a-z0-9_]*\\.)+(?=[@A-Z])", "").replace("@Nullable()", "@Nullable");
    }

    private static String defaultValue(Object value) {
        return value.getClass().isArray()
                ? Arrays.deepToString((Object[]) value)
                : value instanceof String ? '"' + value.toString() + '"' : value.toString();
    }

    private static String typeParameters(Executable executable) {
        return executable.getTypeParameters().length == 0
                ? ""
                : Stream.of(executable.getTypeParameters())
                        .map(parameter -> parameter.getName() + bounds(parameter.getAnnotatedBounds()))
                        .collect(Collectors.joining(", ", "<", "> "));
    }

    private static String bounds(AnnotatedType[] bounds) {
        String text = Stream.of(bounds).map(PublicApi::text).collect(Collectors.joining(" & "));
        return text.equals("Object") ? "" : " extends " + text;
    }

    private static String deprecated(AnnotatedElement element) {
        return element.isAnnotationPresent(Deprecated.class) ? " deprecated" : "";
    }

    private static String modifiers(Member member, int shown) {
        String modifiers = Modifier.toString(member.getModifiers() & shown);
        return modifiers.isEmpty() ? "" : modifiers + " ";
    }

    private static boolean isVisible(Class<?> type) {
        for (Class<?> of = type; of != null; of = of.getEnclosingClass()) {
            if (of.isAnonymousClass()
                    || of.isLocalClass()
                    || (of.getModifiers() & (Modifier.PUBLIC | Modifier.PROTECTED)) == 0) {
                return false;
            }
        }
        return true;
    }

    private static boolean isVisible(Member member, Class<?> type) {
        boolean inherited = Modifier.isProtected(member.getModifiers()) && !Modifier.isFinal(type.getModifiers());
        boolean ofSupertype = member instanceof Constructor && member.getDeclaringClass() != type;
        return !member.isSynthetic() && !ofSupertype && (inherited || Modifier.isPublic(member.getModifiers()));
    }

    private static List<Path> filesUnder(Path directory, String ending) throws IOException {
        try (Stream<Path> files = Files.walk(directory)) {
            return files.filter(file -> file.toString().endsWith(ending))
                    .sorted()
                    .toList();
        }
    }

    private static String nameOf(Path file) {
        return file.toString().replace(file.getFileSystem().getSeparator(), ".");
    }
}
