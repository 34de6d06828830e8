package com.example.apikeys;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.cache.annotation.EnableCaching;

@SpringBootApplication
@EnableCaching
public class ApiKeysApplication {

    public static void main(String[] args) {
        SpringApplication.run(ApiKeysApplication.class, args);
    }
}
