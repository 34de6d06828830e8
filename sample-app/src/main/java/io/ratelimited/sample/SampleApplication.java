package io.ratelimited.sample;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;

/** Starts the shop and the live page on port 8080. Nothing turns rate limiting on: the starter being there does. */
@SpringBootApplication
public class SampleApplication {

    /** Starts the application. */
    public static void main(String[] args) {
        SpringApplication.run(SampleApplication.class, args);
    }
}
