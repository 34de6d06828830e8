package io.ratelimited.spring.internals.expression;

import io.ratelimited.spring.internals.expression.ExpressionWords.Root;
import io.ratelimited.spring.internals.text.SimilarName;
import java.beans.PropertyDescriptor;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.BeanUtils;
import org.springframework.core.KotlinDetector;
import org.springframework.core.ResolvableType;
import org.springframework.expression.spel.SpelNode;
import org.springframework.expression.spel.ast.CompoundExpression;
import org.springframework.expression.spel.ast.MethodReference;
import org.springframework.expression.spel.ast.PropertyOrFieldReference;
import org.springframework.expression.spel.ast.VariableReference;
import org.springframework.util.ClassUtils;
import org.springframework.util.StringUtils;

/**
 * A property that an expression reads, or a method that it calls, and that the declared type does not have: a typing error,
 * mostly, which would otherwise show at the first call.
 *
 * @param member the property, or the method with parentheses
 * @param isFinal whether no subclass can have it either
 */
record UndeclaredMember(String member, Class<?> owner, boolean isFinal) {

    @Override
    public String toString() {
        return member + " of " + owner.getName()
                + (isOfValueClass()
                        ? ", whose getter no expression can call, because it returns a value class: declare a property of"
                                + " another type that returns its value"
                        : ", which does not declare it");
    }

    /** Returns whether it is a property of Kotlin whose getter has a hash in its name, because its type is a value class. */
    boolean isOfValueClass() {
        String getter = "get" + StringUtils.capitalize(member) + "-";
        return Stream.of(owner.getMethods()).anyMatch(method -> method.getName().startsWith(getter));
    }

    /** Returns the members that may be meant, for a message. */
    String hint() {
        Stream<String> getters =
                Stream.of(BeanUtils.getPropertyDescriptors(owner)).map(PropertyDescriptor::getName);
        Stream<String> accessors = Stream.of(owner.getMethods())
                .filter(method -> method.getParameterCount() == 0)
                .map(Method::getName);
        return SimilarName.hint(
                member, Stream.concat(getters, accessors).distinct().toList());
    }

    /**
     * Returns whether parameters of a function of Kotlin may stand for objects of value classes: its name has a hash then.
     */
    static boolean mayHaveValueClasses(Method method) {
        return method.getName().indexOf('-') > 0 && KotlinDetector.isKotlinType(method.getDeclaringClass());
    }

    /**
     * Finds the first one that an expression reads from a parameter, from the result, or from a root that is no call of a
     * method.
     *
     * @param type the class that may state type arguments of the method
     */
    static Optional<UndeclaredMember> find(
            String text, SpelNode node, Root root, Method method, Class<?> type, Map<String, Integer> parameters) {
        if (node instanceof CompoundExpression) {
            Optional<UndeclaredMember> missing = onPath(
                            node, start(text, node.getChild(0), root, method, type, parameters))
                    .filter(found -> found.isFinal || isParameter(text, node.getChild(0), parameters));
            if (missing.isPresent()) {
                return missing;
            }
        }
        for (int i = 0; i < node.getChildCount(); i++) {
            Optional<UndeclaredMember> missing = find(text, node.getChild(i), root, method, type, parameters);
            if (missing.isPresent()) {
                return missing;
            }
        }
        return Optional.empty();
    }

    private static boolean isParameter(String text, SpelNode node, Map<String, Integer> parameters) {
        return node instanceof VariableReference variable
                && parameters.getOrDefault(ExpressionWords.name(text, variable), -1) >= 0;
    }

    private static ResolvableType start(
            String text, SpelNode node, Root root, Method method, Class<?> type, Map<String, Integer> parameters) {
        if (node instanceof VariableReference variable) {
            String name = ExpressionWords.name(text, variable);
            Integer position = parameters.get(name);
            boolean isResult = position != null && position < 0 && name.equals("result");
            return position != null && position >= 0
                    ? ResolvableType.forMethodParameter(method, position, type)
                    : isResult ? ResolvableType.forMethodReturnType(method, type) : ResolvableType.NONE;
        }
        return root.isOpen() ? ResolvableType.NONE : orUnknown(step(node, ResolvableType.forClass(root.type())));
    }

    private static Optional<UndeclaredMember> onPath(SpelNode path, ResolvableType start) {
        ResolvableType type = start;
        for (int i = 1; i < path.getChildCount(); i++) {
            SpelNode read = path.getChild(i);
            Class<?> owner = ClassUtils.resolvePrimitiveIfNecessary(type.resolve(Object.class));
            if (isUnknown(owner) || isOfArray(owner, read)) {
                return Optional.empty();
            }
            ResolvableType next = step(read, type);
            boolean isFinal = Modifier.isFinal(owner.getModifiers());
            if (next == null && read instanceof PropertyOrFieldReference property) {
                return Optional.of(new UndeclaredMember(property.getName(), owner, isFinal));
            }
            if (next == null && isFinal && read instanceof MethodReference call) {
                return Optional.of(new UndeclaredMember(call.getName() + "()", owner, true));
            }
            type = orUnknown(next);
        }
        return Optional.empty();
    }

    /** SpEL reads static members of the class that a {@code Class} stands for, and {@code ?.} the value of an Optional. */
    private static boolean isUnknown(Class<?> owner) {
        return owner == Object.class
                || owner == Class.class
                || owner == Optional.class
                || owner == Void.class
                || owner == void.class;
    }

    /** Returns whether a read is of a member that every array has. */
    private static boolean isOfArray(Class<?> owner, SpelNode read) {
        return owner.isArray()
                && (!(read instanceof PropertyOrFieldReference property)
                        || property.getName().equals("length"));
    }

    private static ResolvableType orUnknown(@Nullable ResolvableType type) {
        return type == null ? ResolvableType.NONE : type;
    }

    /** The type of a member that is read from a value of a type: null if there is none, or if the node is something else. */
    private static @Nullable ResolvableType step(SpelNode read, ResolvableType type) {
        Class<?> owner = ClassUtils.resolvePrimitiveIfNecessary(type.resolve(Object.class));
        if (read instanceof PropertyOrFieldReference property) {
            return property(owner, type, property.getName());
        }
        if (read instanceof MethodReference call) {
            List<Method> named = Stream.of(owner.getMethods())
                    .filter(method -> method.getName().equals(call.getName()))
                    .toList();
            return named.isEmpty()
                    ? null
                    : named.size() == 1
                            ? ResolvableType.forType(named.get(0).getGenericReturnType(), type)
                            : ResolvableType.NONE;
        }
        return null;
    }

    /** As SpEL finds it: a public getter, a public method of this name, or a public field. */
    private static @Nullable ResolvableType property(Class<?> owner, ResolvableType type, String name) {
        String suffix = StringUtils.capitalize(name);
        for (String accessor : List.of("get" + suffix, "get" + name, "is" + suffix, name)) {
            Method getter = ClassUtils.getMethodIfAvailable(owner, accessor, new Class<?>[0]);
            if (getter != null) {
                return ResolvableType.forType(getter.getGenericReturnType(), type);
            }
        }
        for (Field field : owner.getFields()) {
            if (field.getName().equals(name)) {
                return ResolvableType.forType(field.getGenericType(), type);
            }
        }
        return null;
    }
}
