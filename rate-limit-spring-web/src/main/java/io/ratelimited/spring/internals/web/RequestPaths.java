package io.ratelimited.spring.internals.web;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Predicate;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.springframework.http.server.PathContainer;
import org.springframework.http.server.PathContainer.Options;
import org.springframework.util.StringUtils;
import org.springframework.web.util.pattern.PathPattern;

/**
 * The ways in which servers, filters and handler mappings may read the path of a request. A handler may be reached by any of
 * them: a mapping of path patterns matches the path as it was sent, one of Ant patterns the path that the server has decoded
 * and cleaned up, and a filter such as {@code UrlHandlerFilter} cuts off trailing slashes behind the filters of routes. A
 * handler of a gateway hands the path on as it was sent, and the server behind it cleans it up.
 *
 * <p>Each reading takes time and memory for the length of the path. A path that is longer than those of handlers is not read:
 * it may be any.
 *
 * @param inApplication readings of the path within the application; none if it may be any
 * @param inServlet readings of the path within a servlet that has a path of its own; empty for others
 * @param dispatcher the path of that servlet if it is the dispatcher servlet; null for others, which may read any path as they
 *     like
 */
public record RequestPaths(
        List<PathContainer> inApplication,
        List<PathContainer> inServlet,
        @Nullable String dispatcher) {

    /** Text that is decoded already. */
    private static final Options PLAIN = Options.create('/', false);

    /** Where some server ends a segment or a parameter, now or when it has decoded the path. */
    private static final Pattern END = Pattern.compile("[/\\\\;]|%(?:2[fF]|5[cC]|3[bB]|25)");

    /** More than a path has that a handler serves. */
    private static final int MOST_ENDS = 256;

    private static final int STRIPS_PARAMETERS = 1;
    private static final int READS_BACKSLASHES = 2;
    private static final int KEEPS_EMPTY_SEGMENTS = 4;
    private static final int KEEPS_ENCODED_DOTS = 8;

    /** The paths of a request that no server has decoded. */
    public static RequestPaths of(PathContainer sent) {
        return new RequestPaths(readings(sent, null), List.of(), null);
    }

    /** The paths of requests to an operation of the dispatcher servlet. */
    static RequestPaths ofTemplate(String dispatcher, String template) {
        if (dispatcher.isEmpty()) {
            return of(PathContainer.parsePath(template));
        }
        return new RequestPaths(
                readings(PathContainer.parsePath(dispatcher + template), null),
                readings(PathContainer.parsePath(template), null),
                dispatcher);
    }

    /**
     * The readings of one path.
     *
     * @param sent as it was sent; null when it cannot be parsed
     * @param decoded as the server has decoded it, if it has
     * @return none if the path has more segments and parameters than a handler could have
     */
    public static List<PathContainer> readings(@Nullable PathContainer sent, @Nullable String decoded) {
        if (sent != null && isPlain(sent.value()) && (decoded == null || decoded.equals(sent.value()))) {
            return List.of(sent);
        }
        if ((sent != null && isTooLong(sent.value())) || (decoded != null && isTooLong(decoded))) {
            return List.of();
        }
        List<PathContainer> readings = new ArrayList<>();
        Set<String> encoded = new LinkedHashSet<>();
        Set<String> plain = new LinkedHashSet<>();
        if (sent != null) {
            readings.add(sent);
            if (sent.value().contains("//")) {
                // Who joins slashes need not read %2e as a dot.
                readings.add(parsed(sent.value().replaceAll("/+", "/")));
            }
            resolve(sent.value(), encoded, plain);
        }
        if (decoded != null) {
            resolve(decoded, plain, plain);
        }
        encoded.forEach(path -> readings.add(parsed(path)));
        plain.forEach(path -> readings.add(PathContainer.parsePath(path, PLAIN)));
        return readings;
    }

    private static boolean isTooLong(String path) {
        return path.length() > MOST_ENDS
                && END.matcher(path).results().skip(MOST_ENDS).findAny().isPresent();
    }

    /** A parameter without a name is not decoded, and may be a segment with half an escape for those who read backslashes. */
    private static PathContainer parsed(String path) {
        try {
            return PathContainer.parsePath(path);
        } catch (IllegalArgumentException ex) {
            return PathContainer.parsePath(path, PLAIN);
        }
    }

    /** Returns whether every server reads a path alike. */
    private static boolean isPlain(String path) {
        for (int i = 0; i < path.length(); i++) {
            switch (path.charAt(i)) {
                case '%', ';', '\\' -> {
                    return false;
                }
                case '/' -> {
                    boolean last = i + 1 == path.length();
                    if (last ? i > 0 : path.charAt(i + 1) == '/' || path.charAt(i + 1) == '.') {
                        return false;
                    }
                }
                default -> {}
            }
        }
        return path.startsWith("/");
    }

    /**
     * Adds the readings of a path on servers of every kind, this one or one behind a gateway, which decode it up to two
     * times: before they resolve dots, or after.
     *
     * @param asItIs receives the readings that are not decoded
     * @param decoded receives the rest
     */
    private static void resolve(String path, Set<String> asItIs, Set<String> decoded) {
        String once = decode(path);
        String twice = decode(once);
        int differs = (twice.indexOf(';') < 0 ? 0 : STRIPS_PARAMETERS)
                | (twice.indexOf('\\') < 0 ? 0 : READS_BACKSLASHES)
                | (twice.contains("..") ? KEEPS_EMPTY_SEGMENTS : 0);
        for (int server = 0; server <= differs; server++) {
            if ((server & ~differs) == 0) {
                String resolved = resolved(path, server);
                asItIs.add(resolved);
                String resolvedOnce = resolved(decode(resolved), server);
                decoded.add(resolvedOnce);
                decoded.add(resolved(decode(resolvedOnce), server));
                decoded.add(resolved(once, server));
                decoded.add(resolved(twice, server));
            }
        }
        // Who resolves dots need not read %2e as one: proxies that decode nothing do not.
        if (hasEncodedDot(path)) {
            asItIs.add(resolved(path, KEEPS_ENCODED_DOTS));
        }
        if (hasEncodedDot(once)) {
            decoded.add(resolved(once, KEEPS_ENCODED_DOTS));
        }
        if (hasEncodedDot(twice)) {
            decoded.add(resolved(twice, KEEPS_ENCODED_DOTS));
        }
    }

    private static boolean hasEncodedDot(String path) {
        return path.contains("%2e") || path.contains("%2E");
    }

    private static String decode(String path) {
        try {
            return path.indexOf('%') < 0 ? path : StringUtils.uriDecode(path, StandardCharsets.UTF_8);
        } catch (IllegalArgumentException ex) {
            return path;
        }
    }

    /** A path without dots, and without doubled and trailing slashes. */
    private static String resolved(String path, int server) {
        String slashed = (server & READS_BACKSLASHES) == 0 ? path : path.replace('\\', '/');
        List<String> segments = new ArrayList<>();
        int start = slashed.startsWith("/") ? 1 : 0;
        while (start <= slashed.length()) {
            int slash = slashed.indexOf('/', start);
            int end = slash < 0 ? slashed.length() : slash;
            String whole = slashed.substring(start, end);
            int parameters = (server & STRIPS_PARAMETERS) == 0 ? -1 : whole.indexOf(';');
            String segment = parameters < 0 ? whole : whole.substring(0, parameters);
            String dots = segment.indexOf('%') < 0 || (server & KEEPS_ENCODED_DOTS) != 0
                    ? segment
                    : segment.replace("%2e", ".").replace("%2E", ".");
            if (dots.equals("..")) {
                if (!segments.isEmpty()) {
                    segments.remove(segments.size() - 1);
                }
            } else if (!dots.equals(".") && (!segment.isEmpty() || (server & KEEPS_EMPTY_SEGMENTS) != 0)) {
                segments.add(segment);
            }
            start = end + 1;
        }
        segments.removeIf(String::isEmpty);
        return "/" + String.join("/", segments);
    }

    /** Returns whether a pattern matches any of the readings: so it matches every request that may reach its handler. */
    boolean mayMatch(PathPattern pattern) {
        return inApplication.isEmpty() || any(inApplication, pattern::matches) || any(inServlet, pattern::matches);
    }

    /**
     * Returns whether a pattern matches all readings: so nothing but its own handler can be reached. A servlet other than the
     * dispatcher servlet serves every path below its own in the same way.
     */
    boolean mustMatch(PathPattern pattern) {
        return all(inApplication, pattern) || (dispatcher != null && all(inServlet, pattern));
    }

    /** A path pattern within the application, or within the dispatcher servlet if it begins with the path of that. */
    String inDispatcher(String pattern) {
        return dispatcher != null && pattern.startsWith(dispatcher + "/")
                ? pattern.substring(dispatcher.length())
                : pattern;
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
