package io.ratelimited.spring.expression;

import java.lang.reflect.Method;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Predicate;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.BeanUtils;
import org.springframework.beans.factory.config.ConfigurableBeanFactory;
import org.springframework.core.MethodParameter;
import org.springframework.core.annotation.AnnotatedMethod;
import org.springframework.core.annotation.MergedAnnotations;
import org.springframework.core.annotation.MergedAnnotations.SearchStrategy;
import org.springframework.expression.spel.SpelNode;
import org.springframework.expression.spel.ast.BeanReference;
import org.springframework.expression.spel.ast.CompoundExpression;
import org.springframework.expression.spel.ast.ConstructorReference;
import org.springframework.expression.spel.ast.FunctionReference;
import org.springframework.expression.spel.ast.Indexer;
import org.springframework.expression.spel.ast.InlineMap;
import org.springframework.expression.spel.ast.MethodReference;
import org.springframework.expression.spel.ast.Projection;
import org.springframework.expression.spel.ast.PropertyOrFieldReference;
import org.springframework.expression.spel.ast.Selection;
import org.springframework.expression.spel.ast.StringLiteral;
import org.springframework.expression.spel.ast.TypeReference;
import org.springframework.expression.spel.ast.VariableReference;

/**
 * The words of a SpEL expression: refuses those that can never mean anything, and notes which parts of a call the others
 * read. Immutable.
 */
final class ExpressionWords {

    /** The variables that are the root or a part of it, not a parameter. */
    static final Set<String> SELF = Set.of("root", "this");
    /** A call of a method. */
    static final Root CALL = new Root(
            CallRoot.class, Set.of("method", "target", "args", "clientIp", "principal", "session", "class"), true);
    /** A request that is no call of a method. */
    static final Root REQUEST = new Root(CallRoot.class, Set.of("clientIp", "principal", "session"), true);

    /** The methods of the root that return values which a caller may state without proof. */
    private static final Set<String> UNVERIFIED = Set.of("header", "session", "getSession");

    private static final String WEB = "org.springframework.web.";
    /** Annotations of parameters that a handler method binds to text of its caller. */
    private static final List<String> BOUND = Stream.of("RequestHeader", "RequestParam", "CookieValue")
            .map((WEB + "bind.annotation.")::concat)
            .toList();
    /** Types of which every part is text of a caller, or a session that nobody has verified. */
    private static final Set<String> WRITTEN = Set.of(
            "jakarta.servlet.http.HttpSession", WEB + "server.WebSession", "org.springframework.http.HttpHeaders");
    /** Types that have such parts, beside others. */
    private static final Set<String> REQUESTS = Set.of(
            "jakarta.servlet.ServletRequest",
            WEB + "context.request.WebRequest",
            WEB + "server.ServerWebExchange",
            WEB + "servlet.function.ServerRequest",
            WEB + "reactive.function.server.ServerRequest",
            "org.springframework.http.HttpMessage",
            "org.springframework.http.HttpEntity");

    private static final Pattern PART = Pattern.compile(
            "(get|requested|first)*(header|param|query|cookie|session|form|multipart|part|body)",
            Pattern.CASE_INSENSITIVE);

    /**
     * The root of an expression.
     *
     * @param names properties of the type that a bare word may mean
     * @param isOpen whether types, constructors and beans may be used, too
     */
    record Root(Class<?> type, Set<String> names, boolean isOpen) {}

    private final String text;
    private final Root root;
    private final Set<String> parameters;
    private final ConfigurableBeanFactory beans;
    private final Predicate<VariableReference> written;
    private final Predicate<VariableReference> requests;
    private final Set<String> headers = new HashSet<>();
    private boolean readsVariables;
    private boolean readsRoot;
    private boolean readsUnverified;
    private boolean readsCancelled;

    /** @throws IllegalArgumentException when the expression has a word that can never mean anything */
    ExpressionWords(
            String text,
            SpelNode parsed,
            Root root,
            Method method,
            Map<String, Integer> parameters,
            ConfigurableBeanFactory beans) {
        this.text = text;
        this.root = root;
        this.parameters = parameters.keySet();
        this.beans = beans;
        this.written = variable -> isWritten(method, parameters.getOrDefault(name(text, variable), -1));
        this.requests = variable -> isOf(REQUESTS, method, parameters.getOrDefault(name(text, variable), -1));
        check(parsed, true);
        noteUnverified(parsed, true);
    }

    boolean readsVariables() {
        return readsVariables;
    }

    boolean readsRoot() {
        return readsRoot;
    }

    /**
     * Returns whether the value contains data that a caller may state without proof: a header or a session that no bean has
     * looked up.
     */
    boolean readsUnverified() {
        return readsUnverified;
    }

    /** Returns whether the expression reads {@code #cancelled}, and so handles calls that are ended from outside. */
    boolean readsCancelled() {
        return readsCancelled;
    }

    Set<String> headers() {
        return headers;
    }

