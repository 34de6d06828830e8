package io.ratelimited.sample.shop;

import static io.ratelimited.core.Algorithm.SLIDING_LOG;

import io.ratelimited.spring.RateLimited;
import org.springframework.http.HttpStatus;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.ResponseStatus;
import org.springframework.web.bind.annotation.RestController;

/** Lets customers in. */
@RestController
class LoginController {

    /**
     * Five attempts on one account in any minute, exactly, from wherever they come. A missing user name is refused
     * (missing-key in application.yml): otherwise such calls would share one budget.
     */
    @PostMapping("/login")
    @ResponseStatus(HttpStatus.NO_CONTENT)
    @RateLimited(name = "login", algorithm = SLIDING_LOG, rate = "5/m", key = "#form.username")
    void login(@RequestBody LoginForm form) {
        // A real shop would check the password here.
    }

    /** What the customer typed. */
    record LoginForm(String username, String password) {}
}
