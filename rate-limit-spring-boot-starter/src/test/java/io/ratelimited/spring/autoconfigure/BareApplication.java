package io.ratelimited.spring.autoconfigure;

import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.spring.RateLimited;
import java.util.concurrent.CompletableFuture;
import org.springframework.boot.autoconfigure.aop.AopAutoConfiguration;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;

/** Runs without any optional dependency, and prints how many calls of three went. */
public final class BareApplication {

    private BareApplication() {}

    public static void main(String[] args) {
        try (AnnotationConfigApplicationContext context = new AnnotationConfigApplicationContext(
                AopAutoConfiguration.class, RateLimitAutoConfiguration.class, Service.class)) {
            Service service = context.getBean(Service.class);
            int admitted = 0;
            for (int i = 0; i < 3; i++) {
                try {
                    service.call("a");
                    admitted++;
                } catch (RateLimitExceededException ex) {
                    // Counted by what is missing.
                }
            }
            System.out.println("blocking " + admitted);
            service.later().join();
            System.out.println("waited " + service.later().join());
        }
    }

    public static class Service {

        @RateLimited(rate = "2/h", key = "#id", fallback = "instead")
        public void call(String id) {}

        void instead(String id, RateLimitExceededException refusal) {
            throw refusal;
        }

        @RateLimited(rate = "100/s", burst = 1, policy = io.ratelimited.core.Policy.WAIT, maxWait = "1m")
        public CompletableFuture<Integer> later() {
            return CompletableFuture.completedFuture(1);
        }
    }
}
