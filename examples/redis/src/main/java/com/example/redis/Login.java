package com.example.redis;

import static io.ratelimited.core.Algorithm.SLIDING_LOG;

import io.ratelimited.spring.RateLimited;
import org.springframework.stereotype.Service;

@Service
class Login {
    @RateLimited(name = "login", algorithm = SLIDING_LOG, rate = "5/m", key = "#user")
    void attempt(String user) {}
}
