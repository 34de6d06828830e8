package io.ratelimited.redis;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;

/** The reply to one command, which fails when it is late; the command is then taken back if it has not been sent. */
final class Answer<T> extends CompletableFuture<T> implements Deadlines.Timed {

    private final long deadline;
    private final Runnable onTimeout;
    private volatile @Nullable CompletableFuture<T> sent;

    /**
     * @param deadline a value of {@link System#nanoTime}
     * @param onTimeout runs before anyone is told
     */
    Answer(long deadline, Runnable onTimeout) {
        this.deadline = deadline;
        this.onTimeout = onTimeout;
    }

    void of(CompletableFuture<T> command) {
        sent = command;
    }

    @Override
    public long deadline() {
        return deadline;
    }

    @Override
    public void expire() {
        if (isDone()) {
            return;
        }
        onTimeout.run();
        completeExceptionally(new TimeoutException("Redis did not answer in time"));
        CompletableFuture<T> command = sent;
        if (command != null) {
            command.cancel(false);
        }
    }
}
