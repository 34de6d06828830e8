package com.example.webflux;

import io.ratelimited.spring.RateLimited;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.RestController;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

@RestController
class QuoteController {

    /** The limit is asked when the response subscribes. No thread is blocked, on Redis neither. */
    @GetMapping("/quotes/{symbol}")
    @RateLimited(name = "quotes", rate = "3/m", key = "clientIp")
    Mono<String> quote(@PathVariable String symbol) {
        return Mono.just(symbol + " 42.00");
    }

    /** Limited by a route in application.yml. */
    @GetMapping("/history/{symbol}")
    Flux<String> history(@PathVariable String symbol) {
        return Flux.just(symbol + " 41.00\n", symbol + " 42.00\n");
    }
}
