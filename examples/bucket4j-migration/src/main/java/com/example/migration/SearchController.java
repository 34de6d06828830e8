package com.example.migration;

import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

@RestController
class SearchController {

    @GetMapping("/search")
    String search() {
        return "results";
    }
}
