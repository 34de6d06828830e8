package io.ratelimited.spring;

import io.ratelimited.core.RateLimitExceededException;
import java.util.concurrent.CompletableFuture;
import reactor.core.publisher.Mono;

/** The facts, for methods that return Mono. */
final class MonoCallsTest extends CallFacts {

    @Override
    Class<?> service() {
        return Service.class;
    }

    private Mono<String> mono(String method, String id) {
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
        return mono(method, id).toFuture();
    }

    static class Service {

        private final Journal journal;

        Service(Journal journal) {
            this.journal = journal;
        }

        @RateLimited("rejecting")
        public Mono<String> rejecting(String id) {
            return Mono.just(journal.body(id));
        }

        @RateLimited("waiting")
        public Mono<String> waiting(String id) {
            return Mono.just(journal.body(id));
        }

        @RateLimited(name = "falling", fallback = "instead")
        public Mono<String> falling(String id) {
            return Mono.just(journal.body(id));
        }

        String instead(String id, RateLimitExceededException refusal) {
            return "instead of " + id + ": " + refusal.limit();
        }

        @RateLimited(name = "failing", fallback = "instead")
        public Mono<String> failing(String id) {
            if (id.equals("bad")) {
                return Mono.error(new IllegalStateException(id));
            }
            return Mono.just(journal.body(id));
        }

        @RateLimited("wide")
        @RateLimited("narrow")
        public Mono<String> both(String id) {
            return Mono.just(journal.body(id));
        }

        @RateLimited(name = "charged", permits = "10", charge = Journal.CHARGE, fallback = "instead")
        @RateLimited(name = "watched", permits = "10", charge = "#count + 1")
        @RateLimited("wide")
        public Mono<String> charged(String id) {
            if (id.equals("bad")) {
                return Mono.error(new IllegalStateException(id));
            }
            return id.equals("fly") ? Mono.fromFuture(journal.fly(id)) : Mono.just(journal.body(id));
        }

        @RateLimited("flight")
        public Mono<String> inFlight(String id) {
            return Mono.fromFuture(journal.fly(id));
        }
    }
}
