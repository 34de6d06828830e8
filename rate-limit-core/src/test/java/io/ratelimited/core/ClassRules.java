package io.ratelimited.core;

import com.tngtech.archunit.ArchConfiguration;
import com.tngtech.archunit.core.domain.Dependency;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import com.tngtech.archunit.library.dependencies.SlicesRuleDefinition;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

/**
 * How the classes of a module lie: in packages without circles, and without large knots. A knot is a set of top-level classes
 * that reach each other in a circle. Used by the tests of every module; each method returns what breaks its rule.
 */
public final class ClassRules {

    /** The most top-level classes of one knot. */
    static final int LARGEST_KNOT = 4;

    private final JavaClasses classes;
    private final Map<String, Set<String>> arrows = new TreeMap<>();

    ClassRules(JavaClasses classes) {
        this.classes = classes;
        classes.forEach(type -> arrows.computeIfAbsent(topLevel(type), name -> new TreeSet<>()));
        classes.forEach(type -> type.getDirectDependenciesFromSelf().stream()
                .map(Dependency::getTargetClass)
                .map(target -> topLevel(target.getBaseComponentType()))
                .filter(target -> arrows.containsKey(target) && !target.equals(topLevel(type)))
                .forEach(target -> arrows.get(topLevel(type)).add(target)));
    }

    /** Reads the compiled main classes of some packages and of those within them. */
    public static ClassRules of(String... packages) {
        return new ClassRules(mainClasses(packages));
    }

    static JavaClasses mainClasses(String... packages) {
        return ArchConfiguration.withThreadLocalScope(configuration -> {
            // The rules compare names only, so that no class of a library need be read.
            configuration.setResolveMissingDependenciesFromClassPath(false);
            return new ClassFileImporter()
                    .withImportOption(new ImportOption.DoNotIncludeTests())
                    .withImportOption(location -> !location.contains("-tests.jar"))
                    // The copy of Caffeine that the jar of the core holds.
                    .withImportOption(location -> !location.contains("/io/ratelimited/core/caffeine/"))
                    .importPackages(packages);
        });
    }

    /** The top-level classes, each with those that it uses. */
    public Map<String, Set<String>> arrows() {
        return arrows;
    }

    /** The knots that are too large. */
    public List<String> knots() {
        return knots(LARGEST_KNOT);
    }

    List<String> knots(int largest) {
        Knots knots = new Knots();
        arrows.keySet().forEach(knots::visit);
        return knots.found.stream()
                .filter(knot -> knot.size() > largest)
                .map(Object::toString)
                .toList();
    }

    /** The circles of packages: each package is a slice, and no slice may reach itself by way of others. */
    public List<String> circles() {
        return SlicesRuleDefinition.slices()
                .matching("io.ratelimited.(**)")
                .should()
                .beFreeOfCycles()
                .evaluate(classes)
                .getFailureReport()
                .getDetails();
    }

    static String topLevel(JavaClass type) {
        String name = type.getName();
        int nested = name.indexOf('$');
        return nested < 0 ? name : name.substring(0, nested);
    }

    /** Strongly connected components, by Tarjan's algorithm. */
    private final class Knots {

        private final Map<String, Integer> index = new HashMap<>();
        private final Map<String, Integer> lowest = new HashMap<>();
        private final Deque<String> open = new ArrayDeque<>();
        private final Collection<Set<String>> found = new ArrayList<>();

        void visit(String type) {
            if (index.containsKey(type)) {
                return;
            }
            index.put(type, index.size());
            lowest.put(type, index.get(type));
            open.push(type);
            for (String target : arrows.get(type)) {
                visit(target);
                if (open.contains(target)) {
                    lowest.merge(type, lowest.get(target), Math::min);
                }
            }
            if (lowest.get(type).equals(index.get(type))) {
                Set<String> knot = new TreeSet<>();
                do {
                    knot.add(open.peek());
                } while (!open.pop().equals(type));
                found.add(knot);
            }
        }
    }
}
