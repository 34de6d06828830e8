package io.ratelimited.core;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.testing.ManualTicker;
import java.math.BigDecimal;
import java.math.RoundingMode;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import tools.jackson.databind.JsonNode;

/** One case of the file under one algorithm: its limit, its clock and its steps. What it does not know is an error. */
final class ConformanceCase {

    static final List<String> TIME_BASED = List.of(
            "token_bucket",
            "guava_smooth_bursty",
            "guava_smooth_warming_up",
            "leaky_bucket_pacing",
            "leaky_bucket_meter",
            "fixed_window",
            "sliding_window_slots",
            "sliding_window_log");

    private static final Map<String, Algorithm> ALGORITHMS = Map.of(
            "token_bucket", Algorithm.TOKEN_BUCKET,
            "guava_smooth_bursty", Algorithm.SMOOTH_BURSTY,
            "guava_smooth_warming_up", Algorithm.WARM_UP,
            "leaky_bucket_pacing", Algorithm.LEAKY_BUCKET,
            "leaky_bucket_meter", Algorithm.GCRA,
            "fixed_window", Algorithm.FIXED_WINDOW,
            "sliding_window_slots", Algorithm.SLIDING_WINDOW,
            "sliding_window_log", Algorithm.SLIDING_LOG,
            "concurrency", Algorithm.CONCURRENCY);

    private static final Set<String> STEP_FIELDS = Set.of(
            "op",
            "at_ms",
            "at_ns",
            "ms",
            "ns",
            "permits",
            "max_wait_ms",
            "max_wait_ns",
            "repeat",
            "rate_per_s",
            "burst",
            "expect",
            "expect_one_of",
            "id",
            "of",
            "note");
    static final double MILLI = 1e6;
    static final long ENDLESS = Long.MAX_VALUE;

    private final JsonNode node;
    private final JsonNode params;
    private final Algorithm algorithm;
    private final ConformanceLimit limits;
    private final long base;
    private final double tolerance;
    private final ManualTicker ticker;
    private final InMemoryRateLimiter limiter;
    private final Map<String, Reservation> reservations = new HashMap<>();
    private Reservation latest;

    ConformanceCase(JsonNode node, String algorithm, long base) {
        this.node = node;
        this.params = node.path("params");
        this.algorithm = ALGORITHMS.get(algorithm);
        assertThat(this.algorithm).as("algorithm " + algorithm).isNotNull();
        this.base = base;
        this.tolerance = Math.max(node.path("tolerance_ms").asDouble(0) * MILLI, 0);
        this.limits = new ConformanceLimit(node, this.algorithm);
        Limit limit = limits.limit();
        long created = createdAt();
        Past past = past(limit, created);
        this.ticker = new ManualTicker(
                base + created - past.nanos, Instant.EPOCH.plusNanos(created).minusNanos(past.nanos));
        this.limiter = new InMemoryRateLimiter(limit, ticker, 100);
        for (long i = 0; i < past.permits; i++) {
            assertThat(limiter.reserve(null, 1, ENDLESS).isRefused()).isFalse();
        }
        ticker.advanceNanos(past.nanos);
    }

    JsonNode params() {
        return params;
    }

    JsonNode expected() {
        return node.path("expect");
    }

    String id() {
        return node.path("id").asString();
    }

    Algorithm algorithm() {
        return algorithm;
    }

    ManualTicker ticker() {
        return ticker;
    }

    InMemoryRateLimiter limiter() {
        return limiter;
    }

    /** The longest wait of the case, nanoseconds. */
    long maxWait() {
        return maxWait(params, ENDLESS);
    }

    /** The clock of a case starts at 0, unless the case begins in a state, which is that at its first step. */
    private long createdAt() {
        if (params.has("created_at_ms")) {
            return nanos(params.path("created_at_ms"));
        }
        boolean begun = params.has("initial_tokens") || params.has("initial_last_pass_ms");
        return begun ? at(node.path("steps").path(0), 0) : 0;
    }

    private static long at(JsonNode step, long otherwise) {
        if (step.has("at_ns")) {
            return step.path("at_ns").asLong();
        }
        return step.has("at_ms") ? nanos(step.path("at_ms")) : otherwise;
    }

    static long nanos(JsonNode millis) {
        return millis.decimalValue().movePointRight(6).longValueExact();
    }

    static long maxWait(JsonNode holder, long otherwise) {
        if (holder.has("max_wait_ns")) {
            return holder.path("max_wait_ns").asLong();
        }
        return holder.has("max_wait_ms") ? nanos(holder.path("max_wait_ms")) : otherwise;
    }

    /** Permits that bring a new limiter to the state in which the case begins, and how much earlier they are taken. */
    private record Past(long permits, long nanos) {}

