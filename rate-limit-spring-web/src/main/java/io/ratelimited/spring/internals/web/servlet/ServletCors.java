package io.ratelimited.spring.internals.web.servlet;

import io.ratelimited.spring.internals.web.LimitHeaders;
import io.ratelimited.spring.internals.web.Rejection;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.springframework.http.HttpHeaders;
import org.springframework.http.server.ServerHttpResponse;
import org.springframework.web.cors.CorsConfiguration;
import org.springframework.web.cors.CorsConfigurationSource;
import org.springframework.web.cors.CorsUtils;
import org.springframework.web.cors.DefaultCorsProcessor;

/**
 * Lets scripts of the origins that the application allows read a refusal, whichever filter refuses: the headers are those
 * that Spring MVC or Spring Security would have written behind it.
 */
public final class ServletCors {

    private static final DefaultCorsProcessor PROCESSOR = new Lenient();

    private final Supplier<Stream<CorsConfigurationSource>> sources;
    private final LimitHeaders.Style style;

    /** @param sources of Spring MVC, which knows its own and {@code @CrossOrigin}, and of Spring Security */
    public ServletCors(Supplier<Stream<CorsConfigurationSource>> sources, LimitHeaders.Style style) {
        this.sources = sources;
        this.style = style;
    }

    void write(HttpServletRequest request, HttpServletResponse response) throws IOException {
        if (!isCorsRequest(request)) {
            return;
        }
        if (!isAllowed(response)) {
            CorsConfiguration configuration = configuration(request);
            if (configuration != null) {
                PROCESSOR.processRequest(configuration, request, response);
            }
        }
        if (isAllowed(response)) {
            String name = HttpHeaders.ACCESS_CONTROL_EXPOSE_HEADERS;
            response.setHeader(name, Rejection.exposed(response.getHeaders(name), style));
        }
    }

    /** Answers a preflight that the application allows; false, and nothing written, for others. */
    boolean answersPreflight(HttpServletRequest request, HttpServletResponse response) throws IOException {
        if (isAllowed(response) || !isCorsRequest(request)) {
            return false;
        }
        CorsConfiguration configuration = configuration(request);
        return configuration != null && PROCESSOR.processRequest(configuration, request, response);
    }

    private static boolean isAllowed(HttpServletResponse response) {
        return response.containsHeader(HttpHeaders.ACCESS_CONTROL_ALLOW_ORIGIN);
    }

    private @Nullable CorsConfiguration configuration(HttpServletRequest request) {
        return sources.get()
                .flatMap(source -> Stream.ofNullable(configuration(source, request)))
                .findFirst()
                .orElse(null);
    }

    private static @Nullable CorsConfiguration configuration(
            CorsConfigurationSource source, HttpServletRequest request) {
        try {
            return source.getCorsConfiguration(request);
        } catch (RuntimeException ex) {
            // No handler takes this request, so nothing is allowed.
            return null;
        }
    }

    /** An origin that cannot be read is none that anybody allows. */
    private static boolean isCorsRequest(HttpServletRequest request) {
        try {
            return CorsUtils.isCorsRequest(request);
        } catch (IllegalArgumentException ex) {
            return false;
        }
    }

    /** No bean, for Spring Security would take it. A script of another origin cannot read the refusal, which stays one. */
    private static final class Lenient extends DefaultCorsProcessor {

        @Override
        protected void rejectRequest(ServerHttpResponse response) {}
    }
}
