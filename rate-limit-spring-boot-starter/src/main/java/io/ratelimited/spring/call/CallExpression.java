package io.ratelimited.spring.call;

import io.ratelimited.spring.CurrentRequest;
import java.lang.reflect.Method;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.config.ConfigurableBeanFactory;
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
import org.springframework.expression.spel.ast.StringLiteral;
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
    private static final int NONE = -1;

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
    private final String limit;
    private final String text;
    private final Method method;
    private final Set<String> words;
    private final ConfigurableBeanFactory beans;
    /** Positions of the arguments by the names they have in the expression. */
    private final Map<String, Integer> parameters;
    /** The parameter that the expression starts from, or {@link #NONE}. */
    private final int parameter;
    /** The path that is read from the parameter; null for the parameter itself. Without a parameter, the whole expression. */
    private final @Nullable SpelExpression expression;
    /** Whether arguments have to be looked up by name. */
    private boolean readsVariables;
    /** Whether the root is read. */
    private boolean readsRoot;
    /** Names of request headers that are written in the expression. */
    private final Set<String> headers;

    private final BeanVariables beanVariables;
    /** Knows types and accessors; nothing of a call. */
    private final StandardEvaluationContext shared;

    /**
     * @param attribute which one, for messages
     * @param limit the name of the limit, for messages
     * @param parameters positions of the arguments by name
     * @throws IllegalArgumentException when the text is no expression, or has a word that can never mean anything
     */
    public CallExpression(
            String attribute,
            String limit,
            String text,
            Method method,
            Map<String, Integer> parameters,
            ConfigurableBeanFactory beans) {
        this(attribute, limit, text, method, parameters, WORDS, beans);
    }

    private CallExpression(
            String attribute,
            String limit,
            String text,
            Method method,
            Map<String, Integer> parameters,
            Set<String> words,
            ConfigurableBeanFactory beans) {
        this.attribute = attribute;
        this.limit = limit;
        this.text = text.strip();
        this.method = method;
        this.words = words;
        this.beans = beans;
        var path = PATH.matcher(this.text);
        boolean plain = path.matches() && !SELF.contains(path.group(1));
        this.parameter = plain ? parameters.getOrDefault(path.group(1), NONE) : NONE;
        String rest = plain ? path.group(2) : null;
        if (parameter != NONE && rest == null) { // needs nothing of SpEL
            this.parameters = Map.of();
            this.headers = Set.of();
            this.beanVariables = BeanVariables.NONE;
            this.expression = null;
            this.shared = UNUSED;
            return;
        }
        this.parameters = Map.copyOf(parameters);
        this.headers = new HashSet<>();
        SpelExpression whole = parse(this.text);
        check(whole.getAST(), true);
        this.beanVariables = new BeanVariables(this.text, whole.getAST(), beans);
        this.readsVariables |= !beanVariables.isEmpty();
        this.expression = parse(rest == null || parameter == NONE ? beanVariables.text() : rest);
        this.shared = context(beans);
    }

    /**
     * An expression that is evaluated when a call has ended: beside the parameters it sees {@code #result}, {@code #error}
     * and {@code #count}, which hide parameters of the same name.
     */
    public static CallExpression ofResult(
            String attribute,
            String limit,
            String text,
            Method method,
            Map<String, Integer> parameters,
            ConfigurableBeanFactory beans) {
        Map<String, Integer> variables = new HashMap<>(parameters);
        variables.putAll(CallResult.VARIABLES);
        return new CallExpression(attribute, limit, text, method, variables, beans);
    }

    /** An expression of a limit on requests. */
    public static CallExpression ofRequest(String attribute, String limit, String text, ConfigurableBeanFactory beans) {
        return new CallExpression(attribute, limit, text, REQUEST, Map.of(), WORDS_OF_REQUEST, beans);
    }

    private static StandardEvaluationContext context(ConfigurableBeanFactory beans) {
        StandardEvaluationContext context = new StandardEvaluationContext();
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
     * Checks the words of an expression, and notes what it reads.
     *
     * @param onRoot whether a bare word is read from the root, not from what stands before it
     */
    private void check(SpelNode node, boolean onRoot) {
        boolean elsewhere = node instanceof InlineMap
                || node instanceof Indexer
                || node instanceof Projection
                || node instanceof Selection;
        readsRoot |= onRoot && elsewhere;
        if (node instanceof VariableReference) {
            String variable = node.toStringAST().substring(1);
            if (SELF.contains(variable)) {
                readsRoot = true;
            } else {
                requireParameter(variable);
                readsVariables = true;
            }
        } else if (node instanceof FunctionReference) {
            throw new IllegalArgumentException(
                    "calls the unknown function " + node.toStringAST() + " in \"" + text + "\"");
        } else if (node instanceof BeanReference reference) {
            if (!beans.containsBean(BeanVariables.name(reference))) {
                throw new IllegalArgumentException(
                        "names the unknown bean " + reference.toStringAST().replace("'", "") + " in \"" + text + "\"");
            }
        } else if (onRoot && node instanceof PropertyOrFieldReference word) {
            requireWord(word.getName(), words.contains(word.getName()));
            readsRoot = true;
        } else if (onRoot && node instanceof MethodReference call) {
            requireWord(call.getName() + "()", hasMethod(call.getName()));
            readsRoot = true;
            if (call.getName().equals("header")
                    && call.getChildCount() == 1
                    && call.getChild(0) instanceof StringLiteral name) {
                headers.add(String.valueOf(name.getLiteralValue().getValue()));
            }
        }
        boolean compound = node instanceof CompoundExpression;
        for (int i = 0; i < node.getChildCount(); i++) {
            SpelNode child = node.getChild(i);
            boolean afterDot = compound && i > 0;
            if (afterDot && child instanceof MethodReference) {
                for (int j = 0; j < child.getChildCount(); j++) {
                    check(child.getChild(j), onRoot);
                }
            } else {
                check(child, onRoot && !elsewhere && !afterDot);
            }
        }
    }

    private void requireParameter(String variable) {
        if (!parameters.containsKey(variable)) {
            boolean nameless = parameters.keySet().stream()
                    .allMatch(name -> name.matches("[ap]\\d+") || CallResult.VARIABLES.containsKey(name));
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
        return expression == null ? parameter : NONE;
    }

    /**
     * The value for a call.
     *
     * @throws IllegalStateException when the expression fails; the call must not go
     */
    @Nullable
    Object value(@Nullable Object target, @Nullable Object[] args, @Nullable CurrentRequest request) {
        try {
            return value(target, args, null, request);
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
        try {
            return value(target, args, result, request);
        } catch (RuntimeException ex) {
            throw failure(ex, "");
        }
    }

    private @Nullable Object value(
            @Nullable Object target,
            @Nullable Object[] args,
            @Nullable CallResult result,
            @Nullable CurrentRequest request) {
        if (expression == null) {
            return CallResult.variable(parameter, args, result);
        }
        if (parameter != NONE) {
            return expression.getValue(shared, CallResult.variable(parameter, args, result));
        }
        CallRoot root = readsRoot ? new CallRoot(method, target, args, request) : null;
        return expression.getValue(
                readsVariables ? new ArgumentContext(shared, parameters, beanVariables, args, result) : shared, root);
    }

    /** The request as a charge needs it when the call has ended; null if it needs none. */
    @Nullable
    CurrentRequest captured(@Nullable CurrentRequest request) {
        return readsRoot && request != null ? new CapturedRequest(request, this, headers) : null;
    }

    private IllegalStateException failure(RuntimeException cause, String consequence) {
        String why = NestedExceptionUtils.getMostSpecificCause(cause).getMessage();
        return new IllegalStateException(this + " failed: " + why + consequence, cause);
    }

    /** The attribute, its limit, and the text. */
    @Override
    public String toString() {
        return attribute + " of rate limit '" + limit + "' \"" + text + "\"";
    }
}
