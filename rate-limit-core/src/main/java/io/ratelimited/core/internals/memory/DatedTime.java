package io.ratelimited.core.internals.memory;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;

/**
 * A cell of a bucket whose reservations overlap. It knows when permits were used last. So a call that is settled for less
 * refunds the room that it made, although other calls came behind it.
 */
class DatedTime extends VirtualTime {

    private static final VarHandle LATEST;

    static {
        try {
            LATEST = MethodHandles.lookup().findVarHandle(DatedTime.class, "latest", long.class);
        } catch (ReflectiveOperationException ex) {
            throw new ExceptionInInitializerError(ex);
        }
    }

    private final VirtualTime origin;
    /** The latest time, in units, at which permits were or will be used. Written before the permits are taken. */
    private volatile long latest;

    DatedTime(VirtualTime before, long zeroAt, long latest) {
        super(before.parameters(), zeroAt);
        this.origin = before.origin();
        this.latest = latest;
    }

    @Override
    final VirtualTime origin() {
        return origin;
    }

    @Override
    final long latest(long units) {
        return Math.min(latest, units);
    }

    @Override
    final void use(long instant) {
        for (long known = latest; instant > known && !LATEST.compareAndSet(this, known, instant); ) {
            known = latest;
        }
    }

    @Override
    long take(long permits, long now) {
        return reserve(permits, now, 0, null);
    }

    @Override
    final boolean needsDate(Grant grant) {
        return false;
    }
}
