package io.ratelimited.redis.internals.connection;

import io.ratelimited.redis.internals.connection.GuardedConnection.Charge;
import io.ratelimited.redis.internals.connection.GuardedConnection.DeliveryKind;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Deque;
import java.util.EnumMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Commands that no caller waits for and that Redis has to get all the same, such as the end of a call. Those that cannot be
 * sent are kept until they can, in the order of {@link DeliveryKind} and bounded in number: the oldest of the kind that costs
 * least are dropped. Charges are added up for each key, and the largest are sent first. A bounded number is pending at the same
 * time, so that many at once do not make callers wait beyond their timeout. Thread-safe.
 */
final class Deliveries {

    static final int MAX_KEPT = 20_000;
    /** Half a minute: a server that answers with errors, such as a replica that few ask, must not forget who has ended. */
    private static final int MAX_TRIES = 150;
    /** Redis takes a few milliseconds for so many. */
    static final int MAX_PENDING = 256;

    /** Keys with a charge: twice as many at the most, between two of which the smallest are dropped. */
    private static final int MAX_CHARGES = 20_000;
    /** Charges that are sent at a time: all of them are sorted each time. */
    private static final int MAX_CHARGES_AT_ONCE = 5_000;

    private final CommandSender sender;
    private final Threads threads;
    /** Guarded by this. */
    private final Map<DeliveryKind, Deque<Delivery>> kept = new EnumMap<>(DeliveryKind.class);
    /** Charges that are owed for keys in Redis, by their names. */
    private final ConcurrentHashMap<String, Charge> charges = new ConcurrentHashMap<>();
    /** Whether the smallest charges are being dropped. */
    private final AtomicBoolean droppingCharges = new AtomicBoolean();

    /** In all of {@link #kept}. Guarded by this. */
    private int size;
    /** The log says that commands are dropped. Guarded by this. */
    private boolean dropping;
    /** Guarded by this. */
    private int pending;
    /** Something is kept only because too many were pending. Guarded by this. */
    private boolean crowded;
    /** A command has failed since the last look, and is kept: the connection may refuse all of them. Guarded by this. */
    private boolean failing;

    /**
     * A command to deliver.
     *
     * @param arguments made when the command is sent; null when there is nothing to send any more
     * @param keys one or more, all of one server
     * @param delivered is given the reply of Redis
     */
    record Delivery(
            DeliveryKind kind,
            List<String> keys,
            Supplier<@Nullable ScriptArguments> arguments,
            Consumer<List<Object>> delivered,
            int tries) {

        private String key() {
            return keys.get(0);
        }

        private Delivery again() {
            return new Delivery(kind, keys, arguments, delivered, tries + 1);
        }
    }

    Deliveries(CommandSender sender, Threads threads) {
        this.sender = sender;
        this.threads = threads;
    }

    /** Sends a command now, or keeps it. */
    void deliver(Delivery delivery) {
        deliver(delivery, null);
    }

    private void deliver(Delivery delivery, @Nullable Server recovering) {
        Server server = server(delivery.key(), recovering);
        if (server == null || !begin()) {
            keep(delivery);
        } else {
            send(delivery, server);
        }
    }

    /** Sends the kept commands that can be sent now. */
    void deliverKept() {
        deliverKept(null);
    }

    /**
     * Sends the commands that were kept for a server that is about to decide again; for all that may be asked if it is null.
     */
    void deliverKept(@Nullable Server recovering) {
        do {
            sendable(recovering).forEach(delivery -> deliver(delivery, recovering));
            deliverCharges(recovering);
            // There is room at once if nothing was left to be sent.
        } while (hasRoomForMore());
    }

    /** Adds to the charge that is owed for a key, and returns the sum. It is sent at the next look. */
    Charge owe(String key, Charge charge) {
        Charge all = Objects.requireNonNull(charges.merge(key, charge, Charge::plus));
        if (charges.size() > 2 * MAX_CHARGES && !droppingCharges.getAndSet(true)) {
            largestFirst(charges.entrySet().stream().map(Map.Entry::copyOf))
                    .skip(MAX_CHARGES)
                    .forEach(small -> charges.remove(small.getKey(), small.getValue()));
            droppingCharges.set(false);
        }
        return all;
    }

    void changeCharge(String key, UnaryOperator<@Nullable Charge> change) {
        charges.computeIfPresent(key, (same, owed) -> change.apply(owed));
    }

