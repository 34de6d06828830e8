package io.ratelimited.redis.simulation;

import io.ratelimited.redis.simulation.Simulations.Plans;
import java.io.IOException;
import java.lang.reflect.Method;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.concurrent.atomic.AtomicBoolean;
import net.bytebuddy.ByteBuddy;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.asm.AsmVisitorWrapper;
import net.bytebuddy.asm.MemberSubstitution;
import net.bytebuddy.description.NamedElement;
import net.bytebuddy.description.method.MethodDescription;
import net.bytebuddy.dynamic.ClassFileLocator;
import net.bytebuddy.matcher.ElementMatcher;
import net.bytebuddy.matcher.ElementMatchers;
import net.bytebuddy.pool.TypePool;

/**
 * A method that does something else.
 *
 * @param type below {@link #ROOT}, or a whole name
 * @param method its name, which stands for each overload; {@code <init>} for the constructors
 * @param target the name of what is changed in the method: a call, a field, or the method itself
 * @param change what is different there
 */
record MethodMutant(String breaks, Plans plans, String type, String method, String target, Change change)
        implements Mutant {

    private static final String ROOT = "io.ratelimited.redis.";

    /** Makes the change. */
    private interface Change {

        /** @param target matches what to change */
        AsmVisitorWrapper in(
                ElementMatcher<MethodDescription> method, ElementMatcher<NamedElement.WithRuntimeName> target);
    }

    /** The method begins or ends with code of an {@link Advice}. */
    static MethodMutant changed(String breaks, Plans plans, String type, String method, Class<?> advice) {
        return new MethodMutant(
                breaks,
                plans,
                type,
                method,
                method,
                (own, target) -> Advice.to(advice).on(target));
    }

    /** The method and its lambdas do not call another, whose result is 0, false or null. */
    static MethodMutant skipped(String breaks, Plans plans, String type, String method, String call) {
        return new MethodMutant(
                breaks,
                plans,
                type,
                method,
                call,
                (own, target) ->
                        MemberSubstitution.strict().method(target).stub().on(own));
    }

    /** The method and its lambdas call a method of {@link Replacements} where they call another. */
    static MethodMutant replaced(
            String breaks, Plans plans, String type, String method, String call, String replacement) {
        Method called = Arrays.stream(Replacements.class.getMethods())
                .filter(each -> each.getName().equals(replacement))
                .findFirst()
                .orElseThrow();
        return new MethodMutant(
                breaks,
                plans,
                type,
                method,
                call,
                (own, target) -> MemberSubstitution.strict()
                        .method(target)
                        .replaceWith(called)
                        .on(own));
    }

    /** The method and its lambdas do not write a field. */
    static MethodMutant unwritten(String breaks, Plans plans, String type, String method, String field) {
        return new MethodMutant(
                breaks,
                plans,
                type,
                method,
                field,
                (own, target) -> MemberSubstitution.strict()
                        .field(target)
                        .onWrite()
                        .stub()
                        .on(own));
    }

    @Override
    public void writeTo(Path classes) throws IOException {
        String name = type.startsWith("io.") ? type : ROOT + type;
        TypePool.Resolution described = TypePool.Default.ofSystemLoader().describe(name);
        if (!described.isResolved()) {
            throw new AssertionError("no class " + name + " for the mutant: " + breaks);
        }
        AtomicBoolean found = new AtomicBoolean();
        AsmVisitorWrapper changed = change.in(this::isOwn, element -> {
            boolean matches = element.getInternalName().equals(target);
            found.compareAndSet(false, matches);
            return matches;
        });
        new ByteBuddy()
                // Lambdas are synthetic methods, which are left out otherwise.
                .ignore(ElementMatchers.none())
                .redefine(described.resolve(), ClassFileLocator.ForClassLoader.ofSystemLoader())
                .visit(changed)
                .make()
                .saveIn(classes.toFile());
        if (!found.get()) {
            throw new AssertionError("no " + target + " in " + name + "." + method + " for the mutant: " + breaks);
        }
    }

    private boolean isOwn(MethodDescription element) {
        return element.getInternalName().equals(method)
                || element.getInternalName().startsWith("lambda$" + method + "$");
    }

    @Override
    public String toString() {
        return breaks;
    }
}
