package io.ratelimited.redis.connection;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.TimeoutException;
import java.util.function.Predicate;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Commands that no caller waits for and that Redis has to get all the same, such as the end of a call. Those that cannot be
 * sent are kept until they can, bounded in number: the oldest are dropped, which only costs permits. Thread-safe.
 */
final class Deliveries {

    private static final int MOST = 20_000;
    private static final int MOST_TRIES = 4;

    private final Deque<Delivery> kept = new ArrayDeque<>();

    /**
     * A command to deliver.
     *
     * @param arguments made when the command is sent
     * @param repeatable running the command twice does no harm, so that it is sent again when it may have been lost
     */
    record Delivery(
            Script script, String key, Supplier<@Nullable ScriptArguments> arguments, boolean repeatable, int tries) {

        /** Whether to send the command again after a failure. */
        boolean isWantedAfter(Throwable failure) {
            if (failure instanceof NotSentException) {
                return true;
            }
            // What has no reply may have run. An outage is no fault of the command.
            return repeatable && (failure instanceof TimeoutException || tries < MOST_TRIES);
        }

        Delivery again() {
            return new Delivery(script, key, arguments, repeatable, tries + 1);
        }
    }

    /** Keeps a command. */
    synchronized void keep(Delivery delivery) {
        if (kept.size() == MOST) {
            kept.removeFirst();
        }
        kept.addLast(delivery);
    }

    /** Takes out what can be sent now, the oldest first. */
    synchronized Deque<Delivery> take(Predicate<String> canBeSent) {
        Deque<Delivery> taken = new ArrayDeque<>();
        for (int i = kept.size(); i > 0; i--) {
            Delivery next = kept.removeFirst();
            if (canBeSent.test(next.key())) {
                taken.addLast(next);
            } else {
                kept.addLast(next);
            }
        }
        return taken;
    }

    synchronized boolean isEmpty() {
        return kept.isEmpty();
    }
}
