package io.ratelimited.redis.internals.script;

import io.ratelimited.core.Algorithm.Family;
import io.ratelimited.core.InvalidLimitException;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Rate;
import io.ratelimited.core.Ticker;
import io.ratelimited.core.calendar.CalendarWindows;
import io.ratelimited.core.internals.SharedLimits;
import io.ratelimited.core.internals.memory.WarmUpShape;
import io.ratelimited.redis.internals.connection.ScriptArguments;
import java.math.BigInteger;
import java.time.Duration;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.List;

/**
 * A family of algorithms: makes the arguments of its script, and reads its replies. The Lua file of the family says more.
 */
public interface ScriptFamily {

    /** The letter of the family, as in {@code Script.java}. */
    char letter();

    /**
     * Appends the arguments of the limit.
     *
     * @param origin when the cluster began, in microseconds since 1970: a bucket that starts empty was empty then
     */
    void appendTo(ScriptArguments args, long origin);

    /** Returns the end of the name of a key: limits that count in another period, slots or zone have keys of their own. */
    default String keyEnd() {
        return "";
    }

    /** Permits that are stored at the most; 0 for families that store none. */
    default long stored() {
        return 0;
    }

    /**
     * The decision about one of equal calls; times in microseconds.
     *
     * @param outcome the wait, or minus the retry-after
     * @param mark the script needs its text to give the permits back
     */
    record Decided(long outcome, long remaining, long reset, Object mark) {}

    /**
     * Reads the decisions about equal calls, in their order.
     *
     * @param reply of the script, for these calls alone
     * @param permits of each call
     */
    default List<Decided> read(List<Object> reply, long permits, int calls) {
        List<Decided> all = new ArrayList<>(calls);
        for (int i = 0; i < calls; i++) {
            // Calls behind a refused one are refused like it.
            int at = Math.min(4 * i, reply.size() - 4);
            all.add(new Decided(
                    (Long) reply.get(at), (Long) reply.get(at + 1), (Long) reply.get(at + 2), reply.get(at + 3)));
        }
        return all;
    }

    /**
     * Returns the family that decides a limit.
     *
     * @throws InvalidLimitException when Redis does not support the limit
     */
    static ScriptFamily of(Limit limit, PermitCost cost, Ticker ticker) {
        SharedLimits.requireShareable(limit);
        return switch (limit.algorithm()) {
            case TOKEN_BUCKET, GCRA, SMOOTH_BURSTY, LEAKY_BUCKET -> VirtualTime.of(limit, cost);
            case WARM_UP -> WarmUp.of(limit);
            case FIXED_WINDOW -> FixedWindow.of(limit, ticker);
            case SLIDING_WINDOW -> new SlidingWindow(limit, (micros(limit.rate().period()) - 1) / limit.slots() + 1);
            case SLIDING_LOG -> new SlidingLog(limit);
            case CONCURRENCY -> new Concurrency(limit);
            case ADAPTIVE, DEFAULT -> throw new IllegalArgumentException("no algorithm: " + limit);
        };
    }

