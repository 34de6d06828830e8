package io.ratelimited.spring.aot;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Policy;
import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.RateLimits;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import org.springframework.beans.factory.BeanFactory;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.annotation.AliasFor;
import reactor.core.publisher.Mono;

/** Every kind of limit, each in the smallest method that has it. */
@Configuration(proxyBeanMethods = false)
class EveryKindApplication {

    static final String[] PROPERTIES = {
        "rate-limit.limits.configured.rate=1/h",
        "rate-limit.limits.configured.key=#order.customer",
        "rate-limit.limits.configured.tier=@plans.of(#order)",
        "rate-limit.limits.configured.tiers.gold.rate=2/h",
        "rate-limit.limits.configured.fallback=configured",
        "rate-limit.limits.ranked.priorities=gold,free",
        "rate-limit.limits.ranked.shares.free=5%",
        "rate-limit.limits.by-code.rate=1/h",
        "rate-limit.limits.shared.rate=1/h",
        "rate-limit.limits.shared.backend=redis",
        "rate-limit.limits.shared.on-failure=allow"
    };

    @Bean
    Plans plans() {
        return new Plans();
    }

    @Bean
    Ranks ranks() {
        return new Ranks();
    }

    @Bean
    Algorithms algorithms() {
        return new Algorithms();
    }

    @Bean
    Calls calls() {
        return new Calls();
    }

    @Bean
    Quotes quotes() {
        return symbol -> symbol;
    }

    @Bean
    Whole whole() {
        return new Whole();
    }

    /** Calls everything, twice where the second call is refused; returns 1 if each refusal and the fallback came. */
    static int callEverything(BeanFactory beans) {
        Algorithms algorithms = beans.getBean(Algorithms.class);
        Calls calls = beans.getBean(Calls.class);
        Quotes quotes = beans.getBean(Quotes.class);
        Whole whole = beans.getBean(Whole.class);
        RateLimits limits = beans.getBean(RateLimits.class);
        Order order = new Order("ann", new Account("gold", new Customer("ann")));
        List<Runnable> refusedTheSecondTime = List.of(
                algorithms::tokenBucket,
                algorithms::smoothBursty,
                algorithms::warmUp,
                algorithms::leakyBucket,
                algorithms::gcra,
                algorithms::fixedWindow,
                algorithms::slidingWindow,
                algorithms::slidingLog,
                () -> calls.byText("ann"),
                () -> calls.byRecord(order),
                () -> calls.byValue(new Value("ann")),
                () -> calls.byEnum(Policy.WAIT),
                () -> calls.byIdentifier(new UUID(1, 2)),
                () -> calls.twice(order),
                () -> calls.weighed(order),
                () -> calls.charged(order).join(),
                () -> calls.mono(order).block(),
                calls::composed,
                () -> quotes.quote("ACME"),
                whole::one,
                () -> limits.execute("by-code", "ann", () -> ""));
        int refused = 0;
        for (Runnable call : refusedTheSecondTime) {
            call.run();
            try {
                call.run();
            } catch (RuntimeException ex) {
                refused += isRefusal(ex) ? 1 : 0;
            }
        }
        algorithms.concurrency();
        calls.ranked(order);
        calls.shared(order);
        calls.configured(order);
        calls.configured(order);
        refused += "instead".equals(calls.configured(order)) ? 1 : 0;
        return refused - refusedTheSecondTime.size();
    }

    private static boolean isRefusal(Throwable failure) {
        return failure instanceof RateLimitExceededException
                || failure.getCause() instanceof RateLimitExceededException;
    }

    /** Knows what plan somebody has. */
    public static class Plans {

        public String of(Order order) {
            return order.account().plan();
        }
    }

    /** Knows who goes first. */
    public static class Ranks {

        public String of(Order order) {
            return order.account().plan();
        }
    }

    /** What somebody bought. */
    public record Order(String customer, Account account) {}

    /** What somebody pays. */
    public record Account(String plan, Customer owner) {}

    /** Who pays. */
    public record Customer(String name) {}

    /** What identifies itself by its text. */
    public static final class Value {

        private final String text;

        Value(String text) {
            this.text = text;
        }

        @Override
        public String toString() {
            return text;
        }
    }

    /** What a call has cost. */
    public record Answer(Usage usage) {}

    /** Its parts. */
    public record Usage(long tokens) {}

    @Retention(RetentionPolicy.RUNTIME)
    @RateLimited(rate = "1/h")
    @interface Hourly {

        @AliasFor(annotation = RateLimited.class, attribute = "key")
        String by() default "";
    }

    interface Quotes {

        @RateLimited(rate = "1/h", key = "#p0")
        String quote(String symbol);
    }

    @RateLimited(rate = "1/h")
    static class Whole {

        public void one() {}
    }

    static class Algorithms {

        @RateLimited(rate = "1/h")
        public void tokenBucket() {}

        @RateLimited(algorithm = Algorithm.SMOOTH_BURSTY, rate = "1/h")
        public void smoothBursty() {}

        @RateLimited(algorithm = Algorithm.WARM_UP, rate = "1/h", warmup = "1h")
        public void warmUp() {}

        @RateLimited(algorithm = Algorithm.LEAKY_BUCKET, rate = "1/h", burst = 1)
        public void leakyBucket() {}

        @RateLimited(algorithm = Algorithm.GCRA, rate = "1/h")
        public void gcra() {}

        @RateLimited(algorithm = Algorithm.FIXED_WINDOW, rate = "1/d")
        public void fixedWindow() {}

        @RateLimited(algorithm = Algorithm.SLIDING_WINDOW, rate = "1/h")
        public void slidingWindow() {}

        @RateLimited(algorithm = Algorithm.SLIDING_LOG, rate = "1/h")
        public void slidingLog() {}

        @RateLimited(algorithm = Algorithm.CONCURRENCY, maxConcurrent = 1)
        public void concurrency() {}
    }

    static class Calls {

        @RateLimited(name = "ranked", algorithm = Algorithm.ADAPTIVE, priority = "@ranks.of(#order)")
        public void ranked(Order order) {}

        @RateLimited(rate = "1/h", key = "#name")
        public void byText(String name) {}

        @RateLimited(rate = "1/h", key = "#order.account.owner")
        public void byRecord(Order order) {}

        @RateLimited(rate = "1/h", key = "#value.toString()")
        public void byValue(Value value) {}

        @RateLimited(rate = "1/h", key = "#policy")
        public void byEnum(Policy policy) {}

        @RateLimited(rate = "1/h", key = "#id")
        public void byIdentifier(UUID id) {}

        @RateLimited(name = "twice", rate = "1/h", key = "#order.account.owner.name")
        @RateLimited(name = "twice-in-all", rate = "10/h", when = "#order.customer != ''")
        public void twice(Order order) {}

        @RateLimited(rate = "3/h", permits = "#order.customer.length()")
        public void weighed(Order order) {}

        @RateLimited(rate = "1/h", charge = "#result.usage.tokens")
        public CompletableFuture<Answer> charged(Order order) {
            return CompletableFuture.completedFuture(new Answer(new Usage(1)));
        }

        @RateLimited(rate = "1/h", key = "#order.customer")
        public Mono<String> mono(Order order) {
            return Mono.just(order.customer());
        }

        @Hourly(by = "#root.method.name")
        public void composed() {}

        @RateLimited(name = "shared", key = "#order.account.owner")
        public void shared(Order order) {}

        @RateLimited("configured")
        public String configured(Order order) {
            return order.customer();
        }

        String configured(Order order, RateLimitExceededException refusal) {
            return "instead";
        }
    }
}
