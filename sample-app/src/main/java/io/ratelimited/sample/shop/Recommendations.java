package io.ratelimited.sample.shop;

import io.ratelimited.spring.RateLimited;
import java.util.List;
import org.springframework.stereotype.Service;

/** Products a customer may like: dear to compute. */
@Service
class Recommendations {

    private final Catalogue catalogue;

    Recommendations(Catalogue catalogue) {
        this.catalogue = catalogue;
    }

    /**
     * Services are limited like controllers: any Spring bean is. Without a key all callers share one budget, which
     * protects the thing called rather than treating the callers fairly.
     *
     * <p>A call over the limit is answered by the fallback; nobody sees an error.
     */
    @RateLimited(name = "recommendations", rate = "2/s", fallback = "bestsellers")
    List<Product> of(String customer) {
        return catalogue.find(customer.length() % 2 == 0 ? "tea" : "c");
    }

    /** Has the parameters of the method it stands in for. It may take the RateLimitExceededException as one more. */
    List<Product> bestsellers(String customer) {
        return catalogue.bestsellers();
    }
}