    /**
     * Sends some of the largest charges, once those before are sent. Holds no lock while it sorts: callers go on meanwhile.
     */
    private void deliverCharges(@Nullable Server recovering) {
        if (charges.isEmpty() || isCrowded()) {
            return;
        }
        largestFirst(charges.entrySet().stream()
                        .filter(each -> server(each.getKey(), recovering) != null)
                        .map(Map.Entry::copyOf))
                .limit(MAX_CHARGES_AT_ONCE)
                .map(Map.Entry::getKey)
                .toList()
                .forEach(key -> deliverCharge(key, recovering));
    }

    private void deliverCharge(String key, @Nullable Server recovering) {
        Charge charge = charges.remove(key);
        if (charge != null) {
            deliver(
                    new Delivery(
                            DeliveryKind.CHARGE,
                            List.of(key),
                            () -> charge.arguments(sender.time()),
                            charge::charged,
                            0),
                    recovering);
        }
    }

    private synchronized boolean isCrowded() {
        return crowded;
    }

    private static Stream<Map.Entry<String, Charge>> largestFirst(Stream<Map.Entry<String, Charge>> some) {
        return some.sorted(Map.Entry.comparingByValue(
                Comparator.comparingLong(Charge::permits).reversed()));
    }

    /** Returns the server to which a command for a key can be sent now; null if there is none. */
    private @Nullable Server server(String key, @Nullable Server recovering) {
        return recovering == null ? sender.available(key) : sender.recovering(key, recovering);
    }

    private synchronized List<Delivery> sendable(@Nullable Server recovering) {
        List<Delivery> sendable = new ArrayList<>();
        crowded = false;
        failing = false;
        for (Deque<Delivery> queue : kept.values()) {
            for (Iterator<Delivery> all = queue.iterator(); all.hasNext(); ) {
                if (pending + sendable.size() >= MAX_PENDING) {
                    crowded = true;
                    return sendable;
                }
                Delivery next = all.next();
                if (server(next.key(), recovering) != null) {
                    all.remove();
                    size--;
                    sendable.add(next);
                }
            }
        }
        dropping &= size > 0;
        return sendable;
    }

    private synchronized boolean begin() {
        boolean free = pending < MAX_PENDING;
        pending += free ? 1 : 0;
        crowded |= !free;
        return free;
    }

    private synchronized void end() {
        pending--;
    }

    /**
     * Returns whether to send more at once. Commands that wait for a server, or have failed, wait for the next look instead.
     */
    private synchronized boolean hasRoomForMore() {
        return crowded && !failing && pending <= MAX_PENDING / 2;
    }

    private synchronized void keepFailed(Delivery delivery) {
        failing = true;
        keep(delivery.again());
    }

    private synchronized void keep(Delivery delivery) {
        kept.computeIfAbsent(delivery.kind, kind -> new ArrayDeque<>()).addLast(delivery);
        size++;
        if (size > MAX_KEPT) {
            drop();
        }
    }

    private void drop() {
        Deque<Delivery> cheapest = new ArrayDeque<>();
        for (Deque<Delivery> queue : kept.values()) {
            cheapest = queue.isEmpty() ? cheapest : queue;
        }
        cheapest.removeFirst();
        size--;
        if (!dropping) {
            dropping = true;
            threads.warn(() -> "More than " + MAX_KEPT + " commands are stored for Redis, such as the ends of calls;"
                    + " the oldest of the least important ones are dropped");
        }
    }

    private void send(Delivery delivery, Server server) {
        ScriptArguments args = arguments(delivery);
        if (args == null) {
            end();
            return;
        }
        String[] on = delivery.keys.toArray(String[]::new);
        // Not the call of the link itself, which would be taken back when it is late: what was not sent then would be
        // lost.
        sender.send(
                        server,
                        on,
                        (link, asking) ->
                                link.eval(Script.DECIDE, on, args, asking).thenApply(Function.identity()))
                .whenComplete((reply, failure) -> {
                    end();
                    if (failure != null) {
                        if (isWantedAfter(delivery, Replies.cause(failure))) {
                            keepFailed(delivery);
                        }
                        return;
                    }
                    threads.run(() -> delivery.delivered.accept(reply));
                    if (hasRoomForMore()) {
                        deliverKept();
                    }
                });
    }

    private @Nullable ScriptArguments arguments(Delivery delivery) {
        try {
            return delivery.arguments.get();
        } catch (RuntimeException | Error ex) {
            // Others must not be lost with it.
            threads.failed(ex);
            return null;
        }
    }

    /**
     * Returns whether to send a command again. One that does harm if it runs twice must not have run. An outage is no fault of
     * the command.
     */
    private static boolean isWantedAfter(Delivery sent, Throwable failure) {
        return Replies.isNotSent(failure)
                || (sent.kind.isRepeatable && failure instanceof TimeoutException)
                || ((sent.kind.isRepeatable || Replies.hasChangedNothing(failure)) && sent.tries < MAX_TRIES);
    }
}
