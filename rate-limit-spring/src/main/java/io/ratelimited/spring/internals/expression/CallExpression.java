package io.ratelimited.spring.internals.expression;

import io.ratelimited.spring.internals.expression.ExpressionWords.Root;
import io.ratelimited.spring.internals.request.RequestFacts;
import io.ratelimited.spring.internals.text.LogText;
import java.beans.PropertyDescriptor;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.function.Function;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.BeanUtils;
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
import org.springframework.expression.spel.ast.Elvis;
import org.springframework.expression.spel.ast.SpelNodeImpl;
import org.springframework.expression.spel.ast.StringLiteral;
import org.springframework.expression.spel.ast.Ternary;
import org.springframework.expression.spel.ast.VariableReference;
import org.springframework.expression.spel.standard.SpelExpression;
import org.springframework.expression.spel.standard.SpelExpressionParser;
import org.springframework.expression.spel.support.StandardEvaluationContext;
import org.springframework.expression.spel.support.StandardTypeLocator;
import org.springframework.util.ObjectUtils;
import org.springframework.util.ReflectionUtils;

/**
 * A SpEL expression of a limit on a method: parsed once, compiled where it can be, its words checked. {@code #param} and
 * paths of properties of it are read without an evaluation context, and expressions without a parameter share one.
 * Thread-safe.
 */
public final class CallExpression {

    private static final LogText.Lines LOG = LogText.lines(CallExpression.class);
    /** Native images cannot load compiled expressions. */
    private static final SpelCompilerMode COMPILER =
            NativeDetector.inNativeImage() ? SpelCompilerMode.OFF : SpelCompilerMode.MIXED;

    private static final Pattern PATH = Pattern.compile("#(\\w+)(?:\\.(\\w+(?:\\.\\w+)*))?");
    private static final int NONE = -1;

    /** For expressions that are a parameter and evaluate nothing: an application may have a thousand of them. */
    private static final StandardEvaluationContext UNUSED = new StandardEvaluationContext();

    /** Expressions belong to a method: a request is a call without parameters. */
    private static final Method REQUEST =
            Objects.requireNonNull(ReflectionUtils.findMethod(RequestFacts.class, "clientIp"));

    /** The name of the expression, for messages. */
    private final String name;

    private final String text;
    private final Method method;
    private final ConfigurableBeanFactory beans;
    /** Positions of the arguments by the names they have in the expression. */
    private final Map<String, Integer> parameters;
    /** The parameter that the expression starts from, or {@link #NONE}. */
    private final int parameter;
    /** The path that is read from the parameter; null for the parameter itself. Without a parameter, the whole expression. */
    private final @Nullable SpelExpression expression;
    /** The words of the call that the expression reads; null if it is a parameter. */
    private final @Nullable ExpressionWords words;
    /** The name of the bean that the expression starts from, as in {@code @keys.owner(#id)}; null if there is none. */
    private final @Nullable String bean;
    /** That bean, once a call has needed it, if it is a singleton. */
    private volatile @Nullable Object singleton;
    /** Knows types, accessors and beans; nothing of a call. */
    private final StandardEvaluationContext shared;

    /**
     * An expression of a limit on a method. One of the attribute {@code charge} is evaluated when a call has ended: beside the
     * parameters it sees {@code #result}, {@code #error}, {@code #count} and {@code #cancelled}, which hide parameters of the
     * same name.
     *
     * @param attribute the attribute that has it
     * @param limit the name of the limit, for messages
     * @param type the class that may state type arguments of the method
     * @param parameters positions of the arguments by name
     * @throws IllegalArgumentException when the text is no expression, or has a word that can never mean anything
     */
    public CallExpression(
            String attribute,
            String limit,
            String text,
            Method method,
            Class<?> type,
            Map<String, Integer> parameters,
            ConfigurableBeanFactory beans) {
        this(
                method.equals(REQUEST) ? ExpressionWords.REQUEST : ExpressionWords.CALL,
                attribute + " of rate limit '" + limit + "'",
                text,
                method,
                type,
                attribute.equals("charge") ? withResult(parameters) : parameters,
                beans);
    }

