package io.ratelimited.spring.web;

import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;
import org.springframework.http.server.PathContainer;
import org.springframework.http.server.PathContainer.Options;
import org.springframework.util.StringUtils;
import org.springframework.web.util.pattern.PathPattern;

/**
 * The ways in which servers, filters and handler mappings may read the path of a request. A handler may be reached by any of
 * them: a mapping of path patterns matches the path as it was sent, one of Ant patterns what the server has decoded and
 * cleaned up, and a filter such as {@code UrlHandlerFilter} cuts off trailing slashes behind the filters of routes. A handler
 * of a gateway hands the path on as it was sent, and the server behind it cleans it up.
 *
 * @param inApplication readings of the path within the application
 * @param inServlet readings of the path within a servlet that has a path of its own; empty for others
 */
public record RequestPaths(List<PathContainer> inApplication, List<PathContainer> inServlet) {

    /** Text that is decoded already. */
    private static final Options PLAIN = Options.create('/', false);

    /** The paths of a request that no server has decoded. */
    public static RequestPaths of(PathContainer sent) {
        return new RequestPaths(readings(sent, resolved(sent)), List.of());
    }

    /** The path as a server behind a gateway may resolve it; null if it has no segment {@code .} or {@code ..}. */
    private static @Nullable String resolved(PathContainer sent) {
        String path = sent.value();
        if (path.indexOf('.') < 0 && path.indexOf('%') < 0) {
            return null;
        }
        StringBuilder decoded = new StringBuilder(path.length());
        for (PathContainer.Element element : sent.elements()) {
            decoded.append(
                    element instanceof PathContainer.PathSegment segment ? segment.valueToMatch() : element.value());
        }
        boolean dots = false;
        Deque<String> segments = new ArrayDeque<>();
        for (String segment : StringUtils.tokenizeToStringArray(decoded.toString(), "/\\", false, true)) {
            if (segment.equals("..")) {
                segments.pollLast();
                dots = true;
            } else if (segment.equals(".")) {
                dots = true;
            } else {
                segments.add(segment);
            }
        }
        return dots ? "/" + String.join("/", segments) : null;
    }

    /**
     * The readings of one path.
     *
     * @param sent as it was sent; null when it cannot be parsed
     * @param decoded as the server has decoded it, if it has
     */
    public static List<PathContainer> readings(@Nullable PathContainer sent, @Nullable String decoded) {
        String read = decoded != null || sent == null ? decoded : sent.value();
        if (read == null) {
            return List.of();
        }
        String plain = plain(read);
        String further = decoded == null ? null : decodedFurther(plain);
        if (sent != null && further == null && plain.equals(sent.value())) {
            return List.of(sent);
        }
        List<PathContainer> readings = new ArrayList<>(3);
        if (sent != null) {
            readings.add(sent);
        }
        readings.add(decoded == null ? PathContainer.parsePath(plain) : PathContainer.parsePath(plain, PLAIN));
        if (further != null) {
            readings.add(PathContainer.parsePath(plain(further), PLAIN));
        }
        return readings;
    }

    /** What a server has left encoded, such as slashes, as a mapping of Ant patterns decodes it; null if that is nothing. */
    private static @Nullable String decodedFurther(String path) {
        try {
            return path.indexOf('%') < 0 ? null : StringUtils.uriDecode(path, StandardCharsets.UTF_8);
        } catch (IllegalArgumentException ex) {
            return null;
        }
    }

    /** A path without doubled and trailing slashes. */
    private static String plain(String path) {
        boolean clean = path.startsWith("/") && !path.contains("//") && (!path.endsWith("/") || path.length() == 1);
        if (clean) {
            return path;
        }
        StringBuilder plain = new StringBuilder(path.length() + 1).append('/');
        for (int i = 0; i < path.length(); i++) {
            char next = path.charAt(i);
            if (next != '/' || plain.charAt(plain.length() - 1) != '/') {
                plain.append(next);
            }
        }
        int end = plain.length() - 1;
        return end > 0 && plain.charAt(end) == '/' ? plain.substring(0, end) : plain.toString();
    }

    /** Whether a pattern matches any of the readings: so it matches whatever may reach its handler. */
    boolean mayMatch(PathPattern pattern) {
        return any(inApplication, pattern::matches) || any(inServlet, pattern::matches);
    }

    /** Whether a pattern matches all readings: so nothing but its own handler can be reached. */
    boolean mustMatch(PathPattern pattern) {
        return all(inApplication, pattern) || all(inServlet, pattern);
    }

    private static boolean any(List<PathContainer> paths, Predicate<PathContainer> matches) {
        for (PathContainer path : paths) {
            if (matches.test(path)) {
                return true;
            }
        }
        return false;
    }

    private static boolean all(List<PathContainer> paths, PathPattern pattern) {
        return !paths.isEmpty() && !any(paths, path -> !pattern.matches(path));
    }
}
