package io.ratelimited.sample;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;

/** Starts the shop on port 8080. */
@SpringBootApplication
public class SampleApplication {

    /** Starts the application. */
    public static void main(String[] args) {
        SpringApplication.run(SampleApplication.class, args);
    }
}
