package io.ratelimited.spring.call;

import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.springframework.expression.BeanResolver;
import org.springframework.expression.ConstructorResolver;
import org.springframework.expression.EvaluationContext;
import org.springframework.expression.IndexAccessor;
import org.springframework.expression.MethodResolver;
import org.springframework.expression.OperatorOverloader;
import org.springframework.expression.PropertyAccessor;
import org.springframework.expression.TypeComparator;
import org.springframework.expression.TypeConverter;
import org.springframework.expression.TypeLocator;
import org.springframework.expression.TypedValue;

/**
 * The arguments of one call as the variables of an expression; everything else is shared by all calls, so that a call
 * costs one small object.
 */
final class ArgumentContext implements EvaluationContext {

    private final EvaluationContext shared;
    /** Positions of the arguments by name; below 0 those of the {@link CallResult result}. */
    private final Map<String, Integer> parameters;

    private final BeanVariables beans;
    private final @Nullable Object[] args;
    /** How the call has ended; null before. */
    private final @Nullable CallResult result;

    ArgumentContext(
            EvaluationContext shared,
            Map<String, Integer> parameters,
            BeanVariables beans,
            @Nullable Object[] args,
            @Nullable CallResult result) {
        this.shared = shared;
        this.parameters = parameters;
        this.beans = beans;
        this.args = args;
        this.result = result;
    }

    @Override
    public @Nullable Object lookupVariable(String name) {
        Integer position = parameters.get(name);
        return position == null ? beans.get(name) : CallResult.variable(position, args, result);
    }

    @Override
    public void setVariable(String name, @Nullable Object value) {
        throw new UnsupportedOperationException("#" + name + " cannot be assigned");
    }

    @Override
    public boolean isAssignmentEnabled() {
        return false;
    }

    @Override
    public TypedValue getRootObject() {
        return shared.getRootObject();
    }

    @Override
    public List<PropertyAccessor> getPropertyAccessors() {
        return shared.getPropertyAccessors();
    }

    @Override
    public List<IndexAccessor> getIndexAccessors() {
        return shared.getIndexAccessors();
    }

    @Override
    public List<ConstructorResolver> getConstructorResolvers() {
        return shared.getConstructorResolvers();
    }

    @Override
    public List<MethodResolver> getMethodResolvers() {
        return shared.getMethodResolvers();
    }

    @Override
    public @Nullable BeanResolver getBeanResolver() {
        return shared.getBeanResolver();
    }

    @Override
    public TypeLocator getTypeLocator() {
        return shared.getTypeLocator();
    }

    @Override
    public TypeConverter getTypeConverter() {
        return shared.getTypeConverter();
    }

    @Override
    public TypeComparator getTypeComparator() {
        return shared.getTypeComparator();
    }

    @Override
    public OperatorOverloader getOperatorOverloader() {
        return shared.getOperatorOverloader();
    }
}
