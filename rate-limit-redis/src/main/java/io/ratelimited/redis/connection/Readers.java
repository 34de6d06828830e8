package io.ratelimited.redis.connection;

/**
 * The threads that read replies. All limits share them, and callers who have promised not to block run on them, until one of
 * them waits for Redis there. Thread-safe.
 */
final class Readers {

    private final Threads threads;
    /** How many replies this thread is at: within one, it may send a command whose reply is there already. */
    private final ThreadLocal<Integer> replies = ThreadLocal.withInitial(() -> 0);
    /** A caller has waited for Redis on such a thread: no caller runs there again. */
    private volatile boolean deceived;

    Readers(Threads threads) {
        this.threads = threads;
    }

    /** This thread is about to complete what waits for a reply. To be ended. */
    void begin() {
        replies.set(replies.get() + 1);
    }

    /** The thread has completed it. */
    void end() {
        replies.set(replies.get() - 1);
    }

    private boolean isReading() {
        return replies.get() > 0;
    }

    /** Whether this thread reads a reply, and may run callers that never block. */
    boolean mayRunCallers() {
        return !deceived && isReading();
    }

    /**
     * Looks whether this thread is about to wait for a reply that it has to read itself. If so, warns of the caller once, and
     * no caller runs on these threads any more.
     *
     * @return whether the wait would never end
     */
    boolean catchWaitForItself() {
        if (!isReading()) {
            return false;
        }
        if (!deceived) {
            deceived = true;
            threads.warn(
                    () ->
                            "A caller asks a limit on Redis and waits for it on a thread that reads the replies of Redis; see"
                                    + " the stack. The limit decides as its on-failure says, and no caller runs on these threads"
                                    + " from now on. Ask asynchronously there, or go on elsewhere before, as by"
                                    + " publishOn(Schedulers.boundedElastic())",
                    new Throwable("waits for Redis on a thread that reads its replies"));
        }
        return true;
    }
}
