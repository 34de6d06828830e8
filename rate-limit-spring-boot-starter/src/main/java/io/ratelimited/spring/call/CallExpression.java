package io.ratelimited.spring.call;

import io.ratelimited.spring.CurrentRequest;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.config.ConfigurableBeanFactory;
import org.springframework.context.expression.BeanFactoryResolver;
import org.springframework.core.NativeDetector;
import org.springframework.core.NestedExceptionUtils;
import org.springframework.expression.ParseException;
import org.springframework.expression.spel.SpelCompilerMode;
import org.springframework.expression.spel.SpelNode;
import org.springframework.expression.spel.SpelParserConfiguration;
import org.springframework.expression.spel.ast.BeanReference;
import org.springframework.expression.spel.ast.CompoundExpression;
import org.springframework.expression.spel.ast.FunctionReference;
import org.springframework.expression.spel.ast.Indexer;
import org.springframework.expression.spel.ast.InlineMap;
import org.springframework.expression.spel.ast.MethodReference;
import org.springframework.expression.spel.ast.Projection;
import org.springframework.expression.spel.ast.PropertyOrFieldReference;
import org.springframework.expression.spel.ast.Selection;
import org.springframework.expression.spel.ast.VariableReference;
import org.springframework.expression.spel.standard.SpelExpression;
import org.springframework.expression.spel.standard.SpelExpressionParser;
import org.springframework.expression.spel.support.StandardEvaluationContext;
import org.springframework.expression.spel.support.StandardTypeLocator;
import org.springframework.util.ReflectionUtils;

/**
 * A SpEL expression of a limit on a method: parsed once, compiled where it can be, its words checked. {@code #param} and
 * paths of properties of it are read without an evaluation context, and what names no parameter shares one. Thread-safe.
 */
public final class CallExpression {

    /** Native images cannot load compiled expressions. */
    private static final SpelCompilerMode COMPILER =
            NativeDetector.inNativeImage() ? SpelCompilerMode.OFF : SpelCompilerMode.MIXED;

    private static final Pattern PATH = Pattern.compile("#(\\w+)(?:\\.(\\w+(?:\\.\\w+)*))?");
    private static final Set<String> SELF = Set.of("root", "this");
    /** The variables of a charge, which follow the parameters. */
    private static final List<String> OF_RESULT = List.of("result", "error", "count");

    private static final Set<String> WORDS =
            Set.of("method", "target", "args", "clientIp", "principal", "session", "class");
    /** The names that a request has which is no call of a method. */
    private static final Set<String> WORDS_OF_REQUEST = Set.of("clientIp", "principal", "session");

    /** For expressions that are a parameter and evaluate nothing: an application may have a thousand of them. */
    private static final StandardEvaluationContext UNUSED = new StandardEvaluationContext();

    /** Expressions belong to a method: a request is a call without parameters. */
    private static final Method REQUEST =
            Objects.requireNonNull(ReflectionUtils.findMethod(CurrentRequest.class, "clientIp"));

    private final String attribute;
    private final String text;
    private final Method method;
    private final Set<String> words;
    private final ConfigurableBeanFactory beans;
    /** Positions of the arguments by the names they have in the expression. */
    private final Map<String, Integer> parameters;
    /** The parameter that the expression starts from, or -1. */
    private final int parameter;
    /** The path that is read from the parameter; null for the parameter itself. Without a parameter, the whole expression. */
    private final @Nullable SpelExpression expression;
    /** Whether arguments have to be looked up by name. */
    private final boolean readsParameters;
    /** Knows beans, types and accessors; nothing of a call. */
    private final StandardEvaluationContext shared;

    /**
     * @param attribute which one, of which limit, for messages
     * @param parameters positions of the arguments by name
     * @throws IllegalArgumentException when the text is no expression, or has a word that can never mean anything
     */
    public CallExpression(
            String attribute,
            String text,
            Method method,
            Map<String, Integer> parameters,
            ConfigurableBeanFactory beans) {
        this(attribute, text, method, parameters, WORDS, beans);
    }

