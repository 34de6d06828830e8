package io.ratelimited.spring.internals.expression;

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
 * The variables that an expression has in one call: its arguments, its result, and the bean that the expression starts
 * from. Everything else is shared by all calls, so that a call costs one small object.
 */
final class CallContext implements EvaluationContext {

    /** The name of the variable for the bean; none that can be written. */
    static final String BEAN = "@";

    private final EvaluationContext shared;
    /** Positions of the arguments by name; below 0 those of the {@link CallResult result}. */
    private final Map<String, Integer> parameters;

    private final @Nullable Object[] args;
    /** The end of the call; null until then. */
    private final @Nullable CallResult result;

    private final @Nullable Object bean;

    CallContext(
            EvaluationContext shared,
            Map<String, Integer> parameters,
            @Nullable Object[] args,
            @Nullable CallResult result,
            @Nullable Object bean) {
        this.shared = shared;
        this.parameters = parameters;
        this.args = args;
        this.result = result;
        this.bean = bean;
    }

    @Override
    public @Nullable Object lookupVariable(String name) {
        Integer position = parameters.get(name);
        return position == null ? bean : CallResult.variable(position, args, result);
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
