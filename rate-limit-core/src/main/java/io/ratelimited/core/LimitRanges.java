package io.ratelimited.core;

import io.ratelimited.core.Limit.Attribute;
import io.ratelimited.core.calendar.CalendarWindows;
import java.math.BigInteger;
import java.time.Duration;
import java.time.ZoneOffset;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/** Checks the parameters of a limit: which it must and may have, and their ranges. */
final class LimitRanges {

    private static final Duration LONGEST_WARMUP = Duration.ofDays(365);
    private static final Duration LONGEST_BLOCK = Duration.ofDays(365);
    private static final Duration LONGEST_LEASE = Duration.ofDays(3_650);
    private static final Duration LONGEST_LATE = Duration.ofDays(1);
    /** Classes of calls: as many as a person can order. */
    private static final int MOST_CLASSES = 16;

    private LimitRanges() {}

    /** @throws InvalidLimitException when a parameter is missing, out of range, or has no meaning for the algorithm */
    static void check(Limit limit) {
        Algorithm algorithm = limit.algorithm();
        require(!limit.name().isBlank(), "name", "must not be blank", '"' + limit.name() + '"');
        require(
                algorithm != Algorithm.DEFAULT,
                "algorithm",
                "must be one of " + Algorithm.all() + ", because only @RateLimited can leave it open",
                algorithm);
        // What the algorithm does not support first: with maxConcurrent alone, the algorithm is missing, not a rate.
        for (Attribute attribute : Attribute.values()) {
            Object value = limit.stated(attribute);
            if (value != null && !algorithm.uses(attribute)) {
                throw meaningless(algorithm, attribute, value);
            }
        }
        for (Attribute attribute : Attribute.values()) {
            if (limit.stated(attribute) == null && attribute.isRequiredBy(algorithm)) {
                throw new InvalidLimitException(
                        attribute.label(), "is missing, but " + algorithm + " needs it. Example: " + attribute.example);
            }
        }
        if (limit.stated(Attribute.BURST) != null) {
            checkBurst(limit.burst(), algorithm.storesOneSecond() ? 0 : 1, limit.rate());
        }
        Duration warmup = limit.warmup();
        require(
                !warmup.isNegative() && warmup.compareTo(LONGEST_WARMUP) <= 0,
                "warmup",
                "must be from 0s to 365d",
                warmup);
        double cold = limit.coldFactor();
        require(cold >= 1 && cold <= 1000, "coldFactor", "must be from 1 to 1000", cold);
        require(limit.maxConcurrent() >= 0, "maxConcurrent", "must be 0 or more", limit.maxConcurrent());
        require(
                limit.slots() >= 1 && limit.slots() <= 1_000,
                "slots",
                "must be from 1 to 1000 (use SLIDING_LOG for more)",
                limit.slots());
        Duration lease = limit.lease();
        require(
                lease == null || !(lease.isNegative() || lease.isZero() || lease.compareTo(LONGEST_LEASE) > 0),
                "lease",
                "must be longer than 0s and at most 3650d",
                lease);
        checkBlock(limit);
        require(
                limit.stated(Attribute.MIN_CONCURRENT) == null
                        || (limit.minConcurrent() >= 1 && limit.minConcurrent() <= limit.maxConcurrent()),
                "minConcurrent",
                "must be from 1 to maxConcurrent, which is " + limit.maxConcurrent(),
                limit.minConcurrent());
        Duration late = limit.lateAfter();
        require(
                late == null || !(late.isNegative() || late.isZero() || late.compareTo(LONGEST_LATE) > 0),
                "lateAfter",
                "must be longer than 0s and at most 1d",
                late);
        checkPriorities(limit.priorities());
        checkShares(limit.shares(), limit.priorities());
        require(limit.maxWaiting() >= 0, "maxWaiting", "must be 0 or more", limit.maxWaiting());
        if (limit.stated(Attribute.RATE) != null) {
            String flaw = algorithm.flaw(limit.rate());
            require(flaw == null, "rate", String.valueOf(flaw), limit.rate());
            if (limit.stated(Attribute.STARTS_ON) instanceof String day) {
                checkFirstDay(day, limit.rate());
            }
        }
    }

