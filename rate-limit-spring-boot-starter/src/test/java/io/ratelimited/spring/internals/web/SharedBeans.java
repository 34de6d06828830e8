package io.ratelimited.spring.internals.web;

import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.RateLimits;
import java.util.concurrent.CompletableFuture;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

/** What applications on all servers have: time that stands still. */
@Configuration(proxyBeanMethods = false)
@Import(SharedBeans.Code.class)
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
}
