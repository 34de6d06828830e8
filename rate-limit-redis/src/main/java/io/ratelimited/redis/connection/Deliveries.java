package io.ratelimited.redis.connection;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
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
     * @param arguments made when the command is sent; null when there is nothing to send any more
     * @param repeatable running the command twice does no harm, so that it is sent again when it may have been lost
     */
    record Delivery(
            Script script, String key, Supplier<@Nullable ScriptArguments> arguments, boolean repeatable, int tries) {}

    synchronized void keep(Delivery delivery) {
        if (kept.size() == MOST) {
            kept.removeFirst();
        }
        kept.addLast(delivery);
    }

    /** Keeps a command that has failed, if it is to be sent again. */
    void failed(Delivery sent, Throwable failure) {
        // What has no reply may have run. An outage is no fault of the command.
        boolean wanted = Replies.isNotSent(failure)
                || (sent.repeatable() && (failure instanceof TimeoutException || sent.tries() < MOST_TRIES));
        if (wanted) {
            keep(new Delivery(sent.script(), sent.key(), sent.arguments(), sent.repeatable(), sent.tries() + 1));
        }
    }

    /** Takes out what can be sent now, the oldest first. */
    synchronized List<Delivery> take(Predicate<String> canBeSent) {
        List<Delivery> taken = new ArrayList<>();
        kept.removeIf(delivery -> canBeSent.test(delivery.key()) && taken.add(delivery));
        return taken;
    }
}
