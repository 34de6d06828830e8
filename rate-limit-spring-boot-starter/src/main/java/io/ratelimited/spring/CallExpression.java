package io.ratelimited.spring;

import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.BeanFactory;
import org.springframework.context.expression.BeanFactoryResolver;
import org.springframework.context.expression.MethodBasedEvaluationContext;
import org.springframework.core.ParameterNameDiscoverer;
import org.springframework.expression.ParseException;
import org.springframework.expression.spel.SpelCompilerMode;
import org.springframework.expression.spel.SpelNode;
import org.springframework.expression.spel.SpelParserConfiguration;
import org.springframework.expression.spel.ast.VariableReference;
import org.springframework.expression.spel.standard.SpelExpression;
import org.springframework.expression.spel.standard.SpelExpressionParser;

/**
 * A SpEL expression of a limit on a method: parsed once, compiled where it can be. {@code #param} and paths of properties
 * of it are read without an evaluation context. Thread-safe.
 */
final class CallExpression {

    private static final SpelExpressionParser PARSER =
            new SpelExpressionParser(new SpelParserConfiguration(SpelCompilerMode.MIXED, null));

    private final String attribute;
    private final String text;
    private final Method method;
    private final ParameterNameDiscoverer names;
    private final @Nullable BeanFactoryResolver beans;
    /** The parameter that the expression starts from, or -1. */
    private final int parameter;
    /** What is read of the parameter; null for the parameter itself. The whole expression if there is none. */
    private final @Nullable SpelExpression expression;

    CallExpression(
            String attribute,
            String text,
            Method method,
            ParameterNameDiscoverer names,
            @Nullable BeanFactory beanFactory) {
        this.attribute = attribute;
        this.text = text;
        this.method = method;
        this.names = names;
        this.beans = beanFactory == null ? null : new BeanFactoryResolver(beanFactory);
        SpelExpression whole = parse(text);
        List<String> parameters = parameterNames();
        checkVariables(whole.getAST(), parameters);
        int dot = text.indexOf('.');
        String first = dot < 0 ? text : text.substring(0, dot);
        boolean plain = text.matches("#\\w+(\\.\\w+)*");
        this.parameter = plain ? index(first.substring(1), parameters) : -1;
        this.expression = parameter < 0 ? whole : dot < 0 ? null : parse(text.substring(dot + 1));
    }

    private static SpelExpression parse(String text) {
        try {
            return PARSER.parseRaw(text);
        } catch (ParseException ex) {
            throw new IllegalArgumentException(
                    "is not a SpEL expression: \"" + text + "\" (" + ex.getSimpleMessage() + ")", ex);
        }
    }

    private List<String> parameterNames() {
        @Nullable String[] found = names.getParameterNames(method);
        return found == null
                ? List.of()
                : Arrays.stream(found).map(String::valueOf).toList();
    }

    private int index(String variable, List<String> parameters) {
        int named = parameters.indexOf(variable);
        if (named >= 0 || !variable.matches("[ap]\\d{1,3}")) {
            return named;
        }
        int index = Integer.parseInt(variable.substring(1));
        return index < method.getParameterCount() ? index : -1;
    }

    private void checkVariables(SpelNode node, List<String> parameters) {
        if (node instanceof VariableReference) {
            String variable = node.toStringAST().substring(1);
            if (!Set.of("root", "this").contains(variable) && index(variable, parameters) < 0) {
                Set<String> known = new TreeSet<>(parameters);
                for (int i = 0; i < method.getParameterCount(); i++) {
                    known.add("a" + i);
                }
                throw new IllegalArgumentException("names the unknown parameter #" + variable + " in \"" + text
                        + "\"; there are " + known
                        + (parameters.isEmpty() && method.getParameterCount() > 0
                                ? " (compile with -parameters to use names)"
                                : ""));
            }
        }
        for (int i = 0; i < node.getChildCount(); i++) {
            checkVariables(node.getChild(i), parameters);
        }
    }

    /**
     * The value for a call.
     *
     * @throws IllegalStateException when the expression fails; the call must not go
     */
    @Nullable
    Object value(@Nullable Object target, @Nullable Object[] args, @Nullable CurrentRequest request) {
        try {
            if (parameter >= 0) {
                Object argument = args[parameter];
                return expression == null ? argument : expression.getValue(argument);
            }
            CallRoot root = new CallRoot(method, target, args, request);
            MethodBasedEvaluationContext context = new MethodBasedEvaluationContext(root, method, args, names);
            if (beans != null) {
                context.setBeanResolver(beans);
            }
            return expression == null ? null : expression.getValue(context);
        } catch (RuntimeException ex) {
            throw new IllegalStateException(
                    attribute + " \"" + text + "\" failed: " + ex.getMessage() + "; the call was not made", ex);
        }
    }

    @Override
    public String toString() {
        return text;
    }
}
