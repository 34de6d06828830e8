package com.example.outgoing;

import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.RestController;

@RestController
class PriceController {

    private final Prices prices;

    PriceController(Prices prices) {
        this.prices = prices;
    }

    @GetMapping("/prices/{symbol}")
    String price(@PathVariable String symbol) {
        return prices.of(symbol);
    }
}
