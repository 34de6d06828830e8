package io.ratelimited.spring.client;

import io.ratelimited.core.CanonicalKey;
import io.ratelimited.spring.InvalidRateLimitException;
import java.net.URI;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.springframework.expression.Expression;
import org.springframework.expression.ParseException;
import org.springframework.expression.spel.SpelEvaluationException;
import org.springframework.expression.spel.SpelMessage;
import org.springframework.expression.spel.SpelNode;
import org.springframework.expression.spel.ast.BeanReference;
import org.springframework.expression.spel.ast.ConstructorReference;
import org.springframework.expression.spel.ast.FunctionReference;
import org.springframework.expression.spel.ast.TypeReference;
import org.springframework.expression.spel.ast.VariableReference;
import org.springframework.expression.spel.standard.SpelExpression;
import org.springframework.expression.spel.standard.SpelExpressionParser;
import org.springframework.expression.spel.support.SimpleEvaluationContext;
import org.springframework.util.ObjectUtils;

/** The expression that divides the state of a client: SpEL on a {@link OutgoingRequest}, without beans and types. Thread-safe. */
final class ClientKey {

    private static final OutgoingRequest SAMPLE =
            new OutgoingRequest("GET", URI.create("https://host.example/path"), name -> List.of());
    private static final Set<SpelMessage> UNKNOWN_WORDS = Set.of(
            SpelMessage.PROPERTY_OR_FIELD_NOT_READABLE,
            SpelMessage.METHOD_NOT_FOUND,
            SpelMessage.TYPE_NOT_FOUND,
            SpelMessage.NO_BEAN_RESOLVER_REGISTERED);

    private final String property;
    private final Expression expression;
    private final SimpleEvaluationContext context = SimpleEvaluationContext.forReadOnlyDataBinding()
            .withInstanceMethods()
            .build();

    /** @throws InvalidRateLimitException when the text is no expression, or has a word that can never mean anything */
    ClientKey(String property, String text) {
        this.property = property;
        this.expression = parse(property, text);
        try {
            expression.getValue(context, SAMPLE);
        } catch (SpelEvaluationException ex) {
            if (UNKNOWN_WORDS.contains(ex.getMessageCode())) {
                throw invalid(property, text, ex);
            }
            // What a header lacks here it may have in a call.
        }
    }

    private static Expression parse(String property, String text) {
        try {
            SpelExpression parsed = new SpelExpressionParser().parseRaw(text);
            requireKnown(parsed.getAST());
            return parsed;
        } catch (ParseException | IllegalStateException ex) {
            throw invalid(property, text, ex);
        }
    }

    /** What is evaluated only in some calls must not fail them. */
    private static void requireKnown(SpelNode node) {
        String written = node.toStringAST();
        boolean variable = node instanceof VariableReference && !written.equals("#root") && !written.equals("#this");
        if (variable
                || node instanceof FunctionReference
                || node instanceof ConstructorReference
                || node instanceof TypeReference
                || node instanceof BeanReference) {
            throw new IllegalStateException("a key has no " + written);
        }
        for (int i = 0; i < node.getChildCount(); i++) {
            requireKnown(node.getChild(i));
        }
    }

    private static InvalidRateLimitException invalid(String property, String text, Exception cause) {
        return new InvalidRateLimitException(
                "Property " + property + " is no expression for the key of a call: \"" + text + "\" ("
                        + cause.getMessage() + ")",
                "Use host, method, uri and header('…'), as in header('X-Account').");
    }

    /**
     * The key of a call, which does not change any more; null if it has none, or a blank one.
     *
     * @throws IllegalStateException when the expression fails; the call must not go
     */
    @Nullable
    Object of(OutgoingRequest request) {
        try {
            Object key = ObjectUtils.unwrapOptional(expression.getValue(context, request));
            boolean blank = key instanceof CharSequence text && text.toString().isBlank();
            return key == null || blank ? null : CanonicalKey.frozen(written(key));
        } catch (RuntimeException ex) {
            throw new IllegalStateException(
                    "Property " + property + " \"" + expression.getExpressionString()
                            + "\" failed; the call was not made",
                    ex);
        }
    }

    /** An address is a key as it is written. */
    private static Object written(Object key) {
        if (key instanceof List<?> parts) {
            return parts.stream()
                    .map(part -> part == null ? Optional.empty() : written(part))
                    .toList();
        }
        return key instanceof URI uri ? uri.toString() : key;
    }
}
