package com.example.overload;

import io.ratelimited.core.Algorithm;
import io.ratelimited.spring.RateLimited;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RequestHeader;
import org.springframework.web.bind.annotation.RestController;

@RestController
class ReportController {

    private final Reports reports;

    ReportController(Reports reports) {
        this.reports = reports;
    }

    /** The limit is that of this process: it has no key, and never a number of calls that somebody must know. */
    @GetMapping("/report")
    @RateLimited(
            name = "reports",
            algorithm = Algorithm.ADAPTIVE,
            priority = "@customers.priority(header('X-Api-Key'))")
    String report(@RequestHeader(name = "X-Api-Key", required = false) String apiKey) {
        return reports.create();
    }
}
