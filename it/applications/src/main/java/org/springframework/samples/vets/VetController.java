package org.springframework.samples.vets;

import io.ratelimited.spring.RateLimited;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

@RestController
class VetController {

    @GetMapping("/vets")
    @RateLimited(name = "vets", rate = "5/h", key = "clientIp")
    String vets() {
        return "James Carter";
    }
}
