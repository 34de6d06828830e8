package com.example.overload;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;

@SpringBootApplication
public class OverloadApplication {

    public static void main(String[] args) {
        SpringApplication.run(OverloadApplication.class, args);
    }
}
