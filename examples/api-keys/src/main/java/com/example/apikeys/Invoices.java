package com.example.apikeys;

import io.ratelimited.spring.RateLimited;
import org.springframework.stereotype.Service;

@Service
class Invoices {
    @RateLimited(name = "invoices", rate = "60/m", key = "#tenant", tier = "@contracts.limitOf(#tenant)")
    void create(String tenant) {}
}
