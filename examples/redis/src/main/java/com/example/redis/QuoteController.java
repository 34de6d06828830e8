package com.example.redis;

import io.ratelimited.spring.RateLimited;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.RestController;

@RestController
class QuoteController {

    @GetMapping("/quotes/{symbol}")
    @RateLimited(name = "quotes", rate = "5/m", key = "clientIp")
    String quote(@PathVariable String symbol) {
        return symbol + " 42.00";
    }
}
