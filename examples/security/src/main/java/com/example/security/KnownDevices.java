package com.example.security;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.HexFormat;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.stereotype.Component;

@Component("knownDevices")
class KnownDevices {

    private final SecretKeySpec secret;

    KnownDevices(@Value("${devices.secret}") String secret) {
        this.secret = new SecretKeySpec(secret.getBytes(UTF_8), "HmacSHA256");
    }

    /** The value of the cookie that a device gets when its user has logged in. */
    public String cookieOf(String name) throws GeneralSecurityException {
        Mac mac = Mac.getInstance("HmacSHA256");
        mac.init(secret);
        return HexFormat.of().formatHex(mac.doFinal(name.getBytes(UTF_8)));
    }

    public boolean isKnown(String name, String cookie) throws GeneralSecurityException {
        return cookie != null && MessageDigest.isEqual(cookieOf(name).getBytes(UTF_8), cookie.getBytes(UTF_8));
    }
}
