package io.ratelimited.spring.internals.client;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;

/**
 * A List of RFC 9651 whose members are Strings or Tokens with parameters: the part of structured fields that rate limit
 * fields use. Other types are read as values of parameters, and as members they make the list invalid. Used by one thread.
 */
final class StructuredItems {

    private static final int LONGEST = 16_384;

    /** Stands for a value that is neither an Integer nor a text. */
    private static final Object OTHER = new Object();

    private final String text;
    private int next;

    private StructuredItems(String text) {
        this.text = text;
    }

    /**
     * The parameters of the members by the text of the member. A member that comes twice is left out.
     *
     * @return a parameter is a {@link Long}, a {@link String}, or another object; empty if the text is not such a list
     */
    static Map<String, Map<String, Object>> parse(String text) {
        if (text.length() > LONGEST) {
            return Map.of();
        }
        try {
            return new StructuredItems(text).list();
        } catch (Invalid ex) {
            return Map.of();
        }
    }

    private Map<String, Map<String, Object>> list() throws Invalid {
        Map<String, Map<String, Object>> members = new LinkedHashMap<>();
        Set<String> twice = new HashSet<>();
        skip(" ");
        while (next < text.length()) {
            String name = peek() == '"' ? string() : token();
            if (members.put(name, parameters()) != null) {
                twice.add(name);
            }
            skip(" \t");
            if (next == text.length()) {
                break;
            }
            expect(',');
            skip(" \t");
            require(next < text.length());
        }
        twice.forEach(members::remove);
        return members;
    }

    private Map<String, Object> parameters() throws Invalid {
        Map<String, Object> parameters = new HashMap<>();
        while (peek() == ';') {
            next++;
            skip(" ");
            String key = key();
            Object value = OTHER;
            if (peek() == '=') {
                next++;
                value = bare();
            }
            parameters.put(key, value);
        }
        return parameters;
    }

    private String key() throws Invalid {
        require(isLower(peek()) || peek() == '*');
        int start = next;
        while (isLower(peek()) || isDigit(peek()) || "_-.*".indexOf(peek()) >= 0) {
            next++;
        }
        return text.substring(start, next);
    }

    private Object bare() throws Invalid {
        char first = peek();
        if (first == '"') {
            return string();
        }
        if (first == '-' || isDigit(first)) {
            return number();
        }
        if (first == ':') {
            return enclosed();
        }
        if (first == '?') {
            next++;
            require(peek() == '0' || peek() == '1');
            next++;
            return OTHER;
        }
        if (first == '@') {
            next++;
            require(number() instanceof Long);
            return OTHER;
        }
        if (first == '%') {
            next++;
            return display();
        }
        return token();
    }

    /** An Integer has up to 15 digits; a Decimal is another value. */
    private Object number() throws Invalid {
        int start = next;
        if (peek() == '-') {
            next++;
        }
        require(isDigit(peek()));
        int first = next;
        while (isDigit(peek())) {
            next++;
        }
        require(next - first <= 15);
        if (peek() != '.') {
            return Long.parseLong(text, start, next, 10);
        }
        require(next - first <= 12);
        int point = next++;
        while (isDigit(peek())) {
            next++;
        }
        require(next - point > 1 && next - point <= 4);
        return OTHER;
    }

    private String string() throws Invalid {
        expect('"');
        StringBuilder value = new StringBuilder();
        while (peek() != '"') {
            if (peek() == '\\') {
                next++;
                require(peek() == '"' || peek() == '\\');
            }
            require(peek() >= ' ' && peek() < 0x7F);
            value.append(peek());
            next++;
        }
        next++;
        return value.toString();
    }

    /** A Display String: UTF-8, in which other characters than those of a String are bytes such as {@code %e2}. */
    private Object display() throws Invalid {
        expect('"');
        ByteArrayOutputStream value = new ByteArrayOutputStream();
        while (peek() != '"') {
            require(peek() >= ' ' && peek() < 0x7F);
            char each = text.charAt(next++);
            value.write(each == '%' ? hex() << 4 | hex() : each);
        }
        next++;
        try {
            StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(value.toByteArray()));
        } catch (CharacterCodingException ex) {
            throw new Invalid();
        }
        return OTHER;
    }

    private int hex() throws Invalid {
        int digit = "0123456789abcdef".indexOf(peek());
        require(digit >= 0);
        next++;
        return digit;
    }

    /** A Byte Sequence. */
    private Object enclosed() throws Invalid {
        expect(':');
        int end = text.indexOf(':', next);
        require(end >= 0);
        try {
            Base64.getDecoder().decode(text.substring(next, end));
        } catch (IllegalArgumentException ex) {
            throw new Invalid();
        }
        next = end + 1;
        return OTHER;
    }

    private String token() throws Invalid {
        require(isLower(peek()) || isUpper(peek()) || peek() == '*');
        int start = next;
        while (isLower(peek())
                || isUpper(peek())
                || isDigit(peek())
                || (peek() != 0 && "!#$%&'*+-.^_`|~:/".indexOf(peek()) >= 0)) {
            next++;
        }
        return text.substring(start, next);
    }

    /** 0 at the end. */
    private char peek() {
        return next < text.length() ? text.charAt(next) : 0;
    }

    private void skip(String spaces) {
        while (next < text.length() && spaces.indexOf(text.charAt(next)) >= 0) {
            next++;
        }
    }

    private void expect(char wanted) throws Invalid {
        require(peek() == wanted);
        next++;
    }

    private static void require(boolean valid) throws Invalid {
        if (!valid) {
            throw new Invalid();
        }
    }

    private static boolean isLower(char c) {
        return c >= 'a' && c <= 'z';
    }

    private static boolean isUpper(char c) {
        return c >= 'A' && c <= 'Z';
    }

    private static boolean isDigit(char c) {
        return c >= '0' && c <= '9';
    }

    private static final class Invalid extends Exception {

        private static final long serialVersionUID = 1L;

        private Invalid() {
            super(null, null, false, false);
        }
    }
}
