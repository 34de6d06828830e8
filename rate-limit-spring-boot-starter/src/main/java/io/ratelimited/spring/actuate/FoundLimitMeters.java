package io.ratelimited.spring.actuate;

import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.TimeGauge;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.overload.FoundLimit;
import io.ratelimited.spring.internals.limit.ConfiguredLimit;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.ToDoubleFunction;

/** The meters of a limit that finds itself; those of its tiers are added up. */
final class FoundLimitMeters {

    /** The class of calls where a limit has no classes. */
    private static final String NO_CLASS = "none";

    private FoundLimitMeters() {}

    static Meter registerBaseTime(MeterRegistry registry, ConfiguredLimit limit) {
        return TimeGauge.builder("rate.limit.base.time", limit, TimeUnit.NANOSECONDS, FoundLimitMeters::baseNanos)
                .description("Baseline latency: that of a call that waits for no other")
                .tag("limit", limit.name())
                .register(registry);
    }

    /** The names of the classes that refusals are counted by. */
    static List<String> classes(ConfiguredLimit limit) {
        List<String> classes = limit.limit().priorities();
        return classes.isEmpty() ? List.of(NO_CLASS) : classes;
    }

    static Meter registerRefused(MeterRegistry registry, ConfiguredLimit limit, String name) {
        return FunctionCounter.builder("rate.limit.refused", limit, refusing -> refused(refusing, name))
                .description("Rejected calls, by priority")
                .tag("limit", limit.name())
                .tag("priority", name)
                .register(registry);
    }

    static double sum(ConfiguredLimit limit, ToDoubleFunction<FoundLimit> value) {
        return limit.limiters().stream()
                .map(RateLimiter::foundLimit)
                .mapToDouble(found -> found == null ? 0 : value.applyAsDouble(found))
                .sum();
    }

    /** Not a number while nothing is known. */
    private static double baseNanos(ConfiguredLimit limit) {
        FoundLimit found = limit.limiter().foundLimit();
        Duration base = found == null ? null : found.baseTime();
        return base == null ? Double.NaN : base.toNanos();
    }

    /** A class that a change has taken away counts no more. */
    private static double refused(ConfiguredLimit limit, String name) {
        int rank = classes(limit).indexOf(name);
        return sum(
                limit,
                found -> rank >= 0 && rank < found.refused().size()
                        ? found.refused().get(rank)
                        : 0);
    }
}
