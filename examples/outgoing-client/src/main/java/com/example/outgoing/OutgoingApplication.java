package com.example.outgoing;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;

@SpringBootApplication
public class OutgoingApplication {

    public static void main(String[] args) {
        SpringApplication.run(OutgoingApplication.class, args);
    }
}
