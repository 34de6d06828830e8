package io.ratelimited.redis.connection;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.TimeoutException;
import java.util.function.Function;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Commands that no caller waits for and that Redis has to get all the same, such as the end of a call. Those that cannot be
 * sent are kept until they can, bounded in number: the oldest are dropped, which only costs permits. A bounded number is
 * under way at the same time, so that many at once do not make callers wait beyond their timeout. Thread-safe.
 */
final class Deliveries {

    private static final int MOST = 20_000;
    /** Half a minute: a server that answers with errors, such as a replica that few ask, must not forget who has ended. */
    private static final int MOST_TRIES = 150;
    /** Redis takes a few milliseconds for so many. */
    static final int MOST_UNDER_WAY = 256;

    private final CommandSender sender;
    private final Function<String, @Nullable Server> deciding;
    /** Guarded by this. */
    private final Deque<Delivery> kept = new ArrayDeque<>();
    /** Guarded by this. */
    private int underWay;
    /** Something is kept only because too many were under way. Guarded by this. */
    private boolean crowded;

    /**
     * A command to deliver.
     *
     * @param arguments made when the command is sent; null when there is nothing to send any more
     * @param repeatable running the command twice does no harm, so that it is sent again when it may have been lost
     */
    record Delivery(
            Script script, String key, Supplier<@Nullable ScriptArguments> arguments, boolean repeatable, int tries) {}

    /** @param deciding the server of a key; null while it may not be asked */
    Deliveries(CommandSender sender, Function<String, @Nullable Server> deciding) {
        this.sender = sender;
        this.deciding = deciding;
    }

    /** Sends a command now, or keeps it. */
    void deliver(Delivery delivery) {
        deliver(delivery, deciding);
    }

    private void deliver(Delivery delivery, Function<String, @Nullable Server> routes) {
        Server server = routes.apply(delivery.key());
        if (server == null || !begin()) {
            keep(delivery);
        } else {
            send(delivery, server);
        }
    }

    /** Sends what was kept and can be sent now, the oldest first. */
    void deliverKept() {
        deliverKept(deciding);
    }

    /** Sends what was kept for a server that is about to decide again. */
    void deliverKept(Function<String, @Nullable Server> routes) {
        List<Delivery> sendable = new ArrayList<>();
        synchronized (this) {
            Iterator<Delivery> all = kept.iterator();
            crowded = false;
            while (all.hasNext()) {
                if (underWay + sendable.size() >= MOST_UNDER_WAY) {
                    crowded = true;
                    break;
                }
                Delivery next = all.next();
                if (routes.apply(next.key()) != null) {
                    all.remove();
                    sendable.add(next);
                }
            }
        }
        sendable.forEach(delivery -> deliver(delivery, routes));
    }

    private synchronized boolean begin() {
        boolean free = underWay < MOST_UNDER_WAY;
        underWay += free ? 1 : 0;
        crowded |= !free;
        return free;
    }

    /** Returns whether it is time to send more of what is kept. What waits for a server is not looked at with each reply. */
    private synchronized boolean end() {
        underWay--;
        return crowded && underWay <= MOST_UNDER_WAY / 2;
    }

    private synchronized void keep(Delivery delivery) {
        if (kept.size() == MOST) {
            kept.removeFirst();
        }
        kept.addLast(delivery);
    }

    private void send(Delivery delivery, Server server) {
        ScriptArguments args = delivery.arguments().get();
        if (args == null) {
            end();
            return;
        }
        String[] on = {delivery.key()};
        sender.send(server, delivery.key(), (link, asking) -> link.eval(delivery.script(), on, args, asking))
                .whenComplete((reply, failure) -> {
                    boolean more = end();
                    if (failure == null && more) {
                        deliverKept();
                    } else if (failure != null && isWantedAfter(delivery, Replies.cause(failure))) {
                        keep(new Delivery(
                                delivery.script(),
                                delivery.key(),
                                delivery.arguments(),
                                delivery.repeatable(),
                                delivery.tries() + 1));
                    }
                });
    }

    /** What has no reply may have run. An outage is no fault of the command. */
    private static boolean isWantedAfter(Delivery sent, Throwable failure) {
        return Replies.isNotSent(failure)
                || (sent.repeatable() && (failure instanceof TimeoutException || sent.tries() < MOST_TRIES));
    }
}
