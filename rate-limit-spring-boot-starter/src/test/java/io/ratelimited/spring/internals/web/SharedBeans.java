package io.ratelimited.spring.internals.web;

import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.RateLimits;
import java.util.concurrent.CompletableFuture;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.CrossOrigin;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.RestController;

/** What applications on all servers have: time that stands still. */
@Configuration(proxyBeanMethods = false)
@Import({SharedBeans.Code.class, SharedBeans.Guesses.class})
class SharedBeans {

    @Bean
    ManualTicker ticker() {
        return new ManualTicker();
    }

    /** Asks limits itself. */
    @RestController
    static class Code {

        private final RateLimits limits;

        Code(RateLimits limits) {
            this.limits = limits;
        }

        @GetMapping("/code/blocking")
        String blocking() {
            return limits.execute("code", null, () -> "done");
        }

        @GetMapping("/code/async")
        CompletableFuture<String> async() {
            return limits.executeAsync("code", null, () -> CompletableFuture.completedFuture("done"));
        }
    }

    /** Checks credentials itself, wherever a request has them. */
    @RestController
    static class Guesses {

        @GetMapping("/guesses/counted")
        @CrossOrigin("https://friend.example")
        String counted() {
            return "counted";
        }

        @GetMapping("/guesses/open/{status}")
        ResponseEntity<Void> rejected(@PathVariable int status) {
            return ResponseEntity.status(status).header("Location", "/login").build();
        }
    }
}