    private Past past(Limit limit, long now) {
        if (params.has("initial_tokens")) {
            BigDecimal interval = BigDecimal.valueOf(limit.rate().period().toNanos())
                    .divide(BigDecimal.valueOf(limit.rate().permits()), 9, RoundingMode.HALF_EVEN);
            BigDecimal spent = BigDecimal.valueOf(limit.burst())
                    .subtract(params.path("initial_tokens").decimalValue());
            BigDecimal whole = spent.setScale(0, RoundingMode.CEILING);
            BigDecimal refilled = interval.multiply(whole.subtract(spent)).setScale(0, RoundingMode.HALF_EVEN);
            return new Past(whole.longValueExact(), refilled.longValueExact());
        }
        if (params.has("initial_last_pass_ms")) {
            long interval = limit.rate().period().toNanos() / limit.rate().permits();
            long free = nanos(params.path("initial_last_pass_ms")) + interval - now;
            long passes = Math.max(1, Math.floorDiv(free - 1, interval) + 1);
            return new Past(passes, passes * interval - free);
        }
        return new Past(0, 0);
    }

    void run() {
        int index = 0;
        int passed = 0;
        int blocked = 0;
        List<Double> waits = new ArrayList<>();
        for (JsonNode step : node.path("steps")) {
            String where = id() + " (" + algorithm + "), step " + index + " " + step;
            assertThat(STEP_FIELDS).as(where).containsAll(step.propertyNames());
            if (step.has("at_ms") || step.has("at_ns")) {
                ticker.advanceNanos(base + at(step, 0) - ticker.nanos());
            }
            for (int i = 0; i < step.path("repeat").asInt(1); i++) {
                Outcome outcome = perform(step, index, where);
                if (outcome == null) {
                    continue;
                }
                passed += outcome.accepted ? 1 : 0;
                blocked += outcome.accepted ? 0 : 1;
                checkStep(step, outcome, where);
                if (step.path("op").asString().equals("acquire")) {
                    waits.add(outcome.waitNanos / 1e9);
                }
                if (node.path("mode").asString().equals("blocking")) {
                    ticker.advanceNanos(outcome.waitNanos);
                }
            }
            index++;
        }
        if (params.has("expected_pass")) {
            assertThat(passed).isEqualTo(params.path("expected_pass").asInt());
            assertThat(blocked).isEqualTo(params.path("expected_block").asInt());
        }
        for (int i = 0; i < node.path("published_waits_s").size() && i < waits.size(); i++) {
            double published = node.path("published_waits_s").get(i).asDouble();
            assertThat(waits.get(i)).as(id() + ", published wait " + i).isCloseTo(published, within(0.0051));
        }
    }

    /** Makes the call of a step; null for a step that is none. */
    private Outcome perform(JsonNode step, int index, String where) {
        long permits = step.path("permits").asLong(1);
        switch (step.path("op").asString()) {
            case "sleep" -> {
                ticker.advanceNanos(step.has("ns") ? step.path("ns").asLong() : nanos(step.path("ms")));
                return null;
            }
            case "set_rate" -> {
                setRate(step);
                return null;
            }
            case "cancel" -> {
                Reservation chosen =
                        step.has("of") ? reservations.get(step.path("of").asString()) : latest;
                assertThat(chosen).as(where).isNotNull();
                chosen.cancel();
                return null;
            }
            case "try_acquire" -> {
                return outcome(permits, maxWait(step, 0), false);
            }
            case "reserve", "acquire" -> {
                Outcome outcome = outcome(permits, maxWait(step, maxWait()), true);
                if (outcome.accepted) {
                    latest = outcome.reservation;
                    reservations.put(String.valueOf(index), latest);
                    reservations.put(step.path("id").asString(String.valueOf(index)), latest);
                }
                return outcome;
            }
            default -> throw new AssertionError("unknown op: " + where);
        }
    }

    private void setRate(JsonNode step) {
        Limit old = limiter.limit();
        Limit.Builder changed = old.toBuilder().rate(limits.rate(step));
        if (step.has("burst")) {
            changed.burst(step.path("burst").asLong());
        } else if (algorithm == Algorithm.SMOOTH_BURSTY && params.has("max_burst_s")) {
            limits.smoothBurst(changed, limits.rate(step));
        }
        limiter.update(changed.build());
    }

    /** What a call was told, with the tokens around it; all times in nanoseconds. */
    private record Outcome(
            Reservation reservation,
            boolean accepted,
            long waitNanos,
            Decision decision,
            double tokensBefore,
            double tokensAfter,
            long maxWait) {}

