package io.ratelimited.spring.internals.expression;

import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.security.Principal;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.BeanUtils;
import org.springframework.beans.factory.config.ConfigurableBeanFactory;
import org.springframework.core.MethodParameter;
import org.springframework.core.annotation.AnnotatedMethod;
import org.springframework.core.annotation.MergedAnnotation;
import org.springframework.core.annotation.MergedAnnotations;
import org.springframework.core.annotation.MergedAnnotations.SearchStrategy;
import org.springframework.expression.spel.SpelNode;
import org.springframework.expression.spel.ast.BeanReference;
import org.springframework.expression.spel.ast.CompoundExpression;
import org.springframework.expression.spel.ast.ConstructorReference;
import org.springframework.expression.spel.ast.Elvis;
import org.springframework.expression.spel.ast.FunctionReference;
import org.springframework.expression.spel.ast.Indexer;
import org.springframework.expression.spel.ast.InlineMap;
import org.springframework.expression.spel.ast.IntLiteral;
import org.springframework.expression.spel.ast.Literal;
import org.springframework.expression.spel.ast.MethodReference;
import org.springframework.expression.spel.ast.Projection;
import org.springframework.expression.spel.ast.PropertyOrFieldReference;
import org.springframework.expression.spel.ast.Selection;
import org.springframework.expression.spel.ast.StringLiteral;
import org.springframework.expression.spel.ast.Ternary;
import org.springframework.expression.spel.ast.TypeReference;
import org.springframework.expression.spel.ast.VariableReference;
import org.springframework.util.StringUtils;

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
    private static final String MESSAGING = "org.springframework.messaging.handler.annotation.";
    /** Annotations of parameters that a handler method binds to what its caller sends. */
    private static final List<String> BOUND = Stream.concat(
                    Stream.of(
                                    "RequestHeader",
                                    "RequestParam",
                                    "CookieValue",
                                    "PathVariable",
                                    "MatrixVariable",
                                    "RequestBody",
                                    "RequestPart",
                                    "ModelAttribute")
                            .map((WEB + "bind.annotation.")::concat),
                    Stream.of(
                            "org.springframework.graphql.data.method.annotation.Argument",
                            "org.springframework.graphql.data.method.annotation.Arguments"))
            .toList();
    /** As {@link #BOUND}, where clients send the message: listeners of a queue have the same annotations. */
    private static final List<String> BOUND_TO_MESSAGE = Stream.of(
                    "Header", "Headers", "Payload", "DestinationVariable")
            .map(MESSAGING::concat)
            .toList();
    /** Annotations of methods that bind parameters without an annotation, too. */
    private static final List<String> BINDING =
            List.of(WEB + "bind.annotation.RequestMapping", WEB + "service.annotation.HttpExchange");
    /** As {@link #BINDING}, for messages of clients. */
    private static final List<String> OF_MESSAGES = List.of(
            MESSAGING + "MessageMapping",
            "org.springframework.messaging.simp.annotation.SubscribeMapping",
            "org.springframework.messaging.rsocket.annotation.ConnectMapping");
    /** Packages of annotations that do not say where the value of a parameter comes from. */
    private static final List<String> NO_ORIGIN = List.of(
            "jakarta.validation.",
            "jakarta.annotation.",
            "org.springframework.validation.",
            "org.springframework.format.",
            "org.springframework.lang.",
            "org.jspecify.",
            "org.jetbrains.",
            "org.hibernate.validator.",
            "io.swagger.");
    /** Packages of types that a handler method is given by the framework. An application's own type is a form. */
    private static final List<String> GIVEN =
            List.of("java.", "javax.", "jakarta.", "kotlin.", "org.springframework.", "reactor.");
    /** Types of which every part is text of a caller, or a session that nobody has verified. */
    private static final Set<String> WRITTEN = Set.of(
            "jakarta.servlet.http.HttpSession",
            "jakarta.servlet.http.Part",
            WEB + "server.WebSession",
            WEB + "multipart.MultipartFile",
            "org.springframework.http.codec.multipart.Part",
            "org.springframework.http.HttpHeaders");
    /** Types that have such parts, beside others. */
    private static final Set<String> REQUESTS = Set.of(
            "jakarta.servlet.ServletRequest",
            WEB + "context.request.WebRequest",
            WEB + "server.ServerWebExchange",
            WEB + "servlet.function.ServerRequest",
            WEB + "reactive.function.server.ServerRequest",
            "org.springframework.http.HttpMessage",
            "org.springframework.http.HttpEntity");
    /** As {@link #REQUESTS}, in messages of clients. */
    private static final Set<String> MESSAGES = Set.of(
            "org.springframework.messaging.Message", "org.springframework.messaging.support.MessageHeaderAccessor");

    private static final Pattern PART = Pattern.compile(
            "(get|requested|request|first)*(header|param|query|cookie|session|form|multipart|part|body"
                    + "|server|host|uri|url|path|servletpath|content|locale|character|description)",
            Pattern.CASE_INSENSITIVE);
    /** As {@link #PART}, of messages: other headers are those of the server, such as its user. */
    private static final Pattern MESSAGE_PART = Pattern.compile("(get)?payload|.*native", Pattern.CASE_INSENSITIVE);
    /** Words whose value is the size of what a caller sends, which is what its call costs. */
    private static final Set<String> SIZES = Set.of("size", "length", "count");

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
    private final Method method;
    private final Map<String, Integer> positions;
    private final Set<String> headers = new HashSet<>();
    /** The properties that the expression reads, of the root or of anything else, also by their getters. */
    private final Set<String> read = new HashSet<>();

    private final boolean looksUp;
    private boolean readsVariables;
    private boolean readsRoot;
    private boolean handsOnRoot;
    private boolean readsUnverified;
    private boolean readsCancelled;
    private boolean usesBeans;

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
        this.method = method;
        this.positions = parameters;
        check(parsed, true);
        noteUnverified(parsed, true);
        this.looksUp = isLookedUp(parsed);
    }

    /** Returns whether the expression may read a word of its root: it names the word or its getter, or hands on the root. */
    boolean reads(String word) {
        return handsOnRoot || read.contains(word);
    }

    /** Returns whether the value is what a bean returns, or a constant. */
    boolean looksUp() {
        return looksUp;
    }

    private static boolean isLookedUp(SpelNode node) {
        if (node instanceof Ternary || node instanceof Elvis) {
            return IntStream.range(node instanceof Ternary ? 1 : 0, node.getChildCount())
                    .allMatch(i -> isLookedUp(node.getChild(i)));
        }
        return node instanceof Literal
                || (node instanceof CompoundExpression && node.getChild(0) instanceof BeanReference);
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

    /** Returns whether code of the application runs that is a bean: the expression names one, or the called object. */
    boolean usesBeans() {
        return usesBeans || reads("target");
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
        usesBeans |= node instanceof BeanReference;
        if (node instanceof PropertyOrFieldReference property) {
            read.add(property.getName());
        } else if (node instanceof MethodReference getter && getter.getName().startsWith("get")) {
            read.add(StringUtils.uncapitalize(getter.getName().substring(3)));
        }
        if (node instanceof VariableReference reference) {
            String variable = name(text, reference);
            if (SELF.contains(variable)) {
                readsRoot = true;
                handsOnRoot = true;
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
        boolean written = node instanceof VariableReference variable && isWritten(this.method, position(variable));
        boolean fromRoot = compound
                && node.getChild(0) instanceof VariableReference variable
                && SELF.contains(name(text, variable));
        int start = fromRoot ? 1 : 0;
        boolean argument =
                onRoot && (compound ? isArgumentWritten(node, start) : (isArguments(node) && isAnyWritten()));
        boolean part = compound
                && node.getChild(0) instanceof VariableReference request
                && readsPart(this.method, position(request), node);
        boolean found = (onRoot && (session || method)) || written || argument || part;
        readsUnverified |= found;
        for (int i = 0; i < node.getChildCount(); i++) {
            boolean word = !compound || i == 0 || (i == 1 && fromRoot);
            boolean judged = compound && i == start && isArguments(node.getChild(i));
            if (!judged) {
                noteUnverified(node.getChild(i), word || node instanceof MethodReference);
            }
        }
    }

    private int position(VariableReference variable) {
        return positions.getOrDefault(name(text, variable), -1);
    }

    private static boolean isArguments(SpelNode node) {
        return (node instanceof PropertyOrFieldReference word && word.getName().equals("args"))
                || (node instanceof MethodReference call && call.getName().equals("getArgs"));
    }

    /** Whether a path that starts with {@code args} reads an argument that a caller may state, or that part of one. */
    private boolean isArgumentWritten(SpelNode path, int start) {
        if (path.getChildCount() <= start || !isArguments(path.getChild(start))) {
            return false;
        }
        boolean indexed = path.getChildCount() > start + 1
                && path.getChild(start + 1) instanceof Indexer index
                && index.getChild(0) instanceof IntLiteral;
        if (!indexed) {
            return isAnyWritten();
        }
        int position = (Integer)
                Objects.requireNonNull(((IntLiteral) path.getChild(start + 1).getChild(0))
                        .getLiteralValue()
                        .getValue());
        return position < method.getParameterCount()
                && (isWritten(method, position) || readsPart(method, position, path));
    }

    private boolean isAnyWritten() {
        return IntStream.range(0, method.getParameterCount()).anyMatch(position -> isWritten(method, position));
    }

    /** Returns whether the value is the size of something, such as {@code #orders.size()}. */
    static boolean isSize(SpelNode node) {
        SpelNode last = node.getChildCount() == 0 || node instanceof MethodReference
                ? node
                : node.getChild(node.getChildCount() - 1);
        String name = last instanceof PropertyOrFieldReference word
                ? word.getName()
                : last instanceof MethodReference call ? call.getName() : "";
        return SIZES.contains(name);
    }

    private static boolean readsPart(Method method, int position, SpelNode path) {
        return (isOf(REQUESTS, method, position) && reads(PART, path))
                || (isOf(MESSAGES, method, position) && isOfMessages(method) && reads(MESSAGE_PART, path));
    }

    private static boolean reads(Pattern part, SpelNode path) {
        for (int i = 1; i < path.getChildCount(); i++) {
            String word = path.getChild(i) instanceof PropertyOrFieldReference property
                    ? property.getName()
                    : path.getChild(i) instanceof MethodReference call ? call.getName() : "";
            if (part.matcher(word).lookingAt()) {
                return true;
            }
        }
        return false;
    }

    /**
     * Returns whether a caller may state a parameter without proof. Handlers bind simple types and forms without an annotation,
     * too. A method that no class of the application has is that of an HTTP client, which the application calls itself.
     */
    static boolean isWritten(Method method, int position) {
        Class<?> owner = method.getDeclaringClass();
        if (position < 0 || owner.isInterface() || owner.isHidden() || Proxy.isProxyClass(owner)) {
            return false;
        }
        MethodParameter parameter = new AnnotatedMethod(method).getMethodParameters()[position];
        MergedAnnotations annotations = MergedAnnotations.from(parameter.getParameterAnnotations());
        boolean stated = Stream.of(parameter.getParameterAnnotations())
                .map(annotation -> annotation.annotationType().getName())
                .anyMatch(name -> NO_ORIGIN.stream().noneMatch(name::startsWith));
        boolean ofMessage = isOfMessages(method);
        boolean bound = stated
                ? BOUND.stream().anyMatch(annotations::isPresent)
                        || (ofMessage
                                && BOUND_TO_MESSAGE.stream().anyMatch(annotations::isPresent)
                                && !isUser(annotations))
                : (ofMessage && mayBePayload(parameter.getParameterType()))
                        || (mayBeForm(parameter.getParameterType()) && isBinding(method));
        return bound || isOf(WRITTEN, method, position);
    }

    /** The server itself sets the user of a STOMP session. */
    private static boolean isUser(MergedAnnotations annotations) {
        MergedAnnotation<?> header = annotations.get(MESSAGING + "Header");
        return header.isPresent() && header.getString("value").equals("simpUser");
    }

    private static boolean mayBeForm(Class<?> type) {
        return BeanUtils.isSimpleProperty(type)
                || (!Principal.class.isAssignableFrom(type)
                        && !type.isArray()
                        && GIVEN.stream().noneMatch(type.getName()::startsWith));
    }

    /** A message has no parts of other types than what Spring gives and what its client has sent. */
    private static boolean mayBePayload(Class<?> type) {
        return !Principal.class.isAssignableFrom(type)
                && Stream.of("kotlin.", "org.springframework.").noneMatch(type.getName()::startsWith);
    }

    private static boolean isBinding(Method method) {
        MergedAnnotations annotations = MergedAnnotations.from(method, SearchStrategy.TYPE_HIERARCHY);
        return BINDING.stream().anyMatch(annotations::isPresent);
    }

    /** {@code @JmsListener} or {@code @KafkaHandler}, for example, are mappings, too: of messages that no client has sent. */
    private static boolean isOfMessages(Method method) {
        MergedAnnotations annotations = MergedAnnotations.from(method, SearchStrategy.TYPE_HIERARCHY);
        return OF_MESSAGES.stream()
                .map(annotations::get)
                .filter(MergedAnnotation::isPresent)
                .map(mapping -> mapping.getRoot().getType().getSimpleName())
                .anyMatch(name -> !name.endsWith("Listener") && !name.endsWith("Handler"));
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
