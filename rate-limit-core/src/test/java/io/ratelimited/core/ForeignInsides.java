package io.ratelimited.core;

import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * Finds classes that reach into other libraries instead of using their public doors: they read private fields, walk the
 * stack, read what expressions print, change other people's proxies, hook a switch of the whole JVM, or read class files.
 * Used by the tests of every module.
 */
public final class ForeignInsides {

    /** Forbidden calls: class, dot, method, and the parameters in parentheses. */
    private static final Pattern CALLS = Pattern.compile(String.join(
            "|",
            "java\\.lang\\.reflect\\.\\w+\\.(setAccessible|trySetAccessible)\\(.*",
            "java\\.lang\\.reflect\\.Field\\.(get|set)(Boolean|Byte|Char|Short|Int|Long|Float|Double)?\\(.*",
            "java\\.lang\\.Class\\.getDeclaredFields?\\(.*",
            "java\\.lang\\.invoke\\.MethodHandles\\$Lookup\\.unreflect(Getter|Setter|VarHandle)\\(.*",
            "org\\.springframework\\.util\\.ReflectionUtils\\.(\\w*Fields?|shallowCopyFieldState)\\(.*",
            "org\\.springframework\\.util\\.ReflectionUtils\\.makeAccessible\\(java\\.lang\\.reflect\\.Field\\)",
            "[\\w.]+\\.(getStackTrace|getAllStackTraces)\\(.*",
            "org\\.springframework\\.aop\\.framework\\.\\w+\\.(add|remove|replace)(Advisors?|Advice)\\(.*",
            "org\\.springframework\\.expression\\.[\\w.]+\\.toStringAST\\(.*",
            "java\\.lang\\.System\\.setProperty\\(.*",
            "reactor\\.core\\.scheduler\\.Schedulers\\.(onScheduleHook|addExecutorServiceDecorator|setFactory)\\(.*"));

    /** Forbidden types, whatever is done with them. */
    private static final Pattern TYPES = Pattern.compile(String.join(
            "|",
            "java\\.lang\\.StackWalker.*",
            "sun\\.misc\\.Unsafe",
            "org\\.springframework\\.asm\\..*",
            "org\\.springframework\\.beans\\.DirectFieldAccessor",
            "reactor\\.core\\.publisher\\.Hooks"));

    private ForeignInsides() {}

    /** The top-level classes of some packages that reach into other libraries, each with what it uses. */
    public static Map<String, Set<String>> usedIn(String... packages) {
        return usedIn(ClassRules.mainClasses(packages));
    }

    /** The same of single classes. */
    public static Map<String, Set<String>> usedIn(Class<?>... types) {
        return usedIn(new ClassFileImporter().importClasses(List.of(types)));
    }

    private static Map<String, Set<String>> usedIn(JavaClasses classes) {
        Map<String, Set<String>> found = new TreeMap<>();
        for (JavaClass type : classes) {
            Stream.concat(calls(type), types(type))
                    .forEach(used -> found.computeIfAbsent(ClassRules.topLevel(type), name -> new TreeSet<>())
                            .add(used));
        }
        return found;
    }

    private static Stream<String> calls(JavaClass type) {
        return Stream.concat(type.getMethodCallsFromSelf().stream(), type.getMethodReferencesFromSelf().stream())
                .map(use -> use.getTarget().getFullName())
                .filter(name -> CALLS.matcher(name).matches());
    }

    private static Stream<String> types(JavaClass type) {
        return type.getDirectDependenciesFromSelf().stream()
                .map(dependency ->
                        dependency.getTargetClass().getBaseComponentType().getName())
                .filter(name -> TYPES.matcher(name).matches());
    }
}
