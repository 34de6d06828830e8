package io.ratelimited.spring.actuate;

import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.SecureRandom;
import java.util.HexFormat;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/**
 * Stands for keys that must not be shown: {@code masked:5f3a9c0e17b2}. The same key has the same mask until the process
 * ends; no key can be found from its mask outside of it. Immutable.
 */
final class KeyMask {

    private static final String PREFIX = "masked:";
    private static final int BYTES = 6;

    private final SecretKeySpec secret;

    KeyMask() {
        byte[] random = new byte[32];
        new SecureRandom().nextBytes(random);
        secret = new SecretKeySpec(random, "HmacSHA256");
    }

    boolean isMask(String text) {
        return text.startsWith(PREFIX);
    }

    String mask(String key) {
        try {
            Mac mac = Mac.getInstance("HmacSHA256");
            mac.init(secret);
            byte[] digest = mac.doFinal(key.getBytes(StandardCharsets.UTF_8));
            return PREFIX + HexFormat.of().formatHex(digest, 0, BYTES);
        } catch (GeneralSecurityException ex) {
            throw new IllegalStateException("every Java platform has HmacSHA256", ex);
        }
    }
}
