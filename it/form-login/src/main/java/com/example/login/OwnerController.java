package com.example.login;

import io.ratelimited.spring.RateLimited;
import java.security.Principal;
import org.springframework.stereotype.Controller;
import org.springframework.ui.Model;
import org.springframework.web.bind.annotation.GetMapping;

@Controller
class OwnerController {

    @GetMapping("/owners")
    String owners(Model model, Principal principal) {
        model.addAttribute("user", principal.getName());
        return "owners";
    }

    @GetMapping("/help")
    @RateLimited(name = "help", rate = "1/h")
    String help() {
        return "help";
    }
}
