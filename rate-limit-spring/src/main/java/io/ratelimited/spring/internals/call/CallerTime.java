package io.ratelimited.spring.internals.call;

import io.ratelimited.core.Ticker;

/**
 * The time that a call waits for its caller: for the bytes of a request, or until those of a response are taken. Waits at the
 * same time count once. Thread-safe.
 */
public final class CallerTime {

    private final Admission admission;
    private final Ticker ticker;
    /** Waits that have begun and not ended. Guarded by this, as the fields below. */
    private int waits;

    private long since;
    private boolean over;

    CallerTime(Admission admission, Ticker ticker) {
        this.admission = admission;
        this.ticker = ticker;
    }

    /** A wait begins, which the caller of this method will {@link #end}. */
    public synchronized void begin() {
        if (waits++ == 0 && !over) {
            since = ticker.nanos();
            admission.awaitCaller();
        }
    }

    /** A wait ends. */
    public synchronized void end() {
        if (--waits == 0 && !over) {
            admission.callerCame(ticker.nanos() - since);
        }
    }

    /** The call is about to end, perhaps while it waits. */
    public synchronized void close() {
        if (waits > 0 && !over) {
            admission.callerCame(ticker.nanos() - since);
        }
        over = true;
    }
}
