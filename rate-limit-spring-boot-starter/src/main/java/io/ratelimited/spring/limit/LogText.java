package io.ratelimited.spring.limit;

import org.jspecify.annotations.Nullable;

/** What a caller has sent, as text for a log line or a message: short, on one line, without control characters. */
public final class LogText {

    private static final int LONGEST = 200;

    private LogText() {}

    /** The text of a value; quoted if the value is text, so that "true" differs from the value true. */
    public static String of(@Nullable Object value) {
        String text = escaped(String.valueOf(value));
        return value instanceof CharSequence ? '"' + text + '"' : text;
    }

    /** The text with Java's escapes for what would end the line, hide a part of it or turn it around. */
    public static String escaped(String text) {
        StringBuilder escaped = new StringBuilder();
        for (int i = 0; i < text.length(); i++) {
            if (i == LONGEST) {
                return escaped.append("...").toString();
            }
            char c = text.charAt(i);
            if (isUnsafe(c)) {
                escaped.append(String.format("\\u%04x", (int) c));
            } else {
                escaped.append(c);
            }
        }
        return escaped.toString();
    }

    private static boolean isUnsafe(char c) {
        return switch (Character.getType(c)) {
            case Character.CONTROL, Character.FORMAT, Character.LINE_SEPARATOR, Character.PARAGRAPH_SEPARATOR -> true;
            default -> false;
        };
    }
}
