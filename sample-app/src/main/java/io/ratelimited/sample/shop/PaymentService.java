package io.ratelimited.sample.shop;

import static io.ratelimited.core.Algorithm.LEAKY_BUCKET;
import static io.ratelimited.core.Policy.WAIT;

import io.ratelimited.spring.RateLimited;
import org.springframework.stereotype.Service;

/** Charges customers through a provider that allows us ten calls a second and counts each one beyond against us. */
@Service
class PaymentService {

    /**
     * The leaky bucket sends calls out 100 ms apart, never two at once. A call over the limit waits its turn, here up to
     * two seconds; one that would have to wait longer is refused at once, without having waited at all.
     */
    @RateLimited(name = "payment", algorithm = LEAKY_BUCKET, rate = "10/s", burst = 20, policy = WAIT, maxWait = "2s")
    String charge(Order order) {
        return "paid by " + order.customer();
    }
}
