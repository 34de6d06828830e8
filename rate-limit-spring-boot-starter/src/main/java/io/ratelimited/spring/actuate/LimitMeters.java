package io.ratelimited.spring.actuate;

import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.MultiGauge;
import io.micrometer.core.instrument.Tags;
import io.micrometer.core.instrument.Timer;
import io.ratelimited.core.Decision;
import io.ratelimited.core.Rate;
import io.ratelimited.core.overload.FoundLimit;
import io.ratelimited.spring.Outcome;
import io.ratelimited.spring.RateLimitDecision;
import io.ratelimited.spring.internals.limit.ConfiguredLimit;
import io.ratelimited.spring.internals.limit.LimitProperty;
import io.ratelimited.spring.internals.text.PropertyText;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.ToDoubleFunction;
import org.jspecify.annotations.Nullable;

/**
 * The meters of one limit. A counter is looked up in the registry once per outcome and source, when it first counts;
 * admitted and rejected calls count from the start, so that a first refusal is seen as an increase. Thread-safe.
 */
final class LimitMeters {

    private final MeterRegistry registry;
    private final String limit;
    private final ConfiguredLimit named;
    private final Timer wait;
    private final List<Meter> registered = new CopyOnWriteArrayList<>();
    private final Map<Outcome, Map<Decision.Source, DecisionCounter>> counters = new EnumMap<>(Outcome.class);
    /** Permits of calls that were charged afterwards, by kind; registered by the first, since most limits charge none. */
    private final Map<String, Counter> permits = new ConcurrentHashMap<>();
    /** Whether the meters of blocks are registered: with the limit, or when it first refuses a call after it was given blocks. */
    private final AtomicBoolean countsBlocks = new AtomicBoolean();
    /** Classes whose refusals have a meter. */
    private final Set<String> classes = ConcurrentHashMap.newKeySet();

    private final MultiGauge candidates;

    LimitMeters(MeterRegistry registry, ConfiguredLimit limit) {
        this.registry = registry;
        this.limit = limit.name();
        this.named = limit;
        this.candidates = MultiGauge.builder("rate.limit.candidate.rejected")
                .description("Share of calls that a limit with another rate would have rejected, from 0 to 1")
                .tag("limit", this.limit)
                .register(registry);
        for (Outcome outcome : Outcome.values()) {
            Map<Decision.Source, DecisionCounter> bySource = new EnumMap<>(Decision.Source.class);
            for (Decision.Source source : Decision.Source.values()) {
                bySource.put(source, new DecisionCounter(outcome, source));
            }
            counters.put(outcome, bySource);
        }
        wait = registered(Timer.builder("rate.limit.wait")
                .description("Wait times of calls that a rate limit delayed")
                .tag("limit", this.limit)
                .register(registry));
        gauge("rate.limit.keys", "Keys that this instance tracks", ConfiguredLimit::keys);
        gauge("rate.limit.waiting", "Callers that wait for permits", ConfiguredLimit::waiting);
        if (limit.findsItsLimit()) {
            gauge(
                    "rate.limit.concurrency",
                    "The current adaptive limit, in concurrent calls",
                    of -> FoundLimitMeters.sum(of, FoundLimit::limit));
            gauge(
                    "rate.limit.in.flight",
                    "Calls in flight under the limit",
                    of -> FoundLimitMeters.sum(of, FoundLimit::inFlight));
            registered(FoundLimitMeters.registerBaseTime(registry, limit));
            countClasses();
        }
        if (limit.limit().algorithm().countsCallsInFlight()) {
            gauge(
                    "rate.limit.max.concurrent",
                    "Maximum number of concurrent calls, as configured or changed",
                    of -> of.limit().maxConcurrent());
        } else {
            gauge(
                    "rate.limit.rate",
                    "Permits per second of the limit, as configured or changed; not a number if unlimited",
                    LimitMeters::permitsPerSecond);
        }
        if (limit.text(LimitProperty.CHARGE) != null) {
            failures();
        }
        Decision.Source expected = limit.limiter().source();
        if (expected == null) {
            expected = Decision.Source.REDIS;
            if (limit.values().get(LimitProperty.ON_FAILURE) instanceof LimitProperty.OnFailure onFailure) {
                countOutages(onFailure);
            }
        }
        counter(Outcome.ADMITTED, expected).get();
        counter(Outcome.REJECTED, expected).get();
        countBlocks();
        named.candidates().onChange(this::measureCandidates);
        measureCandidates();
    }

    /** Counts the decisions without Redis from the start, so that an alert sees the first one as an increase. */
    private void countOutages(LimitProperty.OnFailure onFailure) {
        Decision.Source source = onFailure.source();
        if (source == null) {
            return;
        }
        if (onFailure != LimitProperty.OnFailure.DENY) {
            counter(Outcome.ADMITTED, source).get();
        }
        if (onFailure != LimitProperty.OnFailure.ALLOW) {
            counter(Outcome.REJECTED, source).get();
        }
    }

