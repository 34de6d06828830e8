package io.ratelimited.spring.internals.client;

import io.ratelimited.core.Ticker;
import io.ratelimited.spring.backend.SharedPauses;
import io.ratelimited.spring.internals.expression.CallResult;
import io.ratelimited.spring.internals.text.LogText;
import io.ratelimited.spring.internals.text.PropertyText;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.ObjLongConsumer;

/**
 * The pauses of one client that all instances share: sends those of this instance to the others, and passes theirs to the
 * gates here. A pause of another instance counts once and for no longer than the longest pause of this one. Thread-safe.
 */
final class FleetPauses {

    private static final LogText.Lines LOG = LogText.lines(FleetPauses.class);

    private final String client;
    private final SharedPauses shared;
    private final Ticker ticker;
    private final long maxPauseNanos;
    /** Ends of the pauses of other instances, in nanoseconds of the ticker, for gates that are made later. */
    private final Map<String, Long> ends = new ConcurrentHashMap<>();

    private final AtomicBoolean failing = new AtomicBoolean();

    FleetPauses(String client, SharedPauses shared, Ticker ticker, long maxPauseNanos) {
        this.client = client;
        this.shared = shared;
        this.ticker = ticker;
        this.maxPauseNanos = maxPauseNanos;
    }

    /** @param gates receives the gate and how long it pauses, in nanoseconds */
    void follow(ObjLongConsumer<String> gates) {
        shared.follow((name, lasting) -> {
            int colon = name.indexOf(':');
            if (colon >= 0 && name.substring(colon + 1).equals(client)) {
                long now = ticker.nanos();
                long pause = lasting.compareTo(Duration.ofNanos(maxPauseNanos)) < 0 ? lasting.toNanos() : maxPauseNanos;
                ends.values().removeIf(end -> end - now <= 0);
                ends.put(name.substring(0, colon), now + pause);
                gates.accept(name.substring(0, colon), pause);
            }
        });
    }

    /**
     * Returns how long the gate of a key pauses because another instance was asked to pause, in nanoseconds; 0 without a
     * pause.
     */
    long left(String gate) {
        Long end = ends.get(gate);
        return end == null ? 0 : Math.max(0, end - ticker.nanos());
    }

    /** Reports a pause of a gate to all instances. Waits for nothing; if it cannot be shared, it holds here only. */
    void publish(String gate, long nanos) {
        Duration lasting = Duration.ofNanos(Math.min(nanos, maxPauseNanos));
        CompletionStage<?> published;
        try {
            published = shared.publish(gate + ":" + client, lasting);
        } catch (RuntimeException ex) {
            // The caller gets the answer that asked for the pause all the same.
            published = CompletableFuture.failedStage(ex);
        }
        published.whenComplete((done, failure) -> {
            if (failure == null) {
                failing.set(false);
            } else if (failing.compareAndSet(false, true)) {
                LOG.warn("The pause of client '" + client + "' for " + PropertyText.of(lasting)
                        + " only applies to this instance, because it could not be shared: "
                        + CallResult.unwrap(failure).getMessage());
            }
        });
    }
}
