package io.ratelimited.spring;

import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.Threads;
import java.util.concurrent.CompletableFuture;

/** The facts, for methods that return a value. */
final class BlockingCallsTest extends CallFacts {

    @Override
    Class<?> service() {
        return Service.class;
    }

    @Override
    CompletableFuture<String> call(String method, String id) {
        return new OnThread(context.getBean(Service.class), method, id);
    }

    @Override
    void settle(CompletableFuture<String> call) {
        Threads.until(() -> call.isDone() || ((OnThread) call).isWaiting());
    }

    @Override
    Class<? extends Throwable> cancellation() {
        return InterruptedException.class;
    }

    /** A call on a thread of its own, which cancelling interrupts. */
    private static final class OnThread extends CompletableFuture<String> {

        private final Thread thread;

        private OnThread(Service service, String method, String id) {
            thread = new Thread(() -> run(service, method, id));
            thread.start();
        }

        private boolean isWaiting() {
            return thread.getState() == Thread.State.WAITING;
        }

        private void run(Service service, String method, String id) {
            try {
                complete(
                        switch (method) {
                            case "rejecting" -> service.rejecting(id);
                            case "waiting" -> service.waiting(id);
                            case "falling" -> service.falling(id);
                            case "failing" -> service.failing(id);
                            case "both" -> service.both(id);
                            case "charged" -> service.charged(id);
                            default -> service.inFlight(id);
                        });
            } catch (Throwable ex) {
                completeExceptionally(ex);
            }
        }

        @Override
        public boolean cancel(boolean mayInterruptIfRunning) {
            thread.interrupt();
            Threads.until(() -> !thread.isAlive());
            return isCompletedExceptionally();
        }
    }

    static class Service {

        private final Journal journal;

        Service(Journal journal) {
            this.journal = journal;
        }

        @RateLimited("rejecting")
        public String rejecting(String id) {
            return journal.body(id);
        }

        @RateLimited("waiting")
        public String waiting(String id) {
            return journal.body(id);
        }

        @RateLimited(name = "falling", fallback = "instead")
        public String falling(String id) {
            return journal.body(id);
        }

        String instead(String id, RateLimitExceededException refusal) {
            return "instead of " + id + ": " + refusal.limit();
        }

        @RateLimited(name = "failing", fallback = "instead")
        public String failing(String id) {
            if (id.equals("bad")) {
                throw new IllegalStateException(id);
            }
            return journal.body(id);
        }

        @RateLimited("wide")
        @RateLimited("narrow")
        public String both(String id) {
            return journal.body(id);
        }

        @RateLimited(name = "charged", permits = "10", charge = Journal.CHARGE, fallback = "instead")
        @RateLimited(name = "watched", permits = "10", charge = "#count + 1")
        @RateLimited("wide")
        public String charged(String id) throws Exception {
            if (id.equals("bad")) {
                throw new IllegalStateException(id);
            }
            return id.equals("fly") ? journal.fly(id).get() : journal.body(id);
        }

        @RateLimited("flight")
        public String inFlight(String id) throws Exception {
            return journal.fly(id).get();
        }
    }
}
