package io.ratelimited.spring.internals.web;

import java.util.LinkedHashMap;
import java.util.Map;

/** A strict parser of RFC 9651 Lists whose members are Strings with parameters: what clients of the fields do. */
final class StructuredList {

    private final String text;
    private int at;

    private StructuredList(String text) {
        this.text = text;
    }

    /** Members by their string, each with its parameters: {@link Long} or {@link String}. */
    static Map<String, Map<String, Object>> parse(String field) {
        StructuredList parser = new StructuredList(field);
        Map<String, Map<String, Object>> members = new LinkedHashMap<>();
        parser.skip(" ");
        while (true) {
            String name = parser.string();
            if (members.put(name, parser.parameters()) != null) {
                throw parser.invalid("a member appears twice: " + name);
            }
            parser.skip(" \t");
            if (parser.at == field.length()) {
                return members;
            }
            parser.expect(',');
            parser.skip(" \t");
        }
    }

    private Map<String, Object> parameters() {
        Map<String, Object> parameters = new LinkedHashMap<>();
        while (at < text.length() && text.charAt(at) == ';') {
            at++;
            skip(" ");
            int start = at;
            while (at < text.length() && "abcdefghijklmnopqrstuvwxyz0123456789_-.*".indexOf(text.charAt(at)) >= 0) {
                at++;
            }
            String key = text.substring(start, at);
            if (!key.matches("[a-z*].*")) {
                throw invalid("not a key: " + key);
            }
            expect('=');
            if (parameters.put(key, text.charAt(at) == '"' ? string() : integer()) != null) {
                throw invalid("a parameter appears twice: " + key);
            }
        }
        return parameters;
    }

    private Object integer() {
        int start = at;
        while (at < text.length() && "-0123456789".indexOf(text.charAt(at)) >= 0) {
            at++;
        }
        String digits = text.substring(start, at);
        if (!digits.matches("-?[0-9]{1,15}")) {
            throw invalid("not an integer: " + digits);
        }
        return Long.valueOf(digits);
    }

    private String string() {
        expect('"');
        StringBuilder string = new StringBuilder();
        while (at < text.length()) {
            char c = text.charAt(at++);
            if (c == '"') {
                return string.toString();
            }
            if (c == '\\') {
                c = at < text.length() ? text.charAt(at++) : 0;
                if (c != '"' && c != '\\') {
                    throw invalid("only quotes and backslashes are escaped");
                }
            } else if (c < 0x20 || c > 0x7E) {
                throw invalid("not ASCII");
            }
            string.append(c);
        }
        throw invalid("unterminated string");
    }

    private void expect(char wanted) {
        if (at >= text.length() || text.charAt(at) != wanted) {
            throw invalid("expected " + wanted);
        }
        at++;
    }

    private void skip(String characters) {
        while (at < text.length() && characters.indexOf(text.charAt(at)) >= 0) {
            at++;
        }
    }

    private IllegalArgumentException invalid(String problem) {
        return new IllegalArgumentException(problem + " at " + at + " of: " + text);
    }
}
