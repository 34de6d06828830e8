package io.ratelimited.core;

import io.ratelimited.core.Algorithm.Attribute;
import java.math.BigInteger;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/** Which parameters a limit needs, may have and must not have, and their ranges. */
final class LimitRules {

    private static final Duration LONGEST_WARMUP = Duration.ofDays(365);

    private LimitRules() {}

    /** See {@link Limit.Builder#build}. */
    static void check(Limit.Builder set) {
        require(!set.name.isBlank(), "name must not be blank", "\"" + set.name + "\"");
        require(
                set.algorithm != Algorithm.DEFAULT,
                "algorithm must be one of " + Algorithm.all() + ", since only @RateLimited can leave it open",
                set.algorithm);
        checkUse(set.algorithm, Attribute.RATE, set.rate, "100/s");
        checkUse(set.algorithm, Attribute.BURST, set.burst, null);
        checkUse(set.algorithm, Attribute.WARMUP, set.warmup, "10s");
        checkUse(set.algorithm, Attribute.COLD_FACTOR, set.coldFactor, null);
        checkUse(set.algorithm, Attribute.MAX_CONCURRENT, set.maxConcurrent, "20");
        checkUse(set.algorithm, Attribute.ZONE, set.zone, null);
        checkUse(set.algorithm, Attribute.SLOTS, set.slots, null);
        checkUse(set.algorithm, Attribute.LEASE, set.lease, null);
        if (set.burst != null) {
            checkBurst(set.burst, set.rate, set.algorithm.storesOneSecond() ? 0 : 1);
        }
        Duration warmup = set.warmup;
        require(
                warmup == null || (!warmup.isNegative() && warmup.compareTo(LONGEST_WARMUP) <= 0),
                "warmup must be from 0s to 365d",
                warmup);
        Double cold = set.coldFactor;
        require(cold == null || (cold >= 1 && cold <= 1000), "coldFactor must be from 1 to 1000", cold);
        require(
                set.maxConcurrent == null || set.maxConcurrent >= 0,
                "maxConcurrent must be 0 or more",
                set.maxConcurrent);
        Integer slots = set.slots;
        require(slots == null || (slots >= 1 && slots <= 10_000), "slots must be from 1 to 10000", slots);
        Duration lease = set.lease;
        require(lease == null || !(lease.isNegative() || lease.isZero()), "lease must be longer than 0s", lease);
        require(set.maxWaiting >= 0, "maxWaiting must be 0 or more", set.maxWaiting);
        String flaw = set.rate == null ? null : set.algorithm.flaw(set.rate);
        require(flaw == null, String.valueOf(flaw), set.rate);
    }

    /** @param example a value of an attribute that has no default; null if it has one */
    private static void checkUse(
            Algorithm algorithm, Attribute attribute, @Nullable Object value, @Nullable String example) {
        boolean used = algorithm.uses(attribute);
        if (value != null && !used) {
            throw new IllegalArgumentException(
                    attribute.label() + " has no meaning for " + algorithm + ": " + value + "; remove it");
        }
        if (value == null && used && example != null) {
            throw new IllegalArgumentException(
                    attribute.label() + " is missing: " + algorithm + " needs one, such as " + example);
        }
    }

    /** A bucket has to be full again within {@link Limit#LONGEST}. */
    private static void checkBurst(long burst, @Nullable Rate rate, long least) {
        require(burst >= least, "burst must be at least " + least, burst);
        require(burst <= 1_000_000_000_000_000L, "burst must be at most 10^15", burst);
        if (rate != null && !rate.isClosed() && !rate.isUnlimited()) {
            BigInteger needed = BigInteger.valueOf(burst)
                    .multiply(BigInteger.valueOf(rate.period().toNanos()));
            BigInteger range = BigInteger.valueOf(rate.permits()).multiply(BigInteger.valueOf(Limit.LONGEST));
            require(needed.compareTo(range) < 0, "burst must be refilled within 36 years at rate " + rate, burst);
        }
    }

    private static void require(boolean condition, String rule, @Nullable Object value) {
        if (!condition) {
            throw new IllegalArgumentException(rule + ": " + value);
        }
    }
}
