package com.example.webflux;

import io.ratelimited.spring.RateLimited;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.RestController;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

@RestController
class QuoteController {

    /** The limit decides at the subscription. No thread is blocked, also on Redis. */
    @GetMapping("/quotes/{symbol}")
    @RateLimited(name = "quotes", rate = "5/m", key = "clientIp")
    Mono<String> quote(@PathVariable String symbol) {
        return Mono.just(symbol + " 42.00");
    }

    /** Limited by a route in application.yml. */
    @GetMapping("/history/{symbol}")
    Flux<String> history(@PathVariable String symbol) {
        return Flux.just(symbol + " 41.00\n", symbol + " 42.00\n");
    }
}
