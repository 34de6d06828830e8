package io.ratelimited.sample.shop;

import static io.ratelimited.core.Algorithm.SLIDING_LOG;

import io.ratelimited.spring.RateLimited;
import org.springframework.http.HttpStatus;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.ResponseStatus;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.server.ResponseStatusException;

/** Lets customers in. */
@RestController
class LoginController {

    private static final String IF_WRONG = "#error != null ? 1 : 0";

    /**
     * Five wrong passwords on one account in any minute, from wherever they come, block it: for a minute, then two, at most
     * fifteen, since others can do that to its owner. Thirty from one address block the address, for ten minutes, then fifteen. A right
     * password costs nothing. A missing user name is refused (missing-key in application.yml): otherwise such calls would
     * share one budget.
     */
    @PostMapping("/login")
    @ResponseStatus(HttpStatus.NO_CONTENT)
    @RateLimited(
            name = "login",
            algorithm = SLIDING_LOG,
            rate = "5/m",
            key = "#form.username?.toLowerCase(T(java.util.Locale).ROOT)",
            charge = IF_WRONG,
            block = "1m",
            blockMax = "15m")
    @RateLimited(
            name = "login-address",
            rate = "30/m",
            key = "clientIp",
            charge = IF_WRONG,
            block = "10m",
            blockFactor = 3)
    void login(@RequestBody LoginForm form) {
        if (!"tea".equals(form.password())) { // a real shop would compare hashes here
            throw new ResponseStatusException(HttpStatus.UNAUTHORIZED);
        }
    }

    /** What the customer typed. */
    record LoginForm(String username, String password) {}
}
