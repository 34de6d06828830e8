package io.ratelimited.spring.test;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Policy;
import io.ratelimited.spring.RateLimited;
import java.io.IOException;
import java.util.concurrent.CompletableFuture;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.servlet.mvc.method.annotation.SseEmitter;
import reactor.core.publisher.Mono;

/** The application that is tested here, as its owner would. */
@Configuration(proxyBeanMethods = false)
@EnableAutoConfiguration
@Import(Shop.Login.class)
class Shop {

    static class Login {

        @RateLimited(name = "login", algorithm = Algorithm.SLIDING_LOG, rate = "5/m", key = "#user")
        public void attempt(String user) {}

        @RateLimited(name = "door", rate = "1/m", key = "#user", block = "10m")
        public void knock(String user) {}

        @RateLimited(
                name = "invoices",
                rate = "2/m",
                key = "#tenant",
                tier = "@environment.getProperty('of.' + #tenant)")
        public void invoice(String tenant) {}

        @RateLimited(name = "daily", algorithm = Algorithm.FIXED_WINDOW, rate = "1/m")
        public void daily() {}

        @RateLimited(name = "queue", algorithm = Algorithm.LEAKY_BUCKET, rate = "1/h", burst = 20, maxWait = "1d")
        public void queue() {}

        @RateLimited(name = "queue")
        public CompletableFuture<String> later() {
            return CompletableFuture.completedFuture("later");
        }

        @RateLimited(name = "queue")
        public Mono<String> reactive() {
            return Mono.just("reactive");
        }

        @RateLimited(
                name = "seat",
                algorithm = Algorithm.CONCURRENCY,
                maxConcurrent = 1,
                policy = Policy.WAIT,
                maxWait = "10ms")
        public CompletableFuture<String> seat(CompletableFuture<String> running) {
            return running;
        }
    }

    @RestController
    static class Quotes {

        @GetMapping("/quotes")
        @RateLimited(name = "quotes", rate = "5/m")
        String quote() {
            return "42.00";
        }

        @GetMapping("/slow")
        @RateLimited(name = "slow", rate = "1/h", policy = Policy.WAIT, maxWait = "1d")
        Mono<String> slow() {
            return Mono.just("slow");
        }

        @GetMapping("/mono")
        @RateLimited(name = "mono", rate = "1/h")
        Mono<String> mono() {
            return Mono.just("mono");
        }

        @GetMapping("/future")
        @RateLimited(name = "future", rate = "1/h")
        CompletableFuture<String> future() {
            return CompletableFuture.completedFuture("future");
        }

        /** Never ends. */
        @GetMapping("/events")
        @RateLimited(name = "events", rate = "1/h")
        SseEmitter events() throws IOException {
            SseEmitter events = new SseEmitter(0L);
            events.send("one");
            return events;
        }

        @GetMapping("/routed")
        String routed() {
            return "routed";
        }
    }
}
