package io.ratelimited.redis;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * The calls of one key on this node that wait for a call in flight to end, first come first served. The head asks Redis
 * when a call of this node ends, and otherwise a few times a second, since calls end on other nodes too. Between nodes
 * nobody is first.
 */
final class Turnstile {

    private static final long PAUSE = TimeUnit.MILLISECONDS.toNanos(20);

    private final RedisRateLimiter limiter;
    private final String key;
    /** Guarded by this. */
    private final Deque<InFlight> queue = new ArrayDeque<>(0);
    /** The head is asking. Guarded by this. */
    private boolean asking;
    /** A call has ended while the head was asking. Guarded by this. */
    private boolean again;

    Turnstile(RedisRateLimiter limiter, String key) {
        this.limiter = limiter;
        this.key = key;
    }

    synchronized boolean isOccupied() {
        return !queue.isEmpty();
    }

    synchronized void add(InFlight call) {
        queue.addLast(call);
    }

    synchronized void remove(InFlight call) {
        queue.remove(call);
    }

    /** Nobody stands here, and nobody's answer is under way. */
    synchronized boolean isIdle() {
        return queue.isEmpty() && !asking;
    }

    /** Lets the head ask. */
    void serve() {
        InFlight head;
        synchronized (this) {
            if (asking) {
                again = true;
                return;
            }
            head = queue.peekFirst();
            if (head == null) {
                return;
            }
            asking = true;
            again = false;
        }
        head.ask("take")
                .whenComplete((answer, failure) -> answered(head, answer != null && answer.admitted() ? answer : null));
    }

    private void answered(InFlight head, @Nullable Verdict admitted) {
        boolean now;
        synchronized (this) {
            asking = false;
            if (admitted != null) {
                queue.remove(head);
            }
            now = admitted != null || again;
        }
        if (admitted != null) {
            head.admitted(admitted);
        }
        if (now) {
            serve();
        } else if (isOccupied()) {
            limiter.backend().ticker().schedule(limiter.backend().ticker().nanos() + PAUSE, this::serve);
        } else {
            limiter.turnstiles().left(key);
        }
    }
}
