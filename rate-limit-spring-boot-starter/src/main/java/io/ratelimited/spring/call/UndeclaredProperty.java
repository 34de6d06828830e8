package io.ratelimited.spring.call;

import java.beans.PropertyDescriptor;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.BeanUtils;
import org.springframework.core.ResolvableType;
import org.springframework.expression.spel.SpelNode;
import org.springframework.expression.spel.ast.CompoundExpression;
import org.springframework.expression.spel.ast.PropertyOrFieldReference;
import org.springframework.expression.spel.ast.VariableReference;
import org.springframework.util.ReflectionUtils;

/**
 * Finds a property that an expression reads from a parameter and that the declared type of the parameter does not have: a
 * typing error, mostly, which would otherwise show at the first call. A subclass may have the property.
 */
final class UndeclaredProperty {

    private UndeclaredProperty() {}

    /** The first such property of an expression, described for a message. */
    static Optional<String> find(SpelNode node, Method method, Map<String, Integer> parameters) {
        if (node instanceof CompoundExpression && node.getChild(0) instanceof VariableReference variable) {
            Integer position = parameters.get(variable.toStringAST().substring(1));
            if (position != null && position >= 0) {
                Optional<String> missing = along(node, ResolvableType.forMethodParameter(method, position));
                if (missing.isPresent()) {
                    return missing;
                }
            }
        }
        for (int i = 0; i < node.getChildCount(); i++) {
            Optional<String> missing = find(node.getChild(i), method, parameters);
            if (missing.isPresent()) {
                return missing;
            }
        }
        return Optional.empty();
    }

    private static Optional<String> along(SpelNode path, ResolvableType start) {
        ResolvableType type = start;
        for (int i = 1; i < path.getChildCount() && path.getChild(i) instanceof PropertyOrFieldReference read; i++) {
            Class<?> owner = type.resolve(Object.class);
            if (owner == Object.class || (owner.isArray() && read.getName().equals("length"))) {
                return Optional.empty();
            }
            ResolvableType next = property(owner, type, read.getName());
            if (next == null) {
                return Optional.of(read.getName() + " of " + owner.getName() + ", which does not declare it");
            }
            type = next;
        }
        return Optional.empty();
    }

    /** As SpEL finds it: a getter, the accessor of a record, or a public field. */
    private static @Nullable ResolvableType property(Class<?> owner, ResolvableType type, String name) {
        PropertyDescriptor descriptor = BeanUtils.getPropertyDescriptor(owner, name);
        Method getter = descriptor == null ? null : descriptor.getReadMethod();
        if (getter == null) {
            getter = ReflectionUtils.findMethod(owner, name);
        }
        if (getter != null) {
            return ResolvableType.forType(getter.getGenericReturnType(), type);
        }
        for (Field field : owner.getFields()) {
            if (field.getName().equals(name) && Modifier.isPublic(field.getModifiers())) {
                return ResolvableType.forType(field.getGenericType(), type);
            }
        }
        return null;
    }
}