    private CallExpression(
            Root root,
            String name,
            String text,
            Method method,
            Class<?> type,
            Map<String, Integer> parameters,
            ConfigurableBeanFactory beans) {
        this.name = name;
        this.text = text.strip();
        this.method = method;
        this.beans = beans;
        var path = PATH.matcher(this.text);
        boolean plain = path.matches() && !ExpressionWords.SELF.contains(path.group(1));
        this.parameter = plain ? parameters.getOrDefault(path.group(1), NONE) : NONE;
        String rest = plain ? path.group(2) : null;
        if (parameter != NONE && rest == null) { // needs nothing of SpEL
            this.parameters = Map.of();
            this.words = null;
            this.bean = null;
            this.expression = null;
            this.shared = UNUSED;
            return;
        }
        this.parameters = Map.copyOf(parameters);
        SpelExpression whole = parse(this.text, beans);
        this.words = new ExpressionWords(this.text, whole.getAST(), root, method, parameters, beans);
        UndeclaredMember.find(this.text, whole.getAST(), root, method, type, parameters)
                .ifPresent(this::refuseOrWarn);
        if (parameter != NONE) {
            this.bean = null;
            this.expression = parse(Objects.requireNonNull(rest), beans);
        } else if (whole.getAST() instanceof CompoundExpression start
                && start.getChild(0) instanceof BeanReference reference) {
            this.bean = reference.getName();
            this.expression = fromVariable(start, this.text, beans);
        } else {
            this.bean = null;
            this.expression = whole;
        }
        this.shared = new StandardEvaluationContext();
        shared.setTypeConverter(CallerTexts.CONVERTER);
        shared.setTypeLocator(new StandardTypeLocator(beans.getBeanClassLoader()));
        shared.setBeanResolver(new BeanFactoryResolver(beans));
    }

    /** Warns where a subclass may have the property. A final class, or a stand-in for an object of Kotlin, never has it. */
    private void refuseOrWarn(UndeclaredMember missing) {
        if (missing.isFinal()) {
            throw new IllegalArgumentException("reads " + missing + ", in \"" + text + "\""
                    + (!missing.isOfValueClass() && UndeclaredMember.mayHaveValueClasses(method)
                            ? "; Kotlin passes the value of a value class in its place, so that the parameter alone"
                                    + " reads it"
                            : missing.hint()));
        }
        LOG.warn("The " + this + " reads " + missing
                + ". Calls whose argument does not have it fail: correct the expression. [RL-282]");
    }

    /**
     * SpEL compiles a variable, but not a reference to a bean: a path that starts from a bean starts from a variable. A
     * reference elsewhere in an expression stays, which costs a call about 400 ns.
     */
    private static SpelExpression fromVariable(CompoundExpression path, String text, ConfigurableBeanFactory beans) {
        SpelNodeImpl[] nodes = new SpelNodeImpl[path.getChildCount()];
        SpelNode reference = path.getChild(0);
        nodes[0] = new VariableReference(CallContext.BEAN, reference.getStartPosition(), reference.getEndPosition());
        for (int i = 1; i < nodes.length; i++) {
            nodes[i] = (SpelNodeImpl) path.getChild(i);
        }
        return new SpelExpression(
                text,
                new CompoundExpression(path.getStartPosition(), path.getEndPosition(), nodes),
                configuration(beans));
    }

    private static Map<String, Integer> withResult(Map<String, Integer> parameters) {
        Map<String, Integer> variables = new HashMap<>(parameters);
        variables.putAll(CallResult.VARIABLES);
        return variables;
    }

    /** An expression of a limit on requests. */
    public static CallExpression ofRequest(String attribute, String limit, String text, ConfigurableBeanFactory beans) {
        return new CallExpression(attribute, limit, text, REQUEST, REQUEST.getDeclaringClass(), Map.of(), beans);
    }

    /**
     * An expression on an object that is no call of a method, and on nothing else: without variables, types, constructors and
     * beans.
     *
     * @param name the name of the expression, for messages
     * @param root the class of the object, public as its methods are
     * @throws IllegalArgumentException as {@link #CallExpression}, and when the expression does not read the object
     */
    public static CallExpression on(Class<?> root, String name, String text, ConfigurableBeanFactory beans) {
        Set<String> names = Stream.of(BeanUtils.getPropertyDescriptors(root))
                .map(PropertyDescriptor::getName)
                .filter(property -> !property.equals("class"))
                .collect(Collectors.toSet());
        CallExpression expression = new CallExpression(
                new Root(root, names, false), name, text, REQUEST, REQUEST.getDeclaringClass(), Map.of(), beans);
        if (!Objects.requireNonNull(expression.words).readsRoot()) {
            throw new IllegalArgumentException("has the same value for every call: \"" + expression.text + "\"");
        }
        return expression;
    }

