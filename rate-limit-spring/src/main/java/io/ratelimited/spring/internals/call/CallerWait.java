package io.ratelimited.spring.internals.call;

/** Waits for the caller of one stream of bytes that is read or written without blocking: at most one at a time. Thread-safe. */
public final class CallerWait {

    private final CallerTime time;
    /** Whether waits that begin are put off. Guarded by this, as the fields below. */
    private boolean held;

    private boolean wanted;
    private boolean waits;

    /** No wait has begun. */
    public CallerWait(CallerTime time) {
        this.time = time;
    }

    /** A wait that begins is put off until {@link #release}. */
    public synchronized void hold() {
        held = true;
    }

    /** Waits may begin; one that was put off does. */
    public synchronized void release() {
        held = false;
        if (wanted) {
            begin();
        }
    }

    /** A wait begins, unless one has begun. */
    public synchronized void begin() {
        wanted = true;
        if (!waits && !held) {
            waits = true;
            time.begin();
        }
    }

    /** The wait ends, if one has begun. */
    public synchronized void end() {
        wanted = false;
        if (waits) {
            waits = false;
            time.end();
        }
    }
}
