package com.example.books;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;

@SpringBootApplication
public class Books {

    public static void main(String[] args) {
        SpringApplication.run(Books.class, args);
    }
}
