package io.ratelimited.redis.internals.connection;

import io.lettuce.core.RedisException;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Checks that the replies of a connection are those of its commands. A proxy in between may have repeated or lost one: each
 * later reply would then be taken for that of another command. A check goes before other commands, so that none of them gets
 * a reply that was left over, and has a number, which it replies. Only the thread that sends calls the methods about
 * commands, and only the event loop of the connection those about replies.
 */
final class ReplyCheck {

    /** Returns its arguments, and runs wherever a script may. */
    static final String SCRIPT = "return ARGV";

    /** Longest time between two checks while there are many commands. */
    private static final long PAUSE_NANOS = 20_000_000;

    /** With fewer commands since the last check, the next check is due only after {@link #LONGEST_PAUSE_NANOS}. */
    private static final int WORTH_CHECKING = 16;

    private static final long LONGEST_PAUSE_NANOS = 1_000_000_000;

    /** The number of the last check that was sent. */
    private long number;

    private long sentAt = Threads.systemNanos() - LONGEST_PAUSE_NANOS;
    /** Commands sent since. */
    private int unchecked;
    /** Whether a reply was that of another command, so that later ones may be, too. */
    private boolean outOfStep;

    /** Returns whether a check is due. If each command had one, an application that asks seldom would send twice as many. */
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

    /** Takes the reply to a check. An error shows nothing: a proxy in between may refuse the check itself. */
    void replied(String sent, @Nullable List<Object> reply, @Nullable Throwable failure) {
        outOfStep |= failure == null && !List.of(sent).equals(reply);
    }

    boolean isOutOfStep() {
        return outOfStep;
    }

    /** Makes the failure of every command since then. */
    static RedisException failure() {
        return new RedisException(
                "a reply belongs to another command: a reply was repeated or lost between this instance and Redis");
    }
}