    /**
     * {@code virtual_time.lua}.
     *
     * @param paysForItself whether a call waits for its own permits, and not for those of the calls before it
     * @param meta the parameters on which the state depends, stored with it
     * @param stored whole permits that a bucket holds
     * @param depth its content, as a time
     * @param whole the time of the whole permits that it holds
     */
    record VirtualTime(
            Limit limit,
            PermitCost cost,
            boolean paysForItself,
            String meta,
            long stored,
            PermitCost.Time depth,
            PermitCost.Time whole)
            implements ScriptFamily {

        private static final long SECOND = 1_000_000;

        private static VirtualTime of(Limit limit, PermitCost cost) {
            boolean oneSecond = limit.storesOneSecond();
            long stored =
                    oneSecond ? permitsInASecond(limit) : limit.algorithm().queues() ? 0 : limit.burst();
            boolean fraction = oneSecond && micros(limit.rate().period()) != SECOND;
            String burst =
                    fraction ? "/s" : oneSecond || limit.burst() == limit.rate().permits() ? "" : "/" + limit.burst();
            PermitCost.Time depth = oneSecond ? new PermitCost.Time(SECOND, 0) : cost.of(stored);
            return new VirtualTime(
                    limit,
                    cost,
                    limit.algorithm().family() == Family.BUCKET,
                    rate(limit) + burst + " ",
                    stored,
                    depth,
                    fraction ? cost.of(stored) : depth);
        }

        private static long permitsInASecond(Limit limit) {
            return BigInteger.valueOf(limit.rate().permits())
                    .multiply(BigInteger.valueOf(1_000_000_000))
                    .divide(BigInteger.valueOf(limit.rate().period().toNanos()))
                    .longValueExact();
        }

        @Override
        public char letter() {
            return 'v';
        }

        @Override
        public void appendTo(ScriptArguments args, long origin) {
            boolean queues = limit.algorithm().queues();
            PermitCost.Time queue = queues ? cost.of(limit.burst()) : new PermitCost.Time(0, 0);
            args.addPacked(
                    meta,
                    paysForItself ? 0 : queues ? 2 : 1,
                    cost.one(),
                    depth.micros(),
                    depth.parts(),
                    cost.step(),
                    queue.micros(),
                    queue.parts(),
                    limit.algorithm().startsEmpty() ? Math.max(0, origin) : 0);
        }

        /** Identifies a grant for the script, to give it back; few are ever asked for theirs. */
        private record Mark(long w, long part, long epoch, PermitCost.Time cost, long instant) {

            @Override
            public String toString() {
                return w + "+" + part + '@' + epoch + '/' + cost.micros() + '+' + cost.parts() + '@' + instant;
            }
        }

        /**
         * Reads the number of calls that the script has admitted; the budget before and after each of them follows from V.
         */
        @Override
        public List<Decided> read(List<Object> reply, long permits, int calls) {
            long now = (Long) reply.get(0);
            long v = (Long) reply.get(1);
            long part = (Long) reply.get(2);
            long epoch = (Long) reply.get(3);
            long admitted = (Long) reply.get(4);
            long returned = reply.size() > 6 ? (Long) reply.get(6) : 0;
            long returnedPart = reply.size() > 6 ? (Long) reply.get(7) : 0;
            long one = cost.one();
            PermitCost.Time each = cost.of(permits);
            List<Decided> all = new ArrayList<>(calls);
            for (int i = 0; i < calls; i++) {
                long outcome;
                Object mark = "0";
                if (i < admitted) {
                    long found = until(v, part, now);
                    long carry = (part + each.parts()) / one;
                    v += each.micros() + carry;
                    part += each.parts() - carry * one;
                    long left = until(v, part, now);
                    outcome = Math.max(0, paysForItself ? left : found);
                    carry = (part + returnedPart) / one;
                    mark = new Mark(
                            v + returned + carry, part + returnedPart - carry * one, epoch, each, left > 0 ? 0 : now);
                } else {
                    outcome = (Long) reply.get(5);
                }
                long over = part + whole.parts();
                long reset = v + whole.micros() - now + (over > one ? 2 : over > 0 ? 1 : 0);
                all.add(new Decided(outcome, remaining(v, part, now), Math.max(0, reset), mark));
            }
            return all;
        }

        /** Microseconds until V, rounded up. */
        private static long until(long v, long part, long now) {
            return v - now + (part > 0 ? 1 : 0);
        }

        private long remaining(long v, long part, long now) {
            if (until(v, part, now) > 0) {
                return 0;
            }
            // Where the next caller pays, one call goes on credit beside the stored permits.
            return Math.min(stored, cost.permits(now - v, part)) + (paysForItself ? 0 : 1);
        }
    }

    /** {@code warm_up.lua}; nanoseconds as doubles, which both sides calculate in the same order. */
    record WarmUp(String meta, WarmUpShape shape) implements ScriptFamily {

