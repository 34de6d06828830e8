package io.ratelimited.core.internals.memory;

import io.ratelimited.core.Limit;
import java.util.ArrayList;
import java.util.List;

/** The sliding window: a list of grants with the slot each one fell into, added up anew for every decision. */
final class SlotsTwin implements Twin {

    /** @param before the last slot before this one, if the call has opened it and has to wait; else this one */
    private record Grant(long slot, long permits, long before) {}

    private final long limit;
    private final long slots;
    private final long slotNanos;
    private final long base;
    private final List<Grant> grants = new ArrayList<>();
    /** No call goes before this slot. */
    private long last;

    SlotsTwin(Limit limit, long now) {
        this.limit = limit.rate().permits();
        this.slots = limit.slots();
        this.slotNanos = (limit.rate().period().toNanos() - 1) / slots + 1;
        this.base = now;
    }

    private long slot(long now) {
        return Math.floorDiv(now - base, slotNanos);
    }

    /** Permits in the slots that a call in this slot may share the period with. */
    private long taken(long slot) {
        return grants.stream()
                .filter(grant -> grant.slot >= slot - slots && grant.slot <= slot)
                .mapToLong(Grant::permits)
                .sum();
    }

    private long slotFor(long permits, long now) {
        long slot = Math.max(last, slot(now));
        while (taken(slot) + permits > limit) {
            slot++;
        }
        return slot;
    }

    @Override
    public long decide(long permits, long now, long maxWait) {
        return permits > limit
                ? Cell.NEVER
                : Twin.outcome(Math.max(0, base + slotFor(permits, now) * slotNanos - now), maxWait);
    }

    @Override
    public void grant(long permits, long now) {
        long before = last;
        last = slotFor(permits, now);
        grants.add(new Grant(last, permits, last > slot(now) ? before : last));
    }

    @Override
    public void charge(long permits, long now) {
        last = Math.max(last, slot(now));
        grants.add(new Grant(last, permits, last));
    }

    @Override
    public void giveBack(int grant, long permits, long now) {
        Grant before = grants.get(grant);
        if (before.slot < last - slots) {
            return;
        }
        grants.set(grant, new Grant(before.slot, before.permits - permits, before.before));
        boolean left = grants.stream().noneMatch(other -> other.slot == last && other.permits > 0);
        last = before.slot == last && left ? before.before : last;
    }

    @Override
    public long remaining(long now) {
        return slot(now) < last ? 0 : Math.max(0, limit - taken(slot(now)));
    }
}
