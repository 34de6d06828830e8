package io.ratelimited.redis.internals.limiter;

import io.ratelimited.core.Reservation;
import io.ratelimited.redis.internals.connection.ScriptArguments;

/** The place of a call in flight that the script of several limits takes together with the permits of the others. */
interface JointPlace extends Reservation {

    /** Appends the call to the arguments of the script. */
    void appendTo(ScriptArguments args);

    /** The script has taken it, with the permits of all others. */
    void admitted(ScriptReply reply);

    /** The script has failed: if it may have run, Redis has the end of the call. */
    void failedTogether(Throwable failure);
}
