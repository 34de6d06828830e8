package com.example;

import io.ratelimited.spring.RateLimited;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.stereotype.Service;

@SpringBootApplication
public class Application {

    @Service
    public static class Work {

        @RateLimited(name = "work", rate = "1/h")
        public String done() {
            return "done";
        }
    }
}