    private CallExpression(
            String attribute,
            String text,
            Method method,
            Map<String, Integer> parameters,
            Set<String> words,
            ConfigurableBeanFactory beans) {
        this.attribute = attribute;
        this.text = text.strip();
        this.method = method;
        this.words = words;
        this.parameters = Map.copyOf(parameters);
        this.beans = beans;
        SpelExpression whole = parse(this.text);
        this.readsParameters = check(whole.getAST(), true);
        var path = PATH.matcher(this.text);
        boolean plain = path.matches() && !SELF.contains(path.group(1));
        this.parameter = plain ? parameters.getOrDefault(path.group(1), -1) : -1;
        String rest = plain ? path.group(2) : null;
        this.expression = parameter < 0 ? whole : rest == null ? null : parse(rest);
        this.shared = expression == null ? UNUSED : context(beans);
    }

    /**
     * An expression that is evaluated when a call has ended: beside the parameters it sees {@code #result}, {@code #error}
     * and {@code #count}, which hide parameters of the same name.
     */
    public static CallExpression ofResult(
            String attribute,
            String text,
            Method method,
            Map<String, Integer> parameters,
            ConfigurableBeanFactory beans) {
        Map<String, Integer> variables = new HashMap<>(parameters);
        for (int i = 0; i < OF_RESULT.size(); i++) {
            variables.put(OF_RESULT.get(i), method.getParameterCount() + i);
        }
        return new CallExpression(attribute, text, method, variables, beans);
    }

    /** An expression of a limit on requests. */
    public static CallExpression ofRequest(String attribute, String text, ConfigurableBeanFactory beans) {
        return new CallExpression(attribute, text, REQUEST, Map.of(), WORDS_OF_REQUEST, beans);
    }

    private static StandardEvaluationContext context(ConfigurableBeanFactory beans) {
        StandardEvaluationContext context = new StandardEvaluationContext();
        context.setBeanResolver(new BeanFactoryResolver(beans));
        context.setTypeLocator(new StandardTypeLocator(beans.getBeanClassLoader()));
        return context;
    }

    /** Classes are those that beans see, on whatever thread a call comes: its own class loader may see neither. */
    private SpelExpression parse(String text) {
        try {
            return new SpelExpressionParser(new SpelParserConfiguration(COMPILER, beans.getBeanClassLoader()))
                    .parseRaw(text);
        } catch (ParseException | IllegalStateException | IllegalArgumentException ex) {
            String why = ex instanceof ParseException parsing ? parsing.getSimpleMessage() : ex.getMessage();
            throw new IllegalArgumentException("is not a SpEL expression: \"" + text + "\" (" + why + ")", ex);
        }
    }

    /**
     * Checks the words of an expression.
     *
     * @param onRoot whether a bare word is read from the root, not from what stands before it
     * @return whether it reads parameters
     */
    private boolean check(SpelNode node, boolean onRoot) {
        boolean reads = false;
        if (node instanceof VariableReference) {
            String variable = node.toStringAST().substring(1);
            if (!SELF.contains(variable)) {
                requireParameter(variable);
                reads = true;
            }
        } else if (node instanceof FunctionReference) {
            throw new IllegalArgumentException(
                    "calls the unknown function " + node.toStringAST() + " in \"" + text + "\"");
        } else if (node instanceof BeanReference) {
            String bean = node.toStringAST().replace("'", "");
            if (!beans.containsBean(bean.startsWith("@") ? bean.substring(1) : bean)) {
                throw new IllegalArgumentException("names the unknown bean " + bean + " in \"" + text + "\"");
            }
        } else if (onRoot && node instanceof PropertyOrFieldReference word) {
            requireWord(word.getName(), words.contains(word.getName()));
        } else if (onRoot && node instanceof MethodReference call) {
            requireWord(call.getName() + "()", hasMethod(call.getName()));
        }
        boolean compound = node instanceof CompoundExpression;
        boolean elsewhere = node instanceof InlineMap
                || node instanceof Indexer
                || node instanceof Projection
                || node instanceof Selection;
        for (int i = 0; i < node.getChildCount(); i++) {
            SpelNode child = node.getChild(i);
            boolean afterDot = compound && i > 0;
            if (afterDot && child instanceof MethodReference) {
                for (int j = 0; j < child.getChildCount(); j++) {
                    reads |= check(child.getChild(j), onRoot);
                }
            } else {
                reads |= check(child, onRoot && !elsewhere && !afterDot);
            }
        }
        return reads;
    }

