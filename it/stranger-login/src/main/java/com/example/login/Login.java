package com.example.login;

import java.security.Principal;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

@SpringBootApplication
@RestController
public class Login {

    public static void main(String[] args) {
        SpringApplication.run(Login.class, args);
    }

    @GetMapping("/account")
    String account(Principal user) {
        return "account of " + user.getName();
    }
}
