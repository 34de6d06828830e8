package io.ratelimited.redis.internals.limiter;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * The calls of one key on this node that wait for a call in flight to end, first come first served. The head asks Redis
 * when a call of this node ends, and otherwise a few times a second, since calls end on other nodes too. While Redis is
 * away nobody asks, and the head is decided as the limit's {@code on-failure} says. Between nodes nobody is first.
 */
final class ConcurrencyQueue {

    private static final long PAUSE = TimeUnit.MILLISECONDS.toNanos(20);
    /** Pause while Redis is away. A call that ends on this node is noticed at once all the same. */
    private static final long LONG_PAUSE = TimeUnit.MILLISECONDS.toNanos(100);

    private final RedisConcurrencyLimiter limiter;
    /** The name of the key in Redis. */
    private final String name;
    /** Guarded by this. */
    private final Deque<InFlightCall> queue = new ArrayDeque<>(0);
    /** The head is asking. Guarded by this. */
    private boolean asking;
    /** A call has ended while the head was asking. Guarded by this. */
    private boolean again;
    /** The next look is scheduled. Guarded by this. */
    private boolean scheduled;

    ConcurrencyQueue(RedisConcurrencyLimiter limiter, String name) {
        this.limiter = limiter;
        this.name = name;
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

    /** Nobody waits here, and no answer is pending. */
    synchronized boolean isIdle() {
        return queue.isEmpty() && !asking;
    }

    /** Lets the head ask. While heads are decided at once, the next head asks too. */
    void serve() {
        synchronized (this) {
            if (asking) {
                again = true;
                return;
            }
            asking = true;
        }
        serveHeads();
    }

    /** Serves heads in a loop, since thousands may wait and all of them may be decided here. */
    private void serveHeads() {
        boolean goesOn = true;
        try {
            while (goesOn) {
                goesOn = serveHead();
            }
        } catch (RuntimeException | Error ex) {
            stopAsking();
            throw ex;
        }
    }

    /** Returns whether the next head is to be served at once, by this thread. */
    private boolean serveHead() {
        InFlightCall head = head();
        if (head == null) {
            limiter.left(name);
            return false;
        }
        if (limiter.connection().isDown(name)) {
            return next(head, limiter.decideWithoutRedis(head), LONG_PAUSE);
        }
        CompletableFuture<ScriptReply> answer = head.ask("take");
        if (answer.isDone()) {
            return next(head, decide(head, answer), PAUSE);
        }
        answer.whenComplete((reply, failure) -> {
            if (next(head, decide(head, answer), PAUSE)) {
                serveHeads();
            }
        });
        return false;
    }

    /** The first call; null when nobody waits, and then nobody asks either. */
    private synchronized @Nullable InFlightCall head() {
        InFlightCall head = queue.peekFirst();
        asking = head != null;
        again = false;
        return head;
    }

    private synchronized void stopAsking() {
        asking = false;
    }

    /** Lets the head go, or refuses it for good since the limit has changed, if the answer says so. */
    private boolean decide(InFlightCall head, CompletableFuture<ScriptReply> answer) {
        ScriptReply reply = answer.isCompletedExceptionally() ? null : answer.join();
        if (reply == null || !(reply.admitted() || reply.never())) {
            return false;
        }
        remove(head);
        if (reply.admitted()) {
            head.admitted(reply);
        } else {
            head.decided(reply);
        }
        return true;
    }

    /**
     * Removes the head if it waits no more. Returns whether to serve the next one at once; else it is served after a pause.
     *
     * @param decided the head waits no more
     */
    private boolean next(InFlightCall head, boolean decided, long pause) {
        boolean wait;
        synchronized (this) {
            // It is the first, or has left already: nobody looks for it behind thousands of others.
            if (decided && queue.peekFirst() == head) {
                queue.removeFirst();
            }
            if (decided || again) {
                return true;
            }
            asking = false;
            wait = !queue.isEmpty() && !scheduled;
            scheduled |= wait;
        }
        if (wait) {
            lookAfter(pause);
        } else if (!isOccupied()) {
            limiter.left(name);
        }
        return false;
    }

    private void lookAfter(long pause) {
        try {
            limiter.context().ticker().schedule(limiter.context().ticker().nanos() + pause, this::look);
        } catch (RuntimeException | Error ex) {
            // As where no thread can be started: the next call that comes or ends tries again.
            synchronized (this) {
                scheduled = false;
            }
            throw ex;
        }
    }

    private void look() {
        synchronized (this) {
            scheduled = false;
        }
        serve();
    }
}
