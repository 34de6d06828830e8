package io.ratelimited.spring.test;

import static io.ratelimited.spring.test.RateLimitAssertions.assertThatCall;
import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.internals.several.MemoryLimiter;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.internals.limit.ConfiguredLimit;
import io.ratelimited.spring.internals.limit.LimitRegistry;
import org.junit.jupiter.api.RepeatedTest;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;

/** Several limits on one call are decided in a test by the code that decides them in the application. */
@SpringBootTest(classes = SeveralLimitsTest.Application.class, webEnvironment = SpringBootTest.WebEnvironment.NONE)
@AutoConfigureRateLimits
class SeveralLimitsTest {

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @Import(Orders.class)
    static class Application {}

    static class Orders {

        @RateLimited(name = "pace", rate = "2/m", key = "#customer")
        @RateLimited(name = "quota", rate = "1/h", key = "#customer")
        public void place(String customer) {}

        @RateLimited(name = "pace", key = "#customer")
        public void look(String customer) {}
    }

    @Autowired
    Orders orders;

    @Autowired
    LimitRegistry limits;

    @RepeatedTest(2)
    void theyAreAskedAndTakenAsLimitsInMemory() {
        assertThat(limits.all())
                .hasSize(2)
                .flatExtracting(ConfiguredLimit::limiters)
                .allMatch(MemoryLimiter.class::isInstance);
        orders.place("ann");
        assertThatCall(() -> orders.place("ann")).isRateLimited().by("quota");
        // The refused call has left the other limit as it was.
        orders.look("ann");
        assertThatCall(() -> orders.look("ann")).isRateLimited().by("pace");
        orders.place("ben");
    }
}
