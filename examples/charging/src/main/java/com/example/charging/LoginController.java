package com.example.charging;

import static io.ratelimited.core.Algorithm.SLIDING_LOG;

import io.ratelimited.spring.RateLimited;
import org.springframework.http.HttpStatus;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.server.ResponseStatusException;

@RestController
class LoginController {
    @PostMapping("/login")
    @RateLimited(
            name = "failed-logins-of-user",
            algorithm = SLIDING_LOG,
            rate = "5/h",
            key = "#user.toLowerCase(T(java.util.Locale).ROOT)",
            charge = "#error != null ? 1 : 0")
    @RateLimited(
            name = "failed-logins-of-address",
            algorithm = SLIDING_LOG,
            rate = "20/h",
            key = "clientIp",
            charge = "#error != null ? 1 : 0")
    String login(@RequestParam String user, @RequestParam String password) {
        if (!password.equals("right")) {
            throw new ResponseStatusException(HttpStatus.UNAUTHORIZED);
        }
        return "welcome";
    }
}
