package io.ratelimited.redis.limiter;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.TimeUnit;

/**
 * The calls of one key on this node that wait for a call in flight to end, first come first served. The head asks Redis
 * when a call of this node ends, and otherwise a few times a second, since calls end on other nodes too. While Redis is
 * away nobody asks, and the head is decided as the limit's {@code on-failure} says. Between nodes nobody is first.
 */
final class ConcurrencyQueue {

    private static final long PAUSE = TimeUnit.MILLISECONDS.toNanos(20);
    /** While Redis is away. What ends on this node is noticed at once all the same. */
    private static final long LONG_PAUSE = TimeUnit.MILLISECONDS.toNanos(100);

    private final RedisConcurrencyLimiter limiter;
    private final String key;
    /** Guarded by this. */
    private final Deque<InFlightCall> queue = new ArrayDeque<>(0);
    /** The head is asking. Guarded by this. */
    private boolean asking;
    /** A call has ended while the head was asking. Guarded by this. */
    private boolean again;
    /** The next look is scheduled. Guarded by this. */
    private boolean scheduled;

    ConcurrencyQueue(RedisConcurrencyLimiter limiter, String key) {
        this.limiter = limiter;
        this.key = key;
    }

    synchronized boolean isOccupied() {
        return !queue.isEmpty();
    }

    synchronized void add(InFlightCall call) {
        queue.addLast(call);
    }

    synchronized void remove(InFlightCall call) {
        queue.remove(call);
    }

    /** Nobody waits here, and no answer is under way. */
    synchronized boolean isIdle() {
        return queue.isEmpty() && !asking;
    }

    /** Lets the head ask. */
    void serve() {
        InFlightCall head;
        synchronized (this) {
            if (asking) {
                again = true;
                return;
            }
            head = queue.peekFirst();
            asking = head != null;
            again = false;
        }
        if (head == null) {
            limiter.left(key);
            return;
        }
        if (limiter.connection().isDown(key)) {
            answered(head, limiter.decideWithoutRedis(head), LONG_PAUSE);
            return;
        }
        head.ask("take").whenComplete((answer, failure) -> {
            boolean admitted = answer != null && answer.admitted();
            if (admitted) {
                remove(head);
                head.admitted(answer);
            }
            answered(head, admitted, PAUSE);
        });
    }

    /** @param decided the head waits no more */
    private void answered(InFlightCall head, boolean decided, long pause) {
        boolean now;
        boolean wait;
        synchronized (this) {
            asking = false;
            if (decided) {
                queue.remove(head);
            }
            now = decided || again;
            wait = !now && !queue.isEmpty() && !scheduled;
            scheduled |= wait;
        }
        if (now) {
            serve();
        } else if (wait) {
            limiter.context().ticker().schedule(limiter.context().ticker().nanos() + pause, this::look);
        } else if (!isOccupied()) {
            limiter.left(key);
        }
    }

    private void look() {
        synchronized (this) {
            scheduled = false;
        }
        serve();
    }
}
