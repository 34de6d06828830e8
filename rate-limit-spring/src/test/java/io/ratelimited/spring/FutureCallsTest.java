package io.ratelimited.spring;

import io.ratelimited.core.RateLimitExceededException;
import java.util.concurrent.CompletableFuture;

/** The facts, for methods that return CompletableFuture. */
final class FutureCallsTest extends CallFacts {

    @Override
    Class<?> service() {
        return Service.class;
    }

    private Service bean() {
        return context.getBean(Service.class);
    }

    @Override
    CompletableFuture<String> call(String method, String id) {
        return switch (method) {
            case "rejecting" -> bean().rejecting(id);
            case "waiting" -> bean().waiting(id);
            case "falling" -> bean().falling(id);
            case "failing" -> bean().failing(id);
            case "both" -> bean().both(id);
            case "charged" -> bean().charged(id);
            default -> bean().inFlight(id);
        };
    }

    static class Service {

        private final Journal journal;

        Service(Journal journal) {
            this.journal = journal;
        }

        @RateLimited("rejecting")
        public CompletableFuture<String> rejecting(String id) {
            return CompletableFuture.completedFuture(journal.body(id));
        }

        @RateLimited("waiting")
        public CompletableFuture<String> waiting(String id) {
            return CompletableFuture.completedFuture(journal.body(id));
        }

        @RateLimited(name = "falling", fallback = "instead")
        public CompletableFuture<String> falling(String id) {
            return CompletableFuture.completedFuture(journal.body(id));
        }

        String instead(String id, RateLimitExceededException refusal) {
            return "instead of " + id + ": " + refusal.limit();
        }

        @RateLimited(name = "failing", fallback = "instead")
        public CompletableFuture<String> failing(String id) {
            if (id.equals("bad")) {
                return CompletableFuture.failedFuture(new IllegalStateException(id));
            }
            return CompletableFuture.completedFuture(journal.body(id));
        }

        @RateLimited("wide")
        @RateLimited("narrow")
        public CompletableFuture<String> both(String id) {
            return CompletableFuture.completedFuture(journal.body(id));
        }

        @RateLimited(name = "charged", permits = "10", charge = Journal.CHARGE, fallback = "instead")
        @RateLimited(name = "watched", permits = "10", charge = "#count + 1")
        @RateLimited("wide")
        public CompletableFuture<String> charged(String id) {
            if (id.equals("bad")) {
                return CompletableFuture.failedFuture(new IllegalStateException(id));
            }
            return id.equals("fly") ? journal.fly(id) : CompletableFuture.completedFuture(journal.body(id));
        }

        @RateLimited("flight")
        public CompletableFuture<String> inFlight(String id) {
            return journal.fly(id);
        }
    }
}
