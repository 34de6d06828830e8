package com.example.login;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;

/** A web application as many are: views of Thymeleaf behind the form login of Spring Security, and an error page of its own. */
@SpringBootApplication
public class Login {

    public static void main(String[] args) {
        SpringApplication.run(Login.class, args);
    }
}