    /** Classes are those that beans see, on whatever thread a call comes: its own class loader may see neither. */
    private static SpelParserConfiguration configuration(ConfigurableBeanFactory beans) {
        return new SpelParserConfiguration(COMPILER, beans.getBeanClassLoader());
    }

    private static SpelExpression parse(String text, ConfigurableBeanFactory beans) {
        try {
            return new SpelExpressionParser(configuration(beans)).parseRaw(text);
        } catch (ParseException | IllegalStateException | IllegalArgumentException ex) {
            String why = ex instanceof ParseException parsing ? parsing.getSimpleMessage() : ex.getMessage();
            throw new IllegalArgumentException("is not a SpEL expression: \"" + text + "\" (" + why + ")", ex);
        }
    }

    /** Returns whether the expression may read a word of its root: it names the word, or hands on the root. */
    public boolean reads(String word) {
        return words != null && words.reads(word);
    }

    /** Returns whether the value is what a bean returns, or a constant: neither a caller nor other code chooses it. */
    public boolean looksUp() {
        return words != null && words.looksUp();
    }

    /** Returns whether callers choose the value: it reads their text or a session, and no bean looks that up. */
    public boolean canBeInvented() {
        return words == null ? ExpressionWords.isWritten(method, parameter) : words.readsUnverified();
    }

    /** Returns whether the value is the size of something, such as {@code #orders.size()}. */
    public boolean isSize() {
        return expression != null && ExpressionWords.isSize(expression.getAST());
    }

    /** The texts that the value can be without a look at the call: {@code 'a'} and {@code 'b'} of {@code #x ? 'a' : 'b'}. */
    public List<String> constants() {
        List<String> constants = new ArrayList<>();
        if (parameter == NONE && bean == null && expression != null) {
            addConstants(expression.getAST(), constants);
        }
        return constants;
    }

    private static void addConstants(SpelNode node, List<String> constants) {
        if (node instanceof StringLiteral literal) {
            constants.add(String.valueOf(literal.getLiteralValue().getValue()));
        }
        boolean chooses = node instanceof Ternary || node instanceof Elvis;
        for (int i = node instanceof Ternary ? 1 : 0; chooses && i < node.getChildCount(); i++) {
            addConstants(node.getChild(i), constants);
        }
    }

    /** Returns whether an expression {@link #valueAtEnd of a result} reads {@code #cancelled}. */
    public boolean readsCancelled() {
        return words != null && words.readsCancelled();
    }

    /** The parameter that is the whole expression, or -1. */
    public int plainParameter() {
        return expression == null ? parameter : NONE;
    }

    /**
     * The value for a call.
     *
     * @throws InvalidCallException when the expression fails, and reads what a caller has written
     * @throws IllegalStateException when the expression fails; the call must not go
     */
    @Nullable
    public Object value(@Nullable Object target, @Nullable Object[] args, @Nullable RequestFacts request) {
        try {
            return value(target, args, null, request);
        } catch (RuntimeException ex) {
            IllegalStateException failure = failure(ex, "; the call was not made");
            throw failsByCaller(request) ? invalid(String.valueOf(failure.getMessage()), failure.getCause()) : failure;
        }
    }

    /** Returns whether a failure comes of the text of a caller, and not of a bean, the session or the user, nor of a missing request. */
    private boolean failsByCaller(@Nullable RequestFacts request) {
        return words != null
                && words.readsUnverified()
                && !words.usesBeans()
                && !words.reads("session")
                && !words.reads("principal")
                && (request != null || !words.readsRoot());
    }

    /**
     * The exception for a call whose caller has written a value that the limit cannot use.
     *
     * @param message for the log
     */
    public InvalidCallException invalid(String message, @Nullable Throwable cause) {
        return new InvalidCallException(
                this, message, "The request has a missing or invalid value for the " + name + ".", cause);
    }

    /**
     * The value for a call that has ended, of an expression with its result.
     *
     * @throws IllegalStateException when the expression fails
     */
    @Nullable
    public Object valueAtEnd(
            @Nullable Object target, @Nullable Object[] args, @Nullable RequestFacts request, CallResult result) {
        try {
            return value(target, args, result, request);
        } catch (RuntimeException ex) {
            throw failure(ex, "");
        }
    }

