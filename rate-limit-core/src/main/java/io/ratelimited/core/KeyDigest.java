package io.ratelimited.core;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;

/** Keeps keys short: a string of more than 256 characters is kept as its SHA-256, so that callers cannot fill memory. */
public final class KeyDigest {

    /** Characters of the longest string that is kept as it is. */
    static final int LONGEST = 256;

    private KeyDigest() {}

    /** The key itself, or the digest of a long string. */
    public static Object shorten(Object key) {
        if (!(key instanceof String text) || text.length() <= LONGEST) {
            return key;
        }
        try {
            MessageDigest digest = MessageDigest.getInstance("SHA-256");
            return "sha256:" + HexFormat.of().formatHex(digest.digest(text.getBytes(StandardCharsets.UTF_8)));
        } catch (NoSuchAlgorithmException ex) {
            throw new IllegalStateException("every Java platform has SHA-256", ex);
        }
    }
}
