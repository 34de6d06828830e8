package io.ratelimited.redis.simulation;

import io.ratelimited.redis.simulation.Store.Elements;
import io.ratelimited.redis.simulation.Store.Hash;
import io.ratelimited.redis.simulation.Store.Scores;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.luaj.vm2.LuaString;

/** Values of keys that no script has written, made of bytes. */
final class ForeignValues {

    private ForeignValues() {}

    /**
     * The first byte names a type, or says that parts of the value that is there are replaced; the rest is its content, a line
     * for each part.
     *
     * @return null for an input without a value
     */
    static @Nullable Object of(byte[] input, @Nullable Object there) {
        if (input.length == 0) {
            return null;
        }
        byte[] content = Arrays.copyOfRange(input, 1, input.length);
        List<LuaString> lines = new String(content, StandardCharsets.ISO_8859_1)
                .lines()
                .map(line -> LuaString.valueOf(line.getBytes(StandardCharsets.ISO_8859_1)))
                .toList();
        return switch (input[0]) {
            case 's' -> LuaString.valueOf(content);
            case 'h' -> hash(lines, new Hash());
            case 'l' -> list(lines, new Elements());
            case 'z' -> scores(lines, new Scores());
            default -> replaced(there, content, lines);
        };
    }

    private static @Nullable Object replaced(@Nullable Object there, byte[] content, List<LuaString> lines) {
        if (there instanceof LuaString text) {
            byte[] bytes = new byte[Math.max(text.length(), content.length)];
            text.copyInto(0, bytes, 0, text.length());
            System.arraycopy(content, 0, bytes, 0, content.length);
            return LuaString.valueOf(bytes);
        }
        if (there instanceof Hash hash) {
            int next = 0;
            for (LuaString field : hash.keySet()) {
                if (next < lines.size() && lines.get(next).length() > 0) {
                    hash.put(field, lines.get(next));
                }
                next++;
            }
            return hash;
        }
        if (there instanceof Elements list) {
            for (int i = 0; i < Math.min(list.size(), lines.size()); i++) {
                if (lines.get(i).length() > 0) {
                    list.set(i, lines.get(i));
                }
            }
            return list;
        }
        return there instanceof Scores scores ? scores(lines, scores) : there;
    }

    private static @Nullable Hash hash(List<LuaString> lines, Hash hash) {
        for (int i = 0; i + 1 < lines.size(); i += 2) {
            hash.put(lines.get(i), lines.get(i + 1));
        }
        return hash.isEmpty() ? null : hash;
    }

    private static @Nullable Elements list(List<LuaString> lines, Elements list) {
        list.addAll(lines);
        return list.isEmpty() ? null : list;
    }

    private static @Nullable Scores scores(List<LuaString> lines, Scores scores) {
        for (int i = 0; i + 1 < lines.size(); i += 2) {
            try {
                double score = Double.parseDouble(Lua.text(lines.get(i + 1)));
                // Redis stores no NaN, and the simulation has no text for infinity.
                if (Double.isFinite(score)) {
                    scores.put(lines.get(i), score);
                }
            } catch (NumberFormatException ex) {
                // Redis would not store it.
            }
        }
        return scores.isEmpty() ? null : scores;
    }
}
