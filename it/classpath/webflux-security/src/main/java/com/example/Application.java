package com.example;

import io.ratelimited.spring.RateLimited;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;
import reactor.core.publisher.Mono;

@SpringBootApplication
public class Application {

    @RestController
    static class Quotes {

        @GetMapping("/quote")
        @RateLimited(name = "quotes", rate = "1/h", key = "clientIp")
        Mono<String> quote() {
            return Mono.just("42.00");
        }
    }
}
