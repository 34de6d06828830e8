package io.ratelimited.core.internals.candidates;

import java.time.DateTimeException;
import java.time.Instant;
import java.time.format.DateTimeFormatter;
import java.time.format.DateTimeFormatterBuilder;
import java.time.temporal.ChronoUnit;
import java.util.ArrayDeque;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * Reads lines of an access log: the Common Log Format, with or without the referer and the agent of the combined one, or an
 * object of JSON a line. Immutable.
 *
 * @param key the field that is the key, as in {@code host}, or {@code request.remote_ip} of an object in an object; null for one
 *     limit for all calls
 * @param time the field that is the time
 */
record AccessLog(@Nullable String key, String time) {

    private static final String QUOTED = "\"([^\"\\\\]*+(?:\\\\.[^\"\\\\]*+)*+)\"";
    private static final Pattern COMMON = Pattern.compile("(\\S++) (\\S++) (.*?) \\[([^\\]]++)] " + QUOTED
            + " (\\d{3}|-) (\\S++)(?: " + QUOTED + " " + QUOTED + ")?.*+");
    /** The fields of a line, in the order of the groups. */
    private static final List<String> FIELDS =
            List.of("host", "ident", "user", "time", "request", "status", "bytes", "referer", "agent");
    /** The next part of an object: the name of a member, a text, another value, or a mark. */
    private static final Pattern JSON = Pattern.compile("\\s*+(?:" + QUOTED + "\\s*+:|(?:" + QUOTED
            + "|null|([\\w.+-]++))(?=\\s*+[,}\\]])|([{\\[])|([}\\]])|,)\\s*+");

    private static final Pattern ESCAPE = Pattern.compile("\\\\(?:u(\\p{XDigit}{4})|.)");
    private static final int DEEPEST = 32;
    private static final Pattern NUMBER = Pattern.compile("\\d{1,19}([.]\\d*)?([eE][+]?\\d{1,2})?");
    /** Of the Common Log Format, or of ISO 8601 with its offset. */
    private static final DateTimeFormatter DATE = new DateTimeFormatterBuilder()
            .appendOptional(DateTimeFormatter.ofPattern("dd/MMM/yyyy:HH:mm:ss Z", Locale.ENGLISH))
            .appendOptional(DateTimeFormatter.ISO_LOCAL_DATE_TIME)
            .appendPattern("[XXX][XX]")
            .toFormatter(Locale.ENGLISH);

    /** A call: nanoseconds since 1970, and its key, null where the field is missing or {@code -}. */
    record Call(long epochNanos, @Nullable String key) {}

    /** @throws IllegalArgumentException when the line cannot be read; the message says why */
    Call read(String line) {
        Map<String, String> fields = fields(line);
        String at = fields.get(time);
        if (at == null) {
            throw new IllegalArgumentException("there is no field " + time + ", only " + fields.keySet());
        }
        String caller = key == null ? null : fields.get(key);
        return new Call(nanos(at), "-".equals(caller) ? null : caller);
    }

    /** The fields of a line, by their names. */
    static Map<String, String> fields(String line) {
        return line.startsWith("{") ? json(line) : common(line);
    }

    private static Map<String, String> common(String line) {
        Matcher matcher = COMMON.matcher(line);
        if (!matcher.matches()) {
            throw new IllegalArgumentException("it is neither in the Common Log Format nor a JSON object");
        }
        Map<String, String> fields = new TreeMap<>();
        for (int i = 0; i < FIELDS.size() && matcher.group(i + 1) != null; i++) {
            fields.put(FIELDS.get(i), matcher.group(i + 1));
        }
        return fields;
    }

    /** The texts, numbers and words of an object, by their names; those of inner objects have the names of both: {@code a.b}. */
    private static Map<String, String> json(String line) {
        Map<String, String> fields = new TreeMap<>();
        ArrayDeque<String> outer = new ArrayDeque<>();
        String name = "";
        Matcher part = JSON.matcher(line);
        for (boolean open = true; open && part.lookingAt(); open = !outer.isEmpty() && outer.size() <= DEEPEST) {
            if (part.group(1) != null) {
                String of = outer.getFirst();
                name = (of.isEmpty() ? "" : of + ".") + unescaped(part.group(1));
            } else if (part.group(2) != null || part.group(3) != null) {
                fields.put(name, part.group(2) == null ? part.group(3) : unescaped(part.group(2)));
            } else if (part.group(4) != null) {
                outer.push(name);
            } else if (part.group(5) != null) {
                name = outer.pop();
            }
            part.region(part.end(), line.length());
        }
        if (!outer.isEmpty() || part.regionStart() < line.length()) {
            throw new IllegalArgumentException(
                    "it is no complete object of JSON, or has more than " + DEEPEST + " in one another");
        }
        return fields;
    }

    private static String unescaped(String text) {
        return ESCAPE.matcher(text)
                .replaceAll(escape -> Matcher.quoteReplacement(
                        escape.group(1) == null
                                ? escape.group().replace("\\/", "/").translateEscapes()
                                : String.valueOf((char) Integer.parseInt(escape.group(1), 16))));
    }

    /** A date, or a number of seconds, or of parts of them, since 1970. */
    private static long nanos(String text) {
        try {
            if (!NUMBER.matcher(text).matches()) {
                return ChronoUnit.NANOS.between(Instant.EPOCH, DATE.parse(text, Instant::from));
            }
            double seconds = Double.parseDouble(text);
            while (seconds >= 1e11) {
                seconds /= 1e3;
            }
            return Math.multiplyExact((long) (seconds * 1e6), 1_000L);
        } catch (DateTimeException | ArithmeticException ex) {
            throw new IllegalArgumentException(
                    "its time is " + text + ", but must be as in 10/Oct/2026:13:55:36 +0200,"
                            + " 2026-10-10T13:55:36Z, or a number since 1970",
                    ex);
        }
    }
}
