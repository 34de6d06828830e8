package io.ratelimited.redis.simulation;

import java.util.Locale;

/**
 * Something that happens in a schedule: calls, or a fault.
 *
 * @param at nanoseconds since the beginning
 * @param node whom it concerns, counted from 0; meaningless for the server
 * @param key of a call
 * @param amount permits of a call or the number of calls at once; otherwise see {@link Kind}
 * @param nanos how long a call may wait or a fault lasts
 */
record Step(long at, Kind kind, int node, int key, int amount, long nanos) {

    /** What happens. */
    enum Kind {
        /** A call for some permits. */
        CALL,
        /** Several calls for one permit at once. */
        BURST,
        /** Calls for one permit, one after the other within the time. */
        FLOOD,
        /** A call whose caller cancels its future. */
        CALL_CANCELLED,
        /** A call that gives back what it was given. */
        CALL_GIVEN_BACK,
        /** A call whose caller gives its future a time of its own. */
        CALL_TIMED_OUT,
        /** A call whose caller stops waiting for its turn. */
        CALL_LEAVES,
        /** A call whose caller sleeps until its turn, and is interrupted. */
        CALL_INTERRUPTED,
        /** Calls for one permit and for three, one after the other within the time. */
        MIXED_FLOOD,
        /** Calls for two permits, one after the other within the time. */
        FLOOD_OF_TWOS,
        /** A call that is charged what it has cost when it ends. */
        CALL_SETTLED,
        /** The same for a limit of which nothing lapses. */
        CALL_OF_LEDGER,
        /** As a flood, of calls that are charged what they have cost. */
        FLOOD_SETTLED,
        /** A call under two limits. */
        CALL_OF_TWO,
        /** A call whose callback throws. */
        CALL_THROWING,
        /** Forgets what a key has used. */
        RESET,
        /** Connections of the node break. */
        CUT,
        /** Nothing arrives in either direction. */
        SILENCE,
        /** Questions arrive, replies do not. */
        NO_REPLIES,
        /** Replies of what was asked before arrive, questions do not. */
        NO_QUESTIONS,
        /** What is sent takes up to this much longer, in milliseconds. */
        SLOW,
        /** Connections break, and new ones are accepted and never answered. */
        DEAF,
        /** The server stands still, and then goes on with all that has arrived. */
        FREEZE,
        /** The server ends, and starts without keys. */
        RESTART_EMPTY,
        /** The server ends, and another one takes over with what it knew some milliseconds before. */
        FAILOVER,
        READ_ONLY,
        OUT_OF_MEMORY,
        FORGET_SCRIPTS,
        /** Scripts may not ask for the time any more; the end is that of the schedule. */
        TIME_REFUSED,
        /** The clock of the server steps by milliseconds. */
        SERVER_CLOCK,
        /** The wall clock of the node steps by milliseconds. */
        NODE_CLOCK,
        /** The process of the node stands still. */
        PAUSE,
        /** The process of the node ends. */
        KILL,
        /** Another node joins. */
        JOIN,
        /** The limit is changed on this node alone. */
        CHANGE,
        /** The handler of the log throws. */
        LOG_THROWS,
        /** Silence; what was sent within it arrives later than what new connections send, as TCP waits ever longer. */
        LOSS,
        /** The executor for callbacks of callers rejects them. */
        EXECUTOR_THROWS,
        /** The slot of a key moves to another server of the cluster. */
        MOVE_SLOT,
        /** A node changes for all nodes: the limit, with an even amount back to what it was, or the record of a caller. */
        CHANGE_FOR_ALL,
        /** The limit is closed on this node, and opened again after the time. */
        CLOSE,
        /** What is given back of a log arrives twice. */
        REFUNDS_TWICE;

        boolean isFault() {
            return compareTo(CALL_THROWING) > 0;
        }

        /** Many calls within a time. */
        boolean isFlood() {
            return this == FLOOD || this == FLOOD_SETTLED || this == MIXED_FLOOD || this == FLOOD_OF_TWOS;
        }
    }

    /** Whether a call in flight may wait for its place. */
    boolean waits() {
        return at / 1_000 % 3 == 0;
    }

    /** Whether a call would wait for long, but has no thread to wait with. */
    boolean isPatient() {
        return at / 1_000 % 3 == 1;
    }

    boolean isSettled() {
        return kind == Kind.CALL_SETTLED || kind == Kind.CALL_OF_LEDGER || kind == Kind.FLOOD_SETTLED;
    }

    /** When it is over. */
    long end() {
        return switch (kind) {
            case FLOOD,
                    MIXED_FLOOD,
                    LOSS,
                    EXECUTOR_THROWS,
                    MOVE_SLOT,
                    FLOOD_SETTLED,
                    CUT,
                    SILENCE,
                    NO_REPLIES,
                    NO_QUESTIONS,
                    SLOW,
                    DEAF,
                    FREEZE,
                    RESTART_EMPTY,
                    FAILOVER,
                    READ_ONLY,
                    OUT_OF_MEMORY,
                    PAUSE,
                    LOG_THROWS,
                    CLOSE,
                    REFUNDS_TWICE -> at + nanos;
            case FLOOD_OF_TWOS -> at + nanos + nanos / 2;
            // What lasts for long ends before all is quiet.
            default -> kind.isFault() || nanos < 1_000_000_000 ? at : at + nanos / 2 + (waits() ? nanos : 0);
        };
    }

    @Override
    public String toString() {
        String text = String.format(Locale.ROOT, "%9.3f ms  node %d  %s", at / 1e6, node, kind);
        if (!kind.isFault() || kind == Kind.RESET || kind == Kind.MOVE_SLOT) {
            text += " of key k" + key;
        }
        if (amount != 0) {
            text += ", " + amount;
        }
        return nanos == 0 ? text : text + String.format(Locale.ROOT, ", for %.3f ms", nanos / 1e6);
    }
}
