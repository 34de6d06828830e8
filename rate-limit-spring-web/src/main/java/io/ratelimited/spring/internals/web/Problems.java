package io.ratelimited.spring.internals.web;

import io.ratelimited.spring.internals.text.LogText;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Function;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.springframework.context.MessageSource;
import org.springframework.core.MethodParameter;
import org.springframework.http.ProblemDetail;
import org.springframework.web.util.UriUtils;

/**
 * Makes problems of refusals, which Spring then writes as errors of the application; as JSON where the application has nothing
 * that writes them. Thread-safe.
 */
public final class Problems {

    /** The type as which Spring writes a problem: the result of a method that returns one. */
    public static final MethodParameter RETURN_TYPE = returnType();

    private static final LogText.Lines LOG = LogText.lines(Problems.class);

    private final MessageSource messages;
    private final Function<Object, String> json;
    private final AtomicBoolean warned = new AtomicBoolean();

    /**
     * @param messages of the application
     * @param json writes a map, whose values are texts, numbers, and lists and maps of these
     */
    public Problems(MessageSource messages, Function<Object, String> json) {
        this.messages = messages;
        this.json = json;
    }

    private static MethodParameter returnType() {
        try {
            return new MethodParameter(
                    Problems.class.getMethod("worded", Rejection.class, Supplier.class, String.class), -1);
        } catch (NoSuchMethodException ex) {
            throw new IllegalStateException(ex);
        }
    }

    /**
     * The rejection in the words of the application.
     *
     * @param locale of the reader, found by code of the application, too
     * @param path of the request, which Spring takes for a URI, although servers accept others
     */
    public Rejection worded(Rejection refusal, Supplier<Locale> locale, String path) {
        Rejection worded = refusal;
        try {
            refusal.updateAndGetBody(messages, locale.get());
        } catch (RuntimeException ex) {
            failed(ex);
            worded = refusal.unworded();
        }
        worded.setInstance(instance(path));
        return worded;
    }

    private static URI instance(String path) {
        try {
            return URI.create(path);
        } catch (IllegalArgumentException ex) {
            return URI.create(UriUtils.encode(path, StandardCharsets.UTF_8));
        }
    }

    /** The application could not word or write a problem. A caller can have any number of refusals: one is logged. */
    public void failed(Throwable failure) {
        if (warned.compareAndSet(false, true)) {
            LOG.warn(
                    "The messages, interceptors or converters of the application could not create the response to a rejection, which"
                            + " is a problem detail in JSON instead. Further failures are logged at DEBUG",
                    failure);
        } else {
            LOG.debug("The application could not create the response to a rejection", failure);
        }
    }

    /** The problem as JSON in UTF-8. */
    public byte[] json(ProblemDetail problem) {
        Map<String, @Nullable Object> members = new LinkedHashMap<>();
        members.put("type", problem.getType());
        members.put("title", problem.getTitle());
        members.put("status", problem.getStatus());
        members.put("detail", problem.getDetail());
        members.put("instance", problem.getInstance());
        if (problem.getProperties() != null) {
            members.putAll(problem.getProperties());
        }
        members.values().removeIf(Objects::isNull);
        return json.apply(members).getBytes(StandardCharsets.UTF_8);
    }
}
