package io.ratelimited.spring;

import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.spring.internals.expression.CallResult;
import java.util.concurrent.CompletableFuture;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** The facts, for methods that return Flux. */
final class FluxCallsTest extends CallFacts {

    @Override
    Class<?> service() {
        return Service.class;
    }

    @Override
    CallResult returned() {
        return new CallResult(" a", null, 2);
    }

    private Flux<String> flux(String method, String id) {
        Service bean = context.getBean(Service.class);
        return switch (method) {
            case "rejecting" -> bean.rejecting(id);
            case "waiting" -> bean.waiting(id);
            case "falling" -> bean.falling(id);
            case "failing" -> bean.failing(id);
            case "both" -> bean.both(id);
            case "charged" -> bean.charged(id);
            default -> bean.inFlight(id);
        };
    }

    @Override
    CompletableFuture<String> call(String method, String id) {
        return flux(method, id)
                .collectList()
                .map(parts -> String.join("", parts))
                .toFuture();
    }

    static class Service {

        private final Journal journal;

        Service(Journal journal) {
            this.journal = journal;
        }

        @RateLimited("rejecting")
        public Flux<String> rejecting(String id) {
            return Flux.fromArray(journal.body(id).split("(?= )"));
        }

        @RateLimited("waiting")
        public Flux<String> waiting(String id) {
            return Flux.fromArray(journal.body(id).split("(?= )"));
        }

        @RateLimited(name = "falling", fallback = "instead")
        public Flux<String> falling(String id) {
            return Flux.fromArray(journal.body(id).split("(?= )"));
        }

        String instead(String id, RateLimitExceededException refusal) {
            return "instead of " + id + ": " + refusal.limit();
        }

        @RateLimited(name = "failing", fallback = "instead")
        public Flux<String> failing(String id) {
            if (id.equals("bad")) {
                return Flux.error(new IllegalStateException(id));
            }
            return Flux.fromArray(journal.body(id).split("(?= )"));
        }

        @RateLimited("wide")
        @RateLimited("narrow")
        public Flux<String> both(String id) {
            return Flux.fromArray(journal.body(id).split("(?= )"));
        }

        @RateLimited(name = "charged", permits = "10", charge = Journal.CHARGE, fallback = "instead")
        @RateLimited(name = "watched", permits = "10", charge = "#count + 1")
        @RateLimited("wide")
        public Flux<String> charged(String id) {
            if (id.equals("bad")) {
                return Flux.error(new IllegalStateException(id));
            }
            return id.equals("fly")
                    ? Mono.fromFuture(journal.fly(id)).flux()
                    : Flux.fromArray(journal.body(id).split("(?= )"));
        }

        @RateLimited("flight")
        public Flux<String> inFlight(String id) {
            return Mono.fromFuture(journal.fly(id)).flux();
        }
    }
}