    /** A gauge for each candidate that is tried, or was tried last. */
    private void measureCandidates() {
        List<MultiGauge.Row<?>> rows = new ArrayList<>();
        for (String rate : named.candidates().state().report().shares().keySet()) {
            rows.add(MultiGauge.Row.of(
                    Tags.of("candidate", rate),
                    named,
                    of -> of.candidates().state().report().shares().getOrDefault(rate, Double.NaN)));
        }
        candidates.register(rows, true);
    }

    /** Counts the refusals of each class; one that comes by a change from its first on. */
    private void countClasses() {
        for (String name : FoundLimitMeters.classes(named)) {
            if (classes.add(name)) {
                registered(FoundLimitMeters.registerRefused(registry, named, name));
            }
        }
    }

    /** Most limits have no blocks, and no meters of blocks. */
    private void countBlocks() {
        if (countsBlocks.get() || !mayBlock(named) || !countsBlocks.compareAndSet(false, true)) {
            return;
        }
        registered(FunctionCounter.builder("rate.limit.blocks", named, ConfiguredLimit::blocks)
                .description("Blocks of keys that have started on this instance")
                .tag("limit", limit)
                .register(registry));
        gauge("rate.limit.blocked", "Blocked keys", LimitMeters::blocked);
    }

    /** Asked at each rejection, so it looks at no limiter of a caller: one that blocks has begun a block. */
    private static boolean mayBlock(ConfiguredLimit limit) {
        return limit.limit().block() != null
                || limit.blocks() > 0
                || limit.limitersOfTiers().values().stream()
                        .anyMatch(tier -> tier.limit().block() != null);
    }

    /** Returns how many keys are blocked. */
    static long blocked(ConfiguredLimit limit) {
        return limit.limiters().stream()
                .mapToLong(own -> own.blockedKeys().count())
                .sum();
    }

    private void gauge(String name, String description, ToDoubleFunction<ConfiguredLimit> value) {
        registered(Gauge.builder(name, named, value)
                .description(description)
                .tag("limit", limit)
                .register(registry));
    }

    /** Counts a decision, whose numbers are read only if its source is not known without. */
    void count(RateLimitDecision decision) {
        Outcome outcome = decision.outcome();
        Decision.Source source = named.limiter().source();
        counter(outcome, source != null ? source : decision.decision().source())
                .get()
                .increment();
        if (outcome == Outcome.REJECTED || outcome == Outcome.SHADOWED) {
            countBlocks();
            if (named.findsItsLimit()) {
                countClasses();
            }
        }
        if (outcome == Outcome.DELAYED) {
            wait.record(decision.waited());
        }
    }

    /** Counts the permits of a call that was charged when it had ended. */
    void countPermits(long reserved, long charged) {
        permits("reserved").increment((double) reserved);
        permits("returned").increment((double) Math.max(0, reserved - charged));
        permits("added").increment((double) Math.max(0, charged - reserved));
    }

    /** Counts a call that stays charged with its reservation, because its charge failed. */
    void countFailure(long reserved) {
        countPermits(reserved, reserved);
        failures().increment();
    }

    /** Registered with each limit that has a charge, so that an alert sees the first failure as an increase. */
    private Counter failures() {
        return permits.computeIfAbsent(
                "failures",
                kind -> registered(Counter.builder("rate.limit.charge.failures")
                        .description("Completed calls whose charge failed")
                        .tag("limit", limit)
                        .register(registry)));
    }

    /** A graph of decisions gets its ceiling by it. */
    private static double permitsPerSecond(ConfiguredLimit limit) {
        Rate rate = limit.limit().rate();
        return rate.isUnlimited()
                ? Double.NaN
                : rate.permits() * 1e9 / rate.period().toNanos();
    }

    private Counter permits(String kind) {
        return permits.computeIfAbsent(
                kind,
                added -> registered(Counter.builder("rate.limit.permits")
                        .description("Permits that were reserved, refunded, or charged in addition")
                        .tag("limit", limit)
                        .tag("kind", added)
                        .register(registry)));
    }

    @SuppressWarnings("NullAway") // The maps have every constant.
    private DecisionCounter counter(Outcome outcome, Decision.Source source) {
        return counters.get(outcome).get(source);
    }

    void remove() {
        named.candidates().onChange(() -> {});
        registered.forEach(registry::remove);
        candidates.register(List.of(), true);
    }

    private <M extends Meter> M registered(M meter) {
        registered.add(meter);
        return meter;
    }

    private final class DecisionCounter {

        private final Outcome outcome;
        private final Decision.Source source;
        private volatile @Nullable Counter counter;

        private DecisionCounter(Outcome outcome, Decision.Source source) {
            this.outcome = outcome;
            this.source = source;
        }

        /** Racing threads are given the same counter by the registry. */
        private Counter get() {
            Counter known = counter;
            if (known == null) {
                known = registered(Counter.builder("rate.limit.decisions")
                        .description("Decisions on calls under a rate limit")
                        .tag("limit", limit)
                        .tag("outcome", outcome.tag())
                        .tag("source", PropertyText.of(source))
                        .register(registry));
                counter = known;
            }
            return known;
        }
    }
}
