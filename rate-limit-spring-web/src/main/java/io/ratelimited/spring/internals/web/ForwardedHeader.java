package io.ratelimited.spring.internals.web;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/**
 * Reads the {@code for} identifiers of {@code Forwarded} (RFC 7239). Strict: a quote that a caller leaves open must not
 * swallow the identifiers that a proxy appends, so one mistake makes the whole header unreadable.
 */
final class ForwardedHeader {

    private final String line;
    private final List<String> nodes;
    private int position;

    private ForwardedHeader(String line, List<String> nodes) {
        this.line = line;
        this.nodes = nodes;
    }

    /**
     * One identifier for each proxy, the nearest proxy's last.
     *
     * @param lines the lines of the header, in their order
     * @return an empty text for an element without {@code for}; null when the header is not well formed
     */
    static @Nullable List<String> nodes(List<String> lines) {
        List<String> nodes = new ArrayList<>();
        for (String line : lines) {
            if (!new ForwardedHeader(line, nodes).read()) {
                return null;
            }
        }
        return nodes;
    }

    private boolean read() {
        boolean more = true;
        while (more) {
            String node = null;
            do {
                String name = text("=;,\"").toLowerCase(Locale.ROOT);
                if (!name.isEmpty() || at('=')) {
                    String value = value();
                    if (value == null || (name.equals("for") && node != null)) {
                        return false;
                    }
                    node = name.equals("for") ? value : node;
                }
            } while (skip(';'));
            nodes.add(node == null ? "" : node);
            more = skip(',');
        }
        return position == line.length();
    }

    /** Reads the value behind a name: null unless it is an equals sign and a token or a closed quoted string. */
    private @Nullable String value() {
        if (!skip('=')) {
            return null;
        }
        if (!skip('"')) {
            return text(";,\"=");
        }
        StringBuilder value = new StringBuilder();
        while (position < line.length() && !at('"')) {
            position += at('\\') ? 1 : 0;
            if (position < line.length()) {
                value.append(line.charAt(position++));
            }
        }
        if (!skip('"')) {
            return null;
        }
        text("=;,\"", true);
        return value.toString();
    }

    private String text(String ends) {
        return text(ends, false);
    }

    /** The text before any of some characters; only blanks when nothing else may stand there. */
    private String text(String ends, boolean blank) {
        int start = position;
        while (position < line.length()
                && ends.indexOf(line.charAt(position)) < 0
                && (!blank || Character.isWhitespace(line.charAt(position)))) {
            position++;
        }
        return line.substring(start, position).strip();
    }

    private boolean at(char character) {
        return position < line.length() && line.charAt(position) == character;
    }

    private boolean skip(char character) {
        boolean there = at(character);
        position += there ? 1 : 0;
        return there;
    }
}
