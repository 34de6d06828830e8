package io.ratelimited.core.internals.several;

import io.ratelimited.core.Reservation;

/** Permits in memory under a limit that blocks keys. */
public interface HeldPermits extends Reservation {

    /**
     * Notes that another limit may have the call give them back: until it has, or {@linkplain #keep keeps} them, calls that are
     * rejected because of them begin no block. Called before the lock is released under which they were taken.
     */
    void hold();
}
