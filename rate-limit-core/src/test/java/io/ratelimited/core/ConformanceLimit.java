package io.ratelimited.core;

import static org.assertj.core.api.Assertions.assertThat;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.math.RoundingMode;
import java.time.Duration;
import org.junit.jupiter.api.Assumptions;
import tools.jackson.databind.JsonNode;

/** The limit that a case of the file describes by its parameters. */
final class ConformanceLimit {

    private static final long SECOND = 1_000_000_000L;

    private final JsonNode node;
    private final JsonNode params;
    private final Algorithm algorithm;
    private final boolean anyTimeBased;

    ConformanceLimit(JsonNode node, Algorithm algorithm) {
        this.node = node;
        this.params = node.path("params");
        this.algorithm = algorithm;
        this.anyTimeBased = node.path("algorithm").asString().equals("any_time_based");
    }

    Limit limit() {
        Limit.Builder builder = Limit.of(node.path("id").asString(), algorithm);
        if (algorithm == Algorithm.CONCURRENCY) {
            return builder.maxConcurrent(params.path("max_concurrent").asInt()).build();
        }
        Rate rate = rate(params);
        builder.rate(rate);
        switch (algorithm) {
            case TOKEN_BUCKET, GCRA -> {
                if (params.has("burst")) {
                    builder.burst(params.path("burst").asLong());
                }
            }
            case LEAKY_BUCKET -> builder.burst(queue(rate));
            case SMOOTH_BURSTY -> smoothBurst(builder, rate);
            case WARM_UP -> {
                builder.warmup(Duration.ofNanos(
                        params.has("warmup_ms") ? ConformanceCase.nanos(params.path("warmup_ms")) : 0));
                builder.coldFactor(params.path("cold_factor").asDouble(3));
            }
            case SLIDING_WINDOW -> {
                if (anyTimeBased) {
                    // The period and one slot, which counts in full, are together the time of the case.
                    builder.slots(9)
                            .rate(new Rate(
                                    rate.permits(),
                                    rate.period().multipliedBy(9).dividedBy(10)));
                } else {
                    builder.slots(params.path("slots").asInt(10));
                }
            }
            default -> {}
        }
        return builder.build();
    }

    void smoothBurst(Limit.Builder builder, Rate rate) {
        if (params.has("max_burst_s")) {
            BigDecimal perSecond = BigDecimal.valueOf(rate.permits())
                    .multiply(BigDecimal.valueOf(SECOND))
                    .divide(BigDecimal.valueOf(rate.period().toNanos()), 9, RoundingMode.HALF_EVEN);
            BigDecimal burst = perSecond.multiply(params.path("max_burst_s").decimalValue());
            Assumptions.assumeTrue(
                    burst.compareTo(BigDecimal.ONE) < 0
                            || burst.stripTrailingZeros().scale() <= 0,
                    "SMOOTH_BURSTY stores whole permits, the case asks for " + burst);
            builder.burst(burst.longValue());
        } else if (params.has("burst")) {
            // Where the next caller pays, one call goes on credit beside the stored permits.
            long stored = params.path("burst").asLong();
            builder.burst(anyTimeBased ? stored - 1 : stored);
        }
    }

    /** The capacity of a queue: as stated, or too long to matter beside the longest wait. */
    private long queue(Rate rate) {
        double interval = (double) rate.period().toNanos() / rate.permits();
        if (params.has("capacity")) {
            return params.path("capacity").asLong();
        }
        if (params.has("reject_when")) {
            String rule = params.path("reject_when").asString();
            assertThat(rule).matches("wait_ms >= [0-9.]+");
            return Math.round(
                    Double.parseDouble(rule.substring("wait_ms >= ".length())) * ConformanceCase.MILLI / interval);
        }
        long plenty = params.has("max_wait_ms") ? (long) (ConformanceCase.maxWait(params, 0) / interval) + 100 : 10_000;
        return Math.max(plenty, params.path("burst").asLong(1));
    }

    /** Of {@code rate_per_s} (a number, or a fraction as text), {@code interval_ms}, or a limit in a window. */
    Rate rate(JsonNode holder) {
        if (holder.has("interval_ms")) {
            return new Rate(1, Duration.ofNanos(ConformanceCase.nanos(holder.path("interval_ms"))));
        }
        if (holder.has("limit")) {
            return new Rate(
                    holder.path("limit").asLong(), Duration.ofNanos(ConformanceCase.nanos(holder.path("window_ms"))));
        }
        if (holder.has("burst_range")) {
            return new Rate(holder.path("burst_range").get(1).asLong(), Duration.ofSeconds(1));
        }
        String[] parts = holder.path("rate_per_s").asString().split("/", -1);
        BigDecimal over = new BigDecimal(parts[0]);
        BigDecimal under = parts.length > 1 ? new BigDecimal(parts[1]) : BigDecimal.ONE;
        int scale = Math.max(0, Math.max(over.scale(), under.scale()));
        BigInteger permits = over.movePointRight(scale).toBigIntegerExact();
        BigInteger seconds = under.movePointRight(scale).toBigIntegerExact();
        BigInteger common = permits.gcd(seconds);
        long number = permits.divide(common).longValueExact();
        Duration period = Duration.ofSeconds(seconds.divide(common).longValueExact());
        if (algorithm == Algorithm.FIXED_WINDOW
                || algorithm == Algorithm.SLIDING_WINDOW
                || algorithm == Algorithm.SLIDING_LOG) {
            long burst = params.path("burst").asLong(number);
            return new Rate(burst, period.multipliedBy(burst).dividedBy(number));
        }
        return new Rate(number, period);
    }
}