    /**
     * The value for an object of the class that the expression is {@link #on}.
     *
     * @throws IllegalStateException when the expression fails; the call must not go
     */
    @Nullable
    public Object value(Object root) {
        try {
            return Objects.requireNonNull(expression).getValue(shared, root);
        } catch (RuntimeException ex) {
            throw failure(ex, "; the call was not made");
        }
    }

    /**
     * The value for a call as a key that cannot change; null for a missing one.
     *
     * @throws IllegalStateException when the expression fails, or when the value is no key; the call must not go
     */
    @Nullable
    public Object key(@Nullable Object target, @Nullable Object[] args, @Nullable RequestFacts request) {
        Object value = ObjectUtils.unwrapOptional(value(target, args, request));
        if (expression == null || value == null) {
            return asKey(value, CallerNames::part);
        }
        if (value instanceof String text && !mayBeOfObjects(text)) { // most keys, without an object for each
            return asKey(text, CallerNames::part);
        }
        return asKey(value, part -> {
            Object known = CallerNames.part(part);
            if (known instanceof String text && mayBeOfObjects(text)) {
                requireNoTextOfObjects(text, args, request);
            }
            return known;
        });
    }

    /** Returns whether a text has a mark that is in the text of each object without {@code toString()} and authentication. */
    private static boolean mayBeOfObjects(String text) {
        return text.indexOf('@') >= 0 || text.indexOf('[') >= 0;
    }

    /** The value for an object of the class that the expression is {@link #on}, as a {@link #key}. */
    @Nullable
    public Object key(Object root) {
        return asKey(ObjectUtils.unwrapOptional(value(root)), CallerNames::part);
    }

    private @Nullable Object asKey(@Nullable Object value, Function<Object, @Nullable Object> parts) {
        try {
            Object key = CallerNames.inKey(value, parts);
            return key instanceof String string && string.isBlank() ? null : key;
        } catch (IllegalArgumentException ex) {
            throw new IllegalStateException(this + ": " + ex.getMessage() + "; the call was not made", ex);
        }
    }

    private void requireNoTextOfObjects(String text, @Nullable Object[] args, @Nullable RequestFacts request) {
        for (Object argument : args) {
            CallerNames.requireNoTextOf(argument, text);
        }
        if (reads("principal") && (request != null || CallerNames.isKnownToThread())) {
            CallerNames.requireNoTextOf(new CallRoot(method, null, args, request).getPrincipal(), text);
        }
    }

    private @Nullable Object value(
            @Nullable Object target,
            @Nullable Object[] args,
            @Nullable CallResult result,
            @Nullable RequestFacts request) {
        if (expression == null) {
            return CallResult.variable(parameter, args, result);
        }
        if (parameter != NONE) {
            return expression.getValue(shared, CallResult.variable(parameter, args, result));
        }
        ExpressionWords read = Objects.requireNonNull(words);
        CallRoot root = read.readsRoot() ? new CallRoot(method, target, args, request) : null;
        return expression.getValue(
                read.readsVariables() || bean != null
                        ? new CallContext(shared, parameters, args, result, bean == null ? null : bean(bean))
                        : shared,
                root);
    }

    private Object bean(String name) {
        Object known = singleton;
        if (known != null) {
            return known;
        }
        Object found = beans.getBean(name);
        if (beans.isSingleton(name)) {
            singleton = found;
        }
        return found;
    }

    /**
     * The request as a charge needs it when the call has ended. Without a request, the caller that this thread knows; null if the
     * charge needs neither.
     */
    @Nullable
    public RequestFacts captured(@Nullable RequestFacts request) {
        if (words == null || !words.readsRoot()) {
            return null;
        }
        if (request != null) {
            return new CapturedRequest(request, this, words.headers());
        }
        return words.reads("principal") ? CapturedThread.now() : null;
    }

    private IllegalStateException failure(RuntimeException cause, String consequence) {
        String why =
                String.valueOf(NestedExceptionUtils.getMostSpecificCause(cause).getMessage());
        String escaped = LogText.escaped(why);
        // A cause is logged as it is: one with text of a caller could forge lines of the log.
        return new IllegalStateException(
                this + " failed: " + escaped + consequence, escaped.equals(why) ? cause : LogText.escaped(cause));
    }

    /** The name of the expression, and its text. */
    @Override
    public String toString() {
        return name + " \"" + text + "\"";
    }
}