    private void requireParameter(String variable) {
        if (!parameters.containsKey(variable)) {
            boolean nameless =
                    parameters.keySet().stream().allMatch(name -> name.matches("[ap]\\d+") || OF_RESULT.contains(name));
            throw new IllegalArgumentException("names the unknown parameter #" + variable + " in \"" + text
                    + "\"; there are " + names()
                    + (nameless && method.getParameterCount() > 0 ? " (compile with -parameters to use names)" : ""));
        }
    }

    private void requireWord(String word, boolean known) {
        if (!known) {
            throw new IllegalArgumentException("has the unknown word " + word + " in \"" + text
                    + "\"; there are header('…'), " + String.join(", ", new TreeSet<>(words))
                    + " and the parameters " + names());
        }
    }

    private Set<String> names() {
        Set<String> names = new TreeSet<>();
        parameters.keySet().stream()
                .filter(name -> !name.matches("p\\d+"))
                .map("#"::concat)
                .forEach(names::add);
        return names;
    }

    private static boolean hasMethod(String name) {
        for (Method candidate : CallRoot.class.getMethods()) {
            if (candidate.getName().equals(name)) {
                return true;
            }
        }
        return false;
    }

    /** Whether the expression may read a word of its root: it names the word, or hands on the root. */
    boolean reads(String word) {
        return text.contains(word) || text.contains("#root") || text.contains("#this");
    }

    /** The parameter that is the whole expression, or -1. */
    public int plainParameter() {
        return expression == null ? parameter : -1;
    }

    /**
     * The value for a call.
     *
     * @throws IllegalStateException when the expression fails; the call must not go
     */
    @Nullable
    Object value(@Nullable Object target, @Nullable Object[] args, @Nullable CurrentRequest request) {
        try {
            return value(target, args, args, request);
        } catch (RuntimeException ex) {
            throw failure(ex, "; the call was not made");
        }
    }

    /**
     * The value for a call that has ended, of an expression {@link #ofResult of its result}.
     *
     * @throws IllegalStateException when the expression fails
     */
    @Nullable
    Object valueAtEnd(
            @Nullable Object target, @Nullable Object[] args, @Nullable CurrentRequest request, CallResult result) {
        int count = method.getParameterCount();
        @Nullable Object[] variables = Arrays.copyOf(args, count + OF_RESULT.size(), Object[].class);
        variables[count] = result.value();
        variables[count + 1] = result.error();
        variables[count + 2] = result.count();
        try {
            return value(target, args, variables, request);
        } catch (RuntimeException ex) {
            throw failure(ex, "");
        }
    }

    private @Nullable Object value(
            @Nullable Object target,
            @Nullable Object[] args,
            @Nullable Object[] variables,
            @Nullable CurrentRequest request) {
        if (expression == null) {
            return variables[parameter];
        }
        if (parameter >= 0) {
            return expression.getValue(shared, variables[parameter]);
        }
        CallRoot root = new CallRoot(method, target, args, request);
        return expression.getValue(readsParameters ? new ArgumentContext(shared, parameters, variables) : shared, root);
    }

    private IllegalStateException failure(RuntimeException cause, String consequence) {
        String why = NestedExceptionUtils.getMostSpecificCause(cause).getMessage();
        return new IllegalStateException(this + " failed: " + why + consequence, cause);
    }

    /** The attribute, its limit, and the text. */
    @Override
    public String toString() {
        return attribute + " \"" + text + "\"";
    }
}
