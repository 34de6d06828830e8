package io.ratelimited.spring.internals.text;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Policy;
import java.math.BigDecimal;
import java.time.DateTimeException;
import java.time.Duration;
import java.time.ZoneId;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.springframework.format.datetime.standard.DurationFormatterUtils;
import org.springframework.util.NumberUtils;

/** Values and names as they are written in properties. */
public final class PropertyText {

    private static final Pattern PLAIN_NAME = Pattern.compile("[a-z0-9-]+");
    private static final String[] UNITS = {"d", "h", "m", "s", "ms", "us"};
    private static final long[] SIZES = {
        86_400_000_000_000L, 3_600_000_000_000L, 60_000_000_000L, 1_000_000_000L, 1_000_000L, 1_000L
    };

    /** Longer durations may not fit into nanoseconds. */
    private static final long MAX_DAYS = 100_000;

    private PropertyText() {}

    /** A value as JSON and logs show it: text for text in a property, and a number for a number. */
    public static Object of(Object value) {
        if (value instanceof Enum<?> constant) {
            return of(constant);
        }
        if (value instanceof Duration duration) {
            return of(duration);
        }
        return value instanceof ZoneId zone ? zone.getId() : value;
    }

    /** A value as one text: the elements of a list with commas, the entries of a map as in {@code a=1,b=2}. */
    public static String text(Object value) {
        if (value instanceof Map<?, ?> map) {
            return map.entrySet().stream().map(String::valueOf).collect(Collectors.joining(","));
        }
        return value instanceof List<?> list
                ? list.stream().map(String::valueOf).collect(Collectors.joining(","))
                : of(value).toString();
    }

    /**
     * Reads a value as it is written in properties: of an enum in any case, with dashes or underscores.
     *
     * @throws IllegalArgumentException when the text is no value of the type
     */
    public static Object read(String text, Class<?> type) {
        if (type.isEnum()) {
            String found = RelaxedNames.find(values(type), text.strip());
            return Stream.of(type.getEnumConstants())
                    .filter(constant -> of((Enum<?>) constant).equals(found))
                    .findFirst()
                    .orElseThrow(() -> new IllegalArgumentException("'" + text + "' is not one of " + values(type)));
        }
        if (type == Duration.class) {
            if (isWithoutUnit(text)) {
                throw new IllegalArgumentException("'" + text + "' has no unit");
            }
            return DurationFormatterUtils.detectAndParse(text);
        }
        if (type == ZoneId.class) {
            try {
                return ZoneId.of(text);
            } catch (DateTimeException ex) {
                throw new IllegalArgumentException("'" + text + "' is not a time zone", ex);
            }
        }
        if (type == List.class) {
            return Stream.of(text.split(",", -1))
                    .map(String::strip)
                    .filter(part -> !part.isEmpty())
                    .toList();
        }
        if (type == Map.class) {
            Map<String, String> map = new TreeMap<>();
            for (String entry : text.split(",", -1)) {
                int middle = entry.lastIndexOf('=');
                if (middle < 0) {
                    throw new IllegalArgumentException("'" + entry.strip() + "' is not an entry such as batch=5%");
                }
                map.put(
                        entry.substring(0, middle).strip(),
                        entry.substring(middle + 1).strip());
            }
            return map;
        }
        return type == String.class ? text : NumberUtils.parseNumber(text, type.asSubclass(Number.class));
    }

    /** Whether a duration is a number other than zero: Spring would read milliseconds, which nobody means with seconds in mind. */
    public static boolean isWithoutUnit(String duration) {
        return duration.matches("\\s*[+-]?\\d*[1-9]\\d*\\s*");
    }

    /** The values of a type, for messages, as in {@code one of [local, deny]} or {@code a whole number}. */
    public static String expected(Class<?> type) {
        if (type.isEnum()) {
            return "one of " + values(type);
        }
        return switch (type.getSimpleName()) {
            case "Duration" -> "a duration such as 500ms, 10s or PT10S";
            case "ZoneId" -> "a time zone such as Europe/Berlin";
            case "Double", "double" -> "a number";
            case "Boolean", "boolean" -> "true or false";
            case "List" -> "a text such as \"critical, batch\"";
            case "Map" -> "a text such as \"batch=5%, normal=20%\"";
            default -> "a whole number";
        };
    }

    /** As in {@code token-bucket}. */
    public static String of(Enum<?> constant) {
        return constant.name().toLowerCase(Locale.ROOT).replace('_', '-');
    }

    /** As in {@code 500ms}. */
    private static String of(Duration duration) {
        if (Math.abs(duration.toDays()) > MAX_DAYS) {
            return duration.toString();
        }
        long nanos = duration.toNanos();
        for (int i = 0; i < SIZES.length && nanos != 0; i++) {
            if (nanos % SIZES[i] == 0) {
                return nanos / SIZES[i] + UNITS[i];
            }
        }
        return nanos == 0 ? "0s" : nanos + "ns";
    }

    /** A measured time as people read it: rounded up to the millisecond, as in {@code 19.72s}. */
    public static String rounded(Duration duration) {
        if (Math.abs(duration.toDays()) > MAX_DAYS) {
            return of(duration);
        }
        return BigDecimal.valueOf(-Math.floorDiv(-duration.toNanos(), 1_000_000L), 3)
                        .stripTrailingZeros()
                        .toPlainString()
                + "s";
    }

    /** Seconds, rounded up to the microsecond. */
    public static double seconds(Duration duration) {
        return Math.ceil(duration.toNanos() / 1e3) / 1e6;
    }

    /** The values that a property of an enum can have. */
    public static List<String> values(Class<?> type) {
        return Stream.of(type.getEnumConstants())
                .filter(constant -> constant != Algorithm.DEFAULT && constant != Policy.DEFAULT)
                .map(constant -> of((Enum<?>) constant))
                .toList();
    }

    /** The property of a limit: its name stands in brackets unless it is plain. */
    public static String limit(String name) {
        return "rate-limit.limits" + element(name);
    }

    /** A name in the path of a property. */
    public static String element(String name) {
        return PLAIN_NAME.matcher(name).matches() ? "." + name : "[" + name + "]";
    }
}
