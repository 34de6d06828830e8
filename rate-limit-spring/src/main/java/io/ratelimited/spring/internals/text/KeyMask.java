package io.ratelimited.spring.internals.text;

import io.ratelimited.core.CanonicalKey;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.SecureRandom;
import java.util.HexFormat;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/**
 * Stands for keys that must not be shown: {@code masked:5f3a9c0e17b2}. The same key has the same mask until the process
 * ends; no key can be found from its mask outside of it. Thread-safe.
 */
public final class KeyMask {

    private static final String PREFIX = "masked:";
    private static final int BYTES = 6;
    private static final SecretKeySpec SECRET = secret();

    private KeyMask() {}

    private static SecretKeySpec secret() {
        byte[] random = new byte[32];
        new SecureRandom().nextBytes(random);
        return new SecretKeySpec(random, "HmacSHA256");
    }

    public static boolean isMask(String text) {
        return text.startsWith(PREFIX);
    }

    /**
     * The mask of a key.
     *
     * @param key its text, as {@code CanonicalKey.text} makes it
     */
    public static String mask(String key) {
        return ofDigest(CanonicalKey.digest(key));
    }

    /** The same mask, where only the digest of the key's text is known. */
    public static String ofDigest(String digest) {
        try {
            Mac mac = Mac.getInstance("HmacSHA256");
            mac.init(SECRET);
            byte[] mask = mac.doFinal(digest.getBytes(StandardCharsets.UTF_8));
            return PREFIX + HexFormat.of().formatHex(mask, 0, BYTES);
        } catch (GeneralSecurityException ex) {
            throw new IllegalStateException("every Java platform has HmacSHA256", ex);
        }
    }
}
