package com.example;

import io.ratelimited.spring.RateLimited;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

@SpringBootApplication
public class Application {

    @RestController
    static class Quotes {

        @GetMapping("/quote")
        @RateLimited(name = "quotes", rate = "1/h", key = "clientIp")
        String quote() {
            return "42.00";
        }
    }
}
