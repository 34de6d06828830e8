package io.ratelimited.redis.connection;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.List;

/**
 * A Lua script, assembled from the files in {@code io/ratelimited/redis}: the time, constants, one or all of the algorithms, and the
 * decision. A script with one algorithm is short to run; the one with all serves several limits at once and budgets
 * that another algorithm has stored.
 *
 * @param text the source
 * @param digest its SHA-1, by which Redis knows it
 */
public record Script(String text, String digest) {

    public static final Script VIRTUAL_TIME =
            of("virtual_time_usual", "usual_arguments", "common", "virtual_time", "decide");
    public static final Script WARM_UP = of("common", "warm_up", "decide");
    public static final Script FIXED_WINDOW = of("common", "fixed_window", "decide");
    public static final Script SLIDING_WINDOW = of("common", "sliding_window", "decide");
    public static final Script SLIDING_LOG = of("common", "sliding_log", "decide");
    public static final Script CONCURRENCY = of("common", "concurrency", "decide");
    public static final Script ALL = of(
            "usual_arguments",
            "common",
            "virtual_time",
            "warm_up",
            "fixed_window",
            "sliding_window",
            "sliding_log",
            "concurrency",
            "decide");
    public static final Script HEARTBEAT = of("heartbeat");
    public static final Script PROBE = of("probe");

    private Script(String text) {
        this(text, sha1(text));
    }

    /** Whether the state was stored by an algorithm that the script has not, so that nothing was done. */
    public static boolean isForeign(List<Object> reply) {
        return reply.size() == 1 && reply.get(0).equals(-1L);
    }

    private static Script of(String... files) {
        StringBuilder text = new StringBuilder(read("time"));
        for (String file : files) {
            text.append(read(file));
        }
        return new Script(text.toString());
    }

    /** The file without its comments and indentation: Redis keeps what it is sent. */
    private static String read(String name) {
        try (InputStream in = Script.class.getResourceAsStream("/io/ratelimited/redis/" + name + ".lua")) {
            if (in == null) {
                throw new IllegalStateException("missing from the class path: " + name + ".lua");
            }
            StringBuilder code = new StringBuilder();
            new String(in.readAllBytes(), StandardCharsets.UTF_8)
                    .lines()
                    .map(String::strip)
                    .filter(line -> !line.isEmpty() && !line.startsWith("--"))
                    .forEach(line -> code.append(line).append('\n'));
            return code.toString();
        } catch (IOException ex) {
            throw new UncheckedIOException(ex);
        }
    }

    private static String sha1(String text) {
        try {
            MessageDigest digest = MessageDigest.getInstance("SHA-1");
            return HexFormat.of().formatHex(digest.digest(text.getBytes(StandardCharsets.UTF_8)));
        } catch (NoSuchAlgorithmException ex) {
            throw new IllegalStateException("every Java platform has SHA-1", ex);
        }
    }
}