    private static void checkBlock(Limit limit) {
        double factor = limit.blockFactor();
        require(factor >= 1 && factor <= 1000, "blockFactor", "must be from 1 to 1000", factor);
        Duration block = limit.block();
        if (block == null) {
            for (Attribute attribute : new Attribute[] {Attribute.BLOCK_FACTOR, Attribute.BLOCK_MAX}) {
                Object value = limit.stated(attribute);
                require(
                        value == null,
                        attribute.label(),
                        "has no effect without block; set block, or remove it",
                        value);
            }
            return;
        }
        require(
                !limit.isCharged() || Limit.canBlockByCharge(limit.algorithm()),
                "block",
                limit.algorithm()
                        + " does not support block with a charge, because the first charged call leaves no permit;"
                        + " use TOKEN_BUCKET, GCRA, FIXED_WINDOW, SLIDING_WINDOW or SLIDING_LOG, or remove it",
                block);
        require(!block.isNegative() && !block.isZero(), "block", "must be longer than 0s", block);
        require(block.compareTo(LONGEST_BLOCK) <= 0, "block", "must be at most 365d", block);
        Duration max = limit.blockMax();
        require(
                max.compareTo(block) >= 0 && max.compareTo(LONGEST_BLOCK) <= 0,
                "blockMax",
                "must be from block, " + Rate.text(block) + ", to 365d",
                max);
    }

    static InvalidLimitException meaningless(Algorithm algorithm, Attribute attribute, Object value) {
        return new InvalidLimitException(
                attribute.label(),
                "is " + shown(value) + ", but " + algorithm + " does not support it; "
                        + switch (attribute) {
                            case RATE -> "use maxConcurrent instead";
                            case MAX_CONCURRENT -> "remove it, or use CONCURRENCY";
                            default -> "remove it";
                        });
    }

    private static void checkPriorities(List<String> priorities) {
        require(priorities.size() <= MOST_CLASSES, "priorities", "must be at most " + MOST_CLASSES, priorities);
        require(
                priorities.stream().noneMatch(String::isBlank) && new HashSet<>(priorities).size() == priorities.size(),
                "priorities",
                "must be different names, none of them blank",
                priorities);
    }

    private static void checkShares(Map<String, Double> shares, List<String> priorities) {
        Map<String, Double> sorted = new TreeMap<>(shares);
        sorted.forEach((name, share) -> {
            require(priorities.contains(name), "shares", "must be one of the priorities " + priorities, name);
            require(share > 0 && share < 1, "shares", "must be above 0% and below 100%", name + " " + share);
        });
        double sum = sorted.values().stream().mapToDouble(Double::doubleValue).sum();
        require(sum < 1, "shares", "must be less than 100% in total", sorted);
    }

    /** A tier without windows, closed or unlimited, may have the first day of its limit. */
    private static void checkFirstDay(String day, Rate rate) {
        if (rate.calendar() != null) {
            try {
                CalendarWindows.of(rate.calendar(), day, ZoneOffset.UTC);
            } catch (IllegalArgumentException ex) {
                throw new InvalidLimitException("startsOn", String.valueOf(ex.getMessage()), ex);
            }
        } else if (!rate.isClosed() && !rate.isUnlimited()) {
            throw new InvalidLimitException(
                    "startsOn",
                    "is " + day + ", but a rate of " + rate
                            + " does not support it; remove it, or use a rate per week, month or year");
        }
    }

    /** A bucket has to be full again within {@link Limit#LONGEST}. */
    private static void checkBurst(long burst, long least, Rate rate) {
        require(burst >= least, "burst", "must be at least " + least, burst);
        require(burst <= 1_000_000_000_000_000L, "burst", "must be at most 10^15", burst);
        if (!rate.isClosed() && !rate.isUnlimited()) {
            BigInteger needed = BigInteger.valueOf(burst)
                    .multiply(BigInteger.valueOf(rate.period().toNanos()));
            BigInteger range = BigInteger.valueOf(rate.permits()).multiply(BigInteger.valueOf(Limit.LONGEST));
            require(needed.compareTo(range) < 0, "burst", "must be refilled within 36 years at rate " + rate, burst);
        }
    }

    private static void require(boolean condition, String attribute, String rule, @Nullable Object value) {
        if (!condition) {
            throw new InvalidLimitException(attribute, "is " + shown(value) + ", but " + rule);
        }
    }

    private static @Nullable Object shown(@Nullable Object value) {
        return value instanceof Duration duration ? Rate.text(duration) : value;
    }
}
