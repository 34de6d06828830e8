package io.ratelimited.sample.shop;

import static io.ratelimited.core.Algorithm.WARM_UP;
import static io.ratelimited.core.Policy.WAIT;

import io.ratelimited.spring.RateLimited;
import org.springframework.stereotype.Service;

/** The warehouse, which is slow until its caches are warm. */
@Service
class Stock {

    /**
     * A call weighs as much as the order has items. After a rest the limit lets a third of its rate through and comes
     * up to all of it within ten seconds.
     */
    @RateLimited(
            name = "stock",
            algorithm = WARM_UP,
            rate = "100/s",
            warmup = "10s",
            permits = "#order.items.size()",
            policy = WAIT,
            maxWait = "1s")
    void reserve(Order order) {
        // A real shop would call the warehouse here.
    }
}
