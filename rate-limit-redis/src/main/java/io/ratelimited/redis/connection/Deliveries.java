package io.ratelimited.redis.connection;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.TimeoutException;
import java.util.function.Predicate;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Commands that no caller waits for and that Redis has to get all the same, such as the end of a call. Those that cannot be
 * sent are kept until they can, bounded in number: the oldest are dropped, which only costs permits. A bounded number is
 * under way at the same time, so that many at once do not make callers wait beyond their timeout. Thread-safe.
 */
final class Deliveries {

    private static final int MOST = 20_000;
    private static final int MOST_TRIES = 4;

    /** Redis takes a few milliseconds for so many. */
    static final int MOST_UNDER_WAY = 256;

    private final Deque<Delivery> kept = new ArrayDeque<>();
    /** Guarded by this. */
    private int underWay;

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

    /** Whether a command may be sent now. It then counts as under way until it has ended. */
    synchronized boolean begin() {
        boolean free = underWay < MOST_UNDER_WAY;
        underWay += free ? 1 : 0;
        return free;
    }

    /** Returns whether it is time to send more of what is kept. */
    synchronized boolean end() {
        underWay--;
        return underWay <= MOST_UNDER_WAY / 2 && !kept.isEmpty();
    }

    /** Takes out what can be sent now, the oldest first. It then counts as under way until it has ended. */
    synchronized List<Delivery> take(Predicate<String> canBeSent) {
        List<Delivery> taken = new ArrayList<>();
        Iterator<Delivery> all = kept.iterator();
        while (all.hasNext() && underWay < MOST_UNDER_WAY) {
            Delivery next = all.next();
            if (canBeSent.test(next.key())) {
                all.remove();
                underWay++;
                taken.add(next);
            }
        }
        return taken;
    }
}
