package com.example.graphql;

import io.ratelimited.spring.RateLimited;
import org.springframework.graphql.data.method.annotation.Argument;
import org.springframework.graphql.data.method.annotation.QueryMapping;
import org.springframework.stereotype.Controller;

@Controller
class QuoteController {

    @QueryMapping
    @RateLimited(name = "quotes", rate = "2/m", key = "clientIp")
    String quote(@Argument String symbol) {
        return symbol + " 42.00";
    }
}
