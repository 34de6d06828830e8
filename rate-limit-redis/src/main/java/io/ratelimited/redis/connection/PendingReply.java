package io.ratelimited.redis.connection;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;

/** The reply to one command. Fails when it is late; the command is then taken back if it has not been sent. */
final class PendingReply<T> extends CompletableFuture<T> implements Deadlines.Timed {

    private final Server server;
    private final long deadline;
    private final Runnable onTimeout;
    private volatile @Nullable CompletableFuture<?> command;

    /**
     * @param deadline a value of {@link Threads#nanos}
     * @param onTimeout runs before the failure is reported
     */
    PendingReply(Server server, long deadline, Runnable onTimeout) {
        this.server = server;
        this.deadline = deadline;
        this.onTimeout = onTimeout;
    }

    void of(CompletableFuture<?> sent) {
        command = sent;
    }

    Server server() {
        return server;
    }

    @Override
    public long deadline() {
        return deadline;
    }

    @Override
    public void expire() {
        if (!isDone()) {
            onTimeout.run();
            giveUp(new TimeoutException("Redis did not answer in time"));
        }
    }

    void giveUp(Throwable reason) {
        if (completeExceptionally(reason)) {
            CompletableFuture<?> sent = command;
            if (sent != null) {
                sent.cancel(false);
            }
        }
    }
}
