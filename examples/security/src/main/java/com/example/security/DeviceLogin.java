package com.example.security;

import io.ratelimited.spring.RateLimited;
import org.springframework.stereotype.Service;

@Service
class DeviceLogin {

    @RateLimited(
            name = "guesses-by-device",
            rate = "5/m",
            key = "#name.toLowerCase(T(java.util.Locale).ROOT)",
            charge = "#error != null ? 1 : 0",
            block = "1m",
            blockUnless = "@knownDevices.isKnown(#name, #deviceCookie)")
    void check(String name, String password, String deviceCookie) {
        if (!password.equals("right")) {
            throw new IllegalArgumentException("wrong password");
        }
    }
}
