package com.example.security;

import java.security.Principal;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

@RestController
class AccountController {

    @GetMapping({"/account", "/api/account"})
    String account(Principal user) {
        return "account of " + user.getName();
    }
}
