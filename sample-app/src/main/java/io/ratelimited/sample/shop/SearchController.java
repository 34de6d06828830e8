package io.ratelimited.sample.shop;

import io.ratelimited.spring.RateLimited;
import java.util.List;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;

/** Finds products. */
@RestController
class SearchController {

    private final Catalogue catalogue;
    private final Recommendations recommendations;

    SearchController(Catalogue catalogue, Recommendations recommendations) {
        this.catalogue = catalogue;
        this.recommendations = recommendations;
    }

    /**
     * The first annotation gives only a name. Rate, key and tiers stand under {@code rate-limit.limits.search} in {@code
     * application.yml}, where whoever operates the shop changes them without a build. The second bounds what comes from one
     * address, whatever API keys it sends.
     */
    @GetMapping("/search")
    @RateLimited("search")
    @RateLimited(name = "search-address", rate = "200/s", key = "clientIp")
    List<Product> search(@RequestParam String q) {
        return catalogue.find(q);
    }

    /** Not limited itself: the service it calls is, and has a second answer ready. */
    @GetMapping("/recommendations/{customer}")
    List<Product> recommendations(@PathVariable String customer) {
        return recommendations.of(customer);
    }
}
