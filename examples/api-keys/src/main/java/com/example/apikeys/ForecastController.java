package com.example.apikeys;

import io.ratelimited.spring.RateLimited;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

@RestController
class ForecastController {

    @GetMapping("/forecast")
    @RateLimited("forecast")
    String forecast() {
        return "sunny";
    }
}
