package io.ratelimited.redis.internals.connection;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;

/**
 * A Lua script, assembled from the files in {@code io/ratelimited/redis}.
 *
 * @param text the source, of which each character is a byte
 * @param digest its SHA-1, by which Redis knows it
 */
public record Script(String text, String digest) {

    /** Decides, for every algorithm and several limits. The functions of a family are made in a call that needs them. */
    public static final Script DECIDE = new Script(read("time")
            + read("common")
            + families(
                    "v", "virtual_time",
                    "w", "warm_up",
                    "f", "fixed_window",
                    "r", "sliding_window",
                    "q", "sliding_log",
                    "c", "concurrency")
            + read("block")
            + read("decide"));

    public static final Script HEARTBEAT = new Script(read("time") + read("heartbeat"));
    public static final Script CHANGES = new Script(read("time") + read("changes"));
    public static final Script PAUSES = new Script(read("time") + read("pauses"));
    public static final Script SETTINGS = new Script(read("time") + read("settings"));
    public static final Script MEMORY = new Script(read("time") + read("memory"));
    public static final Script PROBE = new Script(read("time") + read("probe"));

    private Script(String text) {
        this(text, sha1(text));
    }

    /** The files of families, and the functions that they define by the letters of the families. */
    private static String families(String... lettersAndFiles) {
        StringBuilder files = new StringBuilder();
        StringBuilder makers = new StringBuilder("local makers = {\n");
        for (int i = 0; i < lettersAndFiles.length; i += 2) {
            files.append(read(lettersAndFiles[i + 1]));
            makers.append(lettersAndFiles[i] + " = " + lettersAndFiles[i + 1] + ",\n");
        }
        return files.append(makers).append("}\n").toString();
    }

    /** The file without its comments and indentation: Redis keeps the whole text of a script. */
    private static String read(String name) {
        try (InputStream in = Script.class.getResourceAsStream("/io/ratelimited/redis/" + name + ".lua")) {
            if (in == null) {
                throw new IllegalStateException("missing from the class path: " + name + ".lua");
            }
            StringBuilder code = new StringBuilder();
            new String(in.readAllBytes(), StandardCharsets.ISO_8859_1)
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
            return HexFormat.of().formatHex(digest.digest(text.getBytes(StandardCharsets.ISO_8859_1)));
        } catch (NoSuchAlgorithmException ex) {
            throw new IllegalStateException("every Java platform has SHA-1", ex);
        }
    }
}
