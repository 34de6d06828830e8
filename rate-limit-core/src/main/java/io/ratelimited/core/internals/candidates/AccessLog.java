package io.ratelimited.core.internals.candidates;

import java.time.DateTimeException;
import java.time.Instant;
import java.time.OffsetDateTime;
import java.time.format.DateTimeFormatter;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * Reads lines of an access log: the Common Log Format, with or without the referer and the agent of the combined one, or an
 * object of JSON a line. Not thread-safe.
 */
final class AccessLog {

    private static final String QUOTED = "\"([^\"\\\\]*+(?:\\\\.[^\"\\\\]*+)*+)\"";
    private static final Pattern COMMON = Pattern.compile("(\\S++) (\\S++) (.*?) \\[([^\\]]++)] " + QUOTED
            + " (\\d{3}|-) (\\S++)(?: " + QUOTED + " " + QUOTED + ")?.*+");
    /** The fields of a line, in the order of the groups. */
    private static final String[] FIELDS = {
        "host", "ident", "user", "time", "request", "status", "bytes", "referer", "agent"
    };

    private static final DateTimeFormatter COMMON_TIME =
            DateTimeFormatter.ofPattern("dd/MMM/yyyy:HH:mm:ss Z", Locale.ENGLISH);
    private static final int DEEPEST = 32;

    private final @Nullable String key;
    private final String time;

    /**
     * @param key the field that is the key, as in {@code host}, or {@code request.remote_ip} of an object in an object; null for
     *     one limit for all calls
     * @param time the field that is the time
     */
    AccessLog(@Nullable String key, String time) {
        this.key = key;
        this.time = time;
    }

    /** A call: nanoseconds since 1970, and its key, null where the field is missing or {@code -}. */
    record Call(long epochNanos, @Nullable String key) {}

    /** @throws IllegalArgumentException when the line cannot be read; the message says why */
    Call read(String line) {
        Map<String, String> fields = line.startsWith("{") ? new Json(line).fields() : common(line);
        String at = fields.get(time);
        if (at == null) {
            throw new IllegalArgumentException("there is no field " + time + ", only " + fields.keySet());
        }
        String caller = key == null ? null : fields.get(key);
        if (key != null && caller == null && !line.startsWith("{")) {
            throw new IllegalArgumentException("there is no field " + key + ", only " + fields.keySet());
        }
        return new Call(nanos(at), "-".equals(caller) ? null : caller);
    }

    private static Map<String, String> common(String line) {
        Matcher matcher = COMMON.matcher(line);
        if (!matcher.matches()) {
            throw new IllegalArgumentException("it is neither of the Common Log Format nor an object of JSON");
        }
        Map<String, String> fields = new HashMap<>();
        for (int i = 0; i < FIELDS.length; i++) {
            if (matcher.group(i + 1) != null) {
                fields.put(FIELDS[i], matcher.group(i + 1));
            }
        }
        return fields;
    }

    /** A time of the Common Log Format, of ISO 8601 with its offset, or a number of seconds, or of parts of them, since 1970. */
    private static long nanos(String text) {
        try {
            if (text.matches("\\d{1,19}([.]\\d*)?([eE][+]?\\d+)?")) {
                double number = Double.parseDouble(text);
                double seconds = number < 1e11
                        ? number
                        : number < 1e14 ? number / 1e3 : number < 1e17 ? number / 1e6 : number / 1e9;
                return ((long) (seconds * 1e6)) * 1_000;
            }
            Instant instant = (text.indexOf('/') > 0
                            ? OffsetDateTime.parse(text, COMMON_TIME)
                            : OffsetDateTime.parse(text.replaceFirst("([+-]\\d\\d)(\\d\\d)$", "$1:$2")))
                    .toInstant();
            return Math.addExact(Math.multiplyExact(instant.getEpochSecond(), 1_000_000_000L), instant.getNano());
        } catch (DateTimeException | ArithmeticException ex) {
            throw new IllegalArgumentException(
                    "its time is " + text + ", but must be as in 10/Oct/2026:13:55:36 +0200,"
                            + " 2026-10-10T13:55:36Z, or a number since 1970",
                    ex);
        }
    }

    /** The texts, numbers and words of an object, by their names; those of inner objects have the names of both: {@code a.b}. */
    private static final class Json {

        private final String text;
        private final Map<String, String> fields = new HashMap<>();
        private int at;

        Json(String text) {
            this.text = text;
        }

        Map<String, String> fields() {
            try {
                value("", 0);
            } catch (StringIndexOutOfBoundsException | NumberFormatException ex) {
                throw new IllegalArgumentException("it is not complete JSON", ex);
            }
            return fields;
        }

        private char next() {
            while (Character.isWhitespace(text.charAt(at))) {
                at++;
            }
            return text.charAt(at);
        }

        private void value(String name, int depth) {
            char first = next();
            if (depth > DEEPEST) {
                throw new IllegalArgumentException("its objects are deeper than " + DEEPEST);
            }
            if (first == '{' || first == '[') {
                at++;
                char end = first == '{' ? '}' : ']';
                while (next() != end) {
                    String member = first == '{' ? member() : "";
                    value(name.isEmpty() ? member : name + "." + member, depth + 1);
                    if (next() == ',') {
                        at++;
                    } else if (next() != end) {
                        throw new IllegalArgumentException("at character " + (at + 1) + " it is not JSON");
                    }
                }
                at++;
            } else if (first == '"') {
                fields.put(name, string());
            } else {
                int begin = at;
                while (",]} \t".indexOf(text.charAt(at)) < 0) {
                    at++;
                }
                if (at == begin) {
                    throw new IllegalArgumentException("at character " + (at + 1) + " it is not JSON");
                }
                String word = text.substring(begin, at);
                if (!word.equals("null")) {
                    fields.put(name, word);
                }
            }
        }

        private String member() {
            next();
            String name = string();
            if (next() != ':') {
                throw new IllegalArgumentException("at character " + (at + 1) + " it is not JSON");
            }
            at++;
            return name;
        }

        private String string() {
            StringBuilder string = new StringBuilder();
            if (text.charAt(at++) != '"') {
                throw new IllegalArgumentException("at character " + at + " it is not JSON");
            }
            for (char c = text.charAt(at++); c != '"'; c = text.charAt(at++)) {
                if (c == '\\') {
                    c = text.charAt(at++);
                    int escape = "nrtbf".indexOf(c);
                    if (escape >= 0) {
                        c = "\n\r\t\b\f".charAt(escape);
                    } else if (c == 'u') {
                        c = (char) Integer.parseInt(text.substring(at, at + 4), 16);
                        at += 4;
                    }
                }
                string.append(c);
            }
            return string.toString();
        }
    }
}
