package io.ratelimited.spring.internals.web.servlet;

import io.ratelimited.spring.internals.web.ApiVersions;
import jakarta.servlet.http.HttpServletRequest;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.springframework.util.function.SingletonSupplier;
import org.springframework.web.accept.ApiVersionStrategy;
import org.springframework.web.util.ServletRequestPathUtils;

/** The API versions of an application of Spring MVC. Thread-safe. */
public final class ServletVersions implements ApiVersions {

    private final Supplier<@Nullable ApiVersionStrategy> strategy;

    /** @param strategy of the application; null if it has no versions; asked at the first request */
    public ServletVersions(Supplier<@Nullable ApiVersionStrategy> strategy) {
        this.strategy = SingletonSupplier.ofNullable(strategy);
    }

    @Override
    public @Nullable Comparable<?> parse(String text) {
        ApiVersionStrategy versions = strategy.get();
        try {
            return versions == null ? null : versions.parseVersion(text);
        } catch (RuntimeException ex) {
            return null;
        }
    }

    /** The version of a request, from wherever the application takes it; null if it has none, so that no versioned handler is reached. */
    @Nullable
    Comparable<?> of(HttpServletRequest request) {
        ApiVersionStrategy versions = strategy.get();
        if (versions == null) {
            return null;
        }
        Object known = request.getAttribute(ServletRequestPathUtils.PATH_ATTRIBUTE);
        try {
            ServletRequestPathUtils.parseAndCache(request);
            String version = versions.resolveVersion(request);
            return version == null ? versions.getDefaultVersion() : versions.parseVersion(version);
        } catch (RuntimeException ex) {
            // Spring MVC answers 400.
            return null;
        } finally {
            request.setAttribute(ServletRequestPathUtils.PATH_ATTRIBUTE, known);
        }
    }
}