    private Outcome outcome(long permits, long maxWait, boolean reserve) {
        double before = tokens();
        Decision told = limiter.peek(null, permits, maxWait);
        Reservation reservation = null;
        boolean accepted;
        long wait = 0;
        if (reserve || maxWait > 0 || algorithm == Algorithm.CONCURRENCY) {
            reservation = limiter.reserve(null, permits, maxWait);
            accepted = !reservation.isRefused();
            wait = reservation.waitNanos();
        } else {
            accepted = limiter.tryAcquire(null, permits);
        }
        assertThat(told.admitted()).as("peek tells what becomes of the call").isEqualTo(accepted);
        return new Outcome(reservation, accepted, wait, told, before, tokens(), maxWait);
    }

    /** Tokens with their fraction, from the time until the bucket is full; whole ones are what {@code remaining} says. */
    private double tokens() {
        if (algorithm != Algorithm.TOKEN_BUCKET && algorithm != Algorithm.GCRA) {
            return Double.NaN;
        }
        Limit limit = limiter.limit();
        Decision now = limiter.peek(null, 1, 0);
        double perNano = limit.rate().permits() / (double) limit.rate().period().toNanos();
        double tokens = limit.burst() - now.reset().toNanos() * perNano;
        assertThat((double) now.remaining()).isBetween(Math.floor(tokens - 1e-6), Math.max(0, tokens + 1e-6));
        return tokens;
    }

    private void checkStep(JsonNode step, Outcome outcome, String where) {
        if (step.has("expect")) {
            check(step.path("expect"), outcome, where);
        }
        if (step.has("expect_one_of")) {
            List<AssertionError> misses = new ArrayList<>();
            for (JsonNode choice : step.path("expect_one_of")) {
                try {
                    check(choice, outcome, where);
                } catch (AssertionError ex) {
                    misses.add(ex);
                }
            }
            assertThat(misses)
                    .as(where)
                    .hasSizeLessThan(step.path("expect_one_of").size());
        }
    }

    private void check(JsonNode expected, Outcome outcome, String where) {
        if (expected.has("wait_ms") && !expected.has("accepted")) {
            assertThat(outcome.accepted).as(where).isTrue();
        }
        for (Map.Entry<String, JsonNode> entry : expected.properties()) {
            String as = where + ": " + entry.getKey();
            JsonNode value = entry.getValue();
            switch (entry.getKey()) {
                case "accepted" -> assertThat(outcome.accepted).as(as).isEqualTo(value.asBoolean());
                case "wait_ms" -> closeTo(as, outcome.waitNanos, value.asDouble() * MILLI);
                case "wait_ns" -> closeTo(as, outcome.waitNanos, value.asDouble());
                case "would_wait_ms" -> closeTo(as, wouldWait(outcome), value.asDouble() * MILLI);
                case "retry_after_ms" -> retryAfter(as, outcome, value, MILLI);
                case "retry_after_ns" -> retryAfter(as, outcome, value, 1);
                case "tokens_before" -> tokens(as, outcome.tokensBefore, value);
                case "tokens_after" -> tokens(as, outcome.tokensAfter, value);
                case "level" -> tokens(as, limiter.limit().burst() - outcome.tokensAfter, value);
                case "remaining" ->
                    assertThat(limiter.peek(null, 1, 0).remaining()).as(as).isEqualTo(value.asLong());
                case "reset_ms" -> closeTo(as, limiter.peek(null, 1, 0).reset().toNanos(), value.asDouble() * MILLI);
                default -> throw new AssertionError("unknown expectation: " + as);
            }
        }
    }

    private static void tokens(String as, double actual, JsonNode expected) {
        assertThat(actual).as(as).isCloseTo(expected.asDouble(), within(2e-6));
    }

    private void retryAfter(String as, Outcome outcome, JsonNode value, double unit) {
        if (value.isNull()) {
            assertThat(outcome.decision.retryAfter()).as(as).isNull();
            assertThat(outcome.decision.never()).as(as).isTrue();
        } else {
            assertThat(outcome.decision.retryAfter()).as(as).isNotNull();
            closeTo(as, outcome.decision.retryAfter().toNanos(), value.asDouble() * unit);
        }
    }

    /** The wait of a refused call: its retry-after, and the longest wait that would have been accepted then. */
    private long wouldWait(Outcome outcome) {
        long longest = outcome.maxWait;
        if (algorithm == Algorithm.LEAKY_BUCKET) {
            Limit limit = limiter.limit();
            double full = (double) limit.burst()
                    * limit.rate().period().toNanos()
                    / limit.rate().permits();
            longest = Math.min(longest, (long) Math.ceil(full) - 1);
        }
        return outcome.decision.retryAfter().toNanos() + longest;
    }

    private void closeTo(String as, long actual, double expected) {
        assertThat((double) actual).as(as).isCloseTo(expected, within(tolerance));
    }
}
