package io.ratelimited.redis.internals.limiter;

import io.ratelimited.redis.internals.script.PermitCost;
import io.ratelimited.redis.internals.script.ScriptBlocks;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/** One call that wants permits; completes with the decision, or with the reason why Redis has not decided. */
final class PermitRequest extends CompletableFuture<ScriptReply> {

    private final Wanted wanted;
    private final long maxWaitMicros;
    /** As of {@link Wanted#patience}; matters under limits with blocks only. */
    private final long patienceMicros;

    /** The mark of the grant that is given back; null for a call that takes. */
    private final @Nullable String refunded;
    /** The text of its key, where that may be blocked; else null. */
    private final @Nullable String text;
    /** The limiter whose numbers the call has; null if that does not matter. */
    private final @Nullable Object limiter;

    PermitRequest(long permits, long maxWaitNanos) {
        this(new Wanted(permits, maxWaitNanos), null);
    }

    PermitRequest(Wanted wanted, @Nullable String text) {
        this(wanted, null, text, null);
    }

    PermitRequest(Wanted wanted, @Nullable String text, Object limiter) {
        this(wanted, null, text, limiter);
    }

    private PermitRequest(Wanted wanted, @Nullable String refunded, @Nullable String text, @Nullable Object limiter) {
        this.limiter = limiter;
        this.refunded = refunded;
        this.wanted = wanted;
        this.maxWaitMicros = micros(wanted.maxWait());
        this.patienceMicros = Math.max(maxWaitMicros, micros(wanted.patience()));
        this.text = text;
    }

    /** Gives permits back on the way. */
    static PermitRequest refund(long permits, String mark) {
        return new PermitRequest(new Wanted(permits, 0), mark, null, null);
    }

    /** A longest wait as scripts are given it. */
    static long micros(long maxWaitNanos) {
        return Math.min(PermitCost.FAR, Math.max(0, maxWaitNanos) / 1000);
    }

    long permits() {
        return wanted.permits();
    }

    long maxWaitMicros() {
        return maxWaitMicros;
    }

    long patienceMicros() {
        return patienceMicros;
    }

    boolean exempt() {
        return wanted.exempt();
    }

    boolean undecided() {
        return wanted.undecided();
    }

    /** What the script is told about blocks; see {@code decide.lua}. */
    String tail() {
        String judged =
                exempt() ? ScriptBlocks.EXEMPT : patienceMicros > maxWaitMicros ? Long.toString(patienceMicros) : "";
        return undecided() ? judged + ScriptBlocks.UNDECIDED : judged;
    }

    @Nullable
    String text() {
        return text;
    }

    @Nullable
    String refunded() {
        return refunded;
    }

    /** The limiter whose numbers the call has; null if that does not matter. */
    @Nullable
    Object limiter() {
        return limiter;
    }

    /** Returns whether one script call can have both, as it has one limit. */
    boolean hasNumbersOf(PermitRequest other) {
        return limiter == other.limiter;
    }

    /** Returns whether another call asks for the same, so that both are one group to a script. */
    boolean asksAs(PermitRequest other) {
        return other.refunded == null
                && exempt() == other.exempt()
                && undecided() == other.undecided()
                && patienceMicros == other.patienceMicros
                && takes(other.permits(), other.maxWaitMicros);
    }

    /** Returns whether it asks for so many permits and waits for so long. */
    boolean takes(long number, long longestWaitMicros) {
        return refunded == null && permits() == number && maxWaitMicros == longestWaitMicros;
    }
}