    /** @param onRoot whether a bare word is read from the root, not from the node before it */
    private void check(SpelNode node, boolean onRoot) {
        boolean elsewhere = node instanceof InlineMap
                || node instanceof Indexer
                || node instanceof Projection
                || node instanceof Selection;
        readsRoot |= onRoot && elsewhere;
        if (node instanceof VariableReference reference) {
            String variable = name(text, reference);
            if (SELF.contains(variable)) {
                readsRoot = true;
            } else {
                requireParameter(variable);
                readsVariables = true;
                readsCancelled |= variable.equals("cancelled");
            }
        } else if (!root.isOpen
                && (node instanceof TypeReference
                        || node instanceof ConstructorReference
                        || node instanceof BeanReference)) {
            throw new IllegalArgumentException(
                    "uses " + outside(node) + " in \"" + text + "\"; there are " + shownWords());
        } else if (node instanceof FunctionReference) {
            throw new IllegalArgumentException(
                    "calls the unknown function " + written(text, node) + "() in \"" + text + "\"");
        } else if (node instanceof BeanReference bean && !beans.containsBean(bean.getName())) {
            throw new IllegalArgumentException("names the unknown bean @" + bean.getName() + " in \"" + text + "\"");
        } else if (onRoot && node instanceof PropertyOrFieldReference word) {
            requireWord(word.getName(), root.names.contains(word.getName()));
            readsRoot = true;
        } else if (onRoot && node instanceof MethodReference call) {
            requireWord(
                    call.getName() + "()",
                    Stream.of(root.type.getMethods())
                            .anyMatch(method -> method.getName().equals(call.getName())));
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

    /** Notes values that a caller may choose, but for arguments of methods of beans: the bean judges these. */
    private void noteUnverified(SpelNode node, boolean onRoot) {
        boolean compound = node instanceof CompoundExpression;
        if (compound && node.getChild(0) instanceof BeanReference) {
            return;
        }
        boolean session =
                node instanceof PropertyOrFieldReference word && word.getName().equals("session");
        boolean method = node instanceof MethodReference call && UNVERIFIED.contains(call.getName());
        boolean argument = node instanceof VariableReference variable && written.test(variable);
        boolean part = compound
                && node.getChild(0) instanceof VariableReference request
                && requests.test(request)
                && readsPart(node);
        readsUnverified |= (onRoot && (session || method)) || argument || part;
        boolean fromRoot = compound
                && node.getChild(0) instanceof VariableReference variable
                && SELF.contains(name(text, variable));
        for (int i = 0; i < node.getChildCount(); i++) {
            boolean word = !compound || i == 0 || (i == 1 && fromRoot);
            noteUnverified(node.getChild(i), word || node instanceof MethodReference);
        }
    }

    private static boolean readsPart(SpelNode path) {
        for (int i = 1; i < path.getChildCount(); i++) {
            String word = path.getChild(i) instanceof PropertyOrFieldReference property
                    ? property.getName()
                    : path.getChild(i) instanceof MethodReference call ? call.getName() : "";
            if (PART.matcher(word).lookingAt()) {
                return true;
            }
        }
        return false;
    }

    /**
     * Returns whether a caller may state a parameter without proof. Handlers bind simple types without an annotation,
     * too.
     */
    static boolean isWritten(Method method, int position) {
        if (position < 0) {
            return false;
        }
        MethodParameter parameter = new AnnotatedMethod(method).getMethodParameters()[position];
        MergedAnnotations annotations = MergedAnnotations.from(parameter.getParameterAnnotations());
        boolean bound = parameter.getParameterAnnotations().length > 0
                ? BOUND.stream().anyMatch(annotations::isPresent)
                : BeanUtils.isSimpleProperty(parameter.getParameterType())
                        && MergedAnnotations.from(method, SearchStrategy.TYPE_HIERARCHY)
                                .isPresent(WEB + "bind.annotation.RequestMapping");
        return bound || isOf(WRITTEN, method, position);
    }

    private static boolean isOf(Set<String> types, Method method, int position) {
        return position >= 0 && isOf(types, method.getParameterTypes()[position]);
    }

    private static boolean isOf(Set<String> types, @Nullable Class<?> type) {
        return type != null
                && (types.contains(type.getName())
                        || isOf(types, type.getSuperclass())
                        || Stream.of(type.getInterfaces()).anyMatch(parent -> isOf(types, parent)));
    }

    static String name(String text, VariableReference variable) {
        return written(text, variable).substring(1).strip();
    }

    /** What a closed root keeps out: a bean, a type or a new object. */
    private String outside(SpelNode node) {
        if (node instanceof BeanReference bean) {
            return "@" + bean.getName();
        }
        String type = written(text, node.getChild(0));
        return node instanceof TypeReference ? "T(" + type + ")" : "new " + type;
    }

    /** The start of a node as it stands in its expression: its name, without arguments. */
    private static String written(String text, SpelNode node) {
        return text.substring(node.getStartPosition(), node.getEndPosition());
    }

    private void requireParameter(String variable) {
        if (!parameters.contains(variable)) {
            boolean nameless = parameters.contains("a0")
                    && parameters.stream()
                            .allMatch(name -> name.matches("[ap]\\d+") || CallResult.VARIABLES.containsKey(name));
            throw new IllegalArgumentException("names the unknown parameter #" + variable + " in \"" + text
                    + "\"; there are " + shownParameters()
                    + (nameless ? " (compile with -parameters to use names)" : ""));
        }
    }

    private void requireWord(String word, boolean known) {
        if (!known) {
            throw new IllegalArgumentException(
                    "has the unknown word " + word + " in \"" + text + "\"; there are " + shownWords());
        }
    }

    private String shownWords() {
        return "header('…'), " + String.join(", ", new TreeSet<>(root.names))
                + (root.isOpen ? " and the parameters " + shownParameters() : "");
    }

    private List<String> shownParameters() {
        return parameters.stream()
                .filter(name -> !name.matches("p\\d+"))
                .map("#"::concat)
                .sorted()
                .toList();
    }
}