        private static WarmUp of(Limit limit) {
            return new WarmUp(
                    rate(limit) + "/" + limit.warmup().toNanos() + "/" + limit.coldFactor(), WarmUpShape.of(limit));
        }

        @Override
        public char letter() {
            return 'w';
        }

        @Override
        public void appendTo(ScriptArguments args, long origin) {
            args.add(meta)
                    .add(shape.interval())
                    .add(shape.threshold())
                    .add(shape.maxStored())
                    .add(shape.slope())
                    .add(shape.nanosPerRefill());
        }
    }

    /**
     * {@code fixed_window.lua}.
     *
     * @param windows their definition, as the script reads it
     */
    record FixedWindow(Limit limit, String windows, ZoneOffsets offsets) implements ScriptFamily {

        private static FixedWindow of(Limit limit, Ticker ticker) {
            CalendarWindows calendar = limit.calendar();
            String windows = calendar == null
                    ? Long.toString(micros(limit.rate().period()))
                    : calendar.period().months() + "/" + calendar.month() + "/" + calendar.day();
            return new FixedWindow(limit, windows, new ZoneOffsets(limit, ticker));
        }

        @Override
        public char letter() {
            return 'f';
        }

        @Override
        public void appendTo(ScriptArguments args, long origin) {
            args.add(limit.rate().permits()).add(windows);
            offsets.arguments().forEach(args::add);
        }

        @Override
        public String keyEnd() {
            ZoneId zone = limit.zone().normalized();
            Rate rate = limit.rate();
            String begins =
                    rate.calendar() == null ? brief(micros(rate.period())) : rate.calendar() + "@" + limit.startsOn();
            return begins + (zone.equals(ZoneOffset.UTC) ? "" : "/" + zone);
        }
    }

    /**
     * {@code sliding_window.lua}.
     *
     * @param slot microseconds
     */
    record SlidingWindow(Limit limit, long slot) implements ScriptFamily {

        @Override
        public char letter() {
            return 'r';
        }

        @Override
        public void appendTo(ScriptArguments args, long origin) {
            args.add(limit.rate().permits()).add(slot).add(limit.slots() + 1);
        }

        @Override
        public String keyEnd() {
            return brief(slot) + "/" + limit.slots();
        }
    }

    /** {@code sliding_log.lua}. */
    record SlidingLog(Limit limit) implements ScriptFamily {

        @Override
        public char letter() {
            return 'q';
        }

        @Override
        public void appendTo(ScriptArguments args, long origin) {
            args.add(limit.rate().permits()).add(micros(limit.rate().period()));
        }

        @Override
        public String keyEnd() {
            return brief(micros(limit.rate().period()));
        }
    }

    /** {@code concurrency.lua}. */
    record Concurrency(Limit limit) implements ScriptFamily {

        /** A call without a lease of its own counts so long after its node was last heard of. */
        public static final Duration NODE_LEASE = Duration.ofSeconds(30);

        @Override
        public char letter() {
            return 'c';
        }

        @Override
        public void appendTo(ScriptArguments args, long origin) {
            Duration lease = limit.lease() == null ? NODE_LEASE : limit.lease();
            args.add(limit.maxConcurrent()).add(Math.min(PermitCost.FAR, micros(lease)));
        }
    }

    private static String rate(Limit limit) {
        return limit.rate().permits() + "/" + brief(limit.rate().period().toNanos());
    }

    /** A span of time in microseconds, rounded up. */
    static long micros(Duration duration) {
        return (duration.toNanos() - 1) / 1000 + 1;
    }

    /** In few characters, that Lua reads as a number. */
    private static String brief(long number) {
        String digits = Long.toString(number);
        int end = digits.length();
        while (end > 1 && digits.charAt(end - 1) == '0') {
            end--;
        }
        int zeros = digits.length() - end;
        return zeros > 2 ? digits.substring(0, end) + "e" + zeros : digits;
    }
}
