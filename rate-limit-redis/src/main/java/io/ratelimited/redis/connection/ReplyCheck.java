package io.ratelimited.redis.connection;

import io.lettuce.core.RedisException;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Whether the replies of a connection are those of its commands. What stands between may have repeated or lost one: each later
 * reply would then be taken for that of another command. A check goes before other commands, so that none of them gets a reply
 * that was left over, and has a number, which it replies. Only the thread that sends uses what is about commands, and only the
 * event loop of the connection what is about replies.
 */
final class ReplyCheck {

    /** Replies what it is given, wherever a script may run. */
    static final String SCRIPT = "return ARGV";

    /** Replies of many commands are known to be theirs at least so often. */
    private static final long PAUSE_NANOS = 20_000_000;

    /** Of fewer commands since the last check, the next is only checked after {@link #LONGEST_PAUSE_NANOS}. */
    private static final int WORTH_CHECKING = 16;

    private static final long LONGEST_PAUSE_NANOS = 1_000_000_000;

    /** The number of the last check that was sent. */
    private long number;

    private long sentAt = Threads.systemNanos() - LONGEST_PAUSE_NANOS;
    /** Commands sent since. */
    private int unchecked;
    /** A reply was that of another command. Whatever comes now may be. */
    private boolean outOfStep;

    /** An application that asks seldom would else send twice as many commands. */
    boolean isDue() {
        long since = Threads.systemNanos() - sentAt;
        return since >= (unchecked >= WORTH_CHECKING ? PAUSE_NANOS : LONGEST_PAUSE_NANOS);
    }

    /** The number of a check that is sent now, its only argument. */
    String next() {
        sentAt = Threads.systemNanos();
        unchecked = 0;
        return Long.toString(++number);
    }

    void sent(int commands) {
        unchecked += commands;
    }

    /** Takes the reply to a check. An error says nothing: whatever stands between may refuse the check itself. */
    void replied(String sent, @Nullable List<Object> reply, @Nullable Throwable failure) {
        outOfStep |= failure == null && !List.of(sent).equals(reply);
    }

    boolean isOutOfStep() {
        return outOfStep;
    }

    /** Of every command since. */
    static RedisException failure() {
        return new RedisException(
                "a reply was that of another command: something on the way to Redis has repeated or lost one");
    }
}
