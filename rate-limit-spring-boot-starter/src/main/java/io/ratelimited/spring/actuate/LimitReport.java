package io.ratelimited.spring.actuate;

import io.ratelimited.core.Decision;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Policy;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.internals.candidates.CandidateReport;
import io.ratelimited.core.internals.several.MemoryLimiter;
import io.ratelimited.core.overload.FoundLimit;
import io.ratelimited.spring.backend.SharedChanges;
import io.ratelimited.spring.internals.limit.ConfiguredLimit;
import io.ratelimited.spring.internals.limit.LimitCandidates;
import io.ratelimited.spring.internals.limit.LimitProperty;
import io.ratelimited.spring.internals.overload.FoundLimitHistory;
import io.ratelimited.spring.internals.text.PropertyText;
import java.time.Duration;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * The report of the endpoint about a limit: members named as in the annotation, values written as in the properties.
 *
 * @param routes those of a limit
 * @param elsewhere the different terms that other instances have for a limit
 */
record LimitReport(
        RejectedKeys refused,
        ShownKeys keys,
        ShownBlocks blocks,
        Function<String, List<Map<String, Object>>> routes,
        Function<String, Set<String>> elsewhere) {

    private static final int SHOWN_KEYS = 10;

    /** The settings of a limit, and its present use. */
    Map<String, Object> summary(ConfiguredLimit limit) {
        Map<String, Object> report = new LinkedHashMap<>(terms(limit.limit()));
        limit.values().forEach((property, value) -> report.putIfAbsent(property.label(), PropertyText.of(value)));
        report.keySet().removeAll(List.of("tiers", "maxWait", "maxWaiting"));
        report.put("policy", PropertyText.of(limit.policy()));
        if (limit.policy() == Policy.WAIT) {
            report.put("maxWait", PropertyText.of(Duration.ofNanos(limit.maxWaitNanos())));
            report.put("maxWaiting", limit.limit().maxWaiting());
        }
        report.put("declaredBy", limit.place());
        if (limit.notApplied() != null) {
            report.put("changeNotApplied", limit.notApplied());
        }
        Set<String> different = elsewhere.apply(limit.name());
        if (!different.isEmpty()) {
            report.put("elsewhere", List.copyOf(different));
        }
        report.putAll(author(limit, null));
        List<Map<String, Object>> ofRoutes = routes.apply(limit.name());
        if (!ofRoutes.isEmpty()) {
            report.put("routes", ofRoutes);
        }
        report.put("keys", limit.keys());
        report.put("waiting", limit.waiting());
        return report;
    }

    /** The budget of calls without a key; nothing is said of one that no call has used, where calls have keys. */
    private Map<String, Object> withoutKey(RateLimiter limiter, boolean keyed) {
        Map<String, Object> state = state(limiter, null);
        Limit limit = limiter.limit();
        long all = limit.algorithm().countsCallsInFlight() ? limit.maxConcurrent() : limit.burst();
        boolean used = state.get("remaining") instanceof Long remaining
                && remaining < all
                && !Double.valueOf(0).equals(state.get("reset"));
        if (keyed && !used) {
            state.keySet().removeAll(List.of("remaining", "reset", "inFlight", "retryAfter"));
        }
        return state;
    }

    /** Returns whether the properties or all routes of a limit name a key. */
    private boolean isKeyed(ConfiguredLimit limit) {
        List<Map<String, Object>> ofRoutes = routes.apply(limit.name());
        return limit.text(LimitProperty.KEY) != null
                || (!ofRoutes.isEmpty() && ofRoutes.stream().allMatch(route -> route.containsKey("key")));
    }

    /** All of a limit: its tiers, the keys that are blocked, those that were refused most, and the budget of calls without a key if there are such. */
    Map<String, Object> full(ConfiguredLimit limit) {
        Map<String, Object> report = summary(limit);
        boolean keyed = isKeyed(limit);
        report.putAll(withoutKey(limit.limiter(), keyed));
        Map<String, Object> tiers = new TreeMap<>();
        limit.limitersOfTiers().forEach((tier, limiter) -> {
            Map<String, Object> ofTier = new LinkedHashMap<>(terms(limiter.limit()));
            ofTier.putAll(withoutKey(limiter, keyed));
            tiers.put(tier, ofTier);
        });
        if (!tiers.isEmpty()) {
            report.put("tiers", tiers);
        }
        FoundLimit found = limit.limiter().foundLimit();
        if (found != null) {
            report.put("found", found(limit, found));
        } else if (limit.limit().algorithm().countsCallsInFlight()) {
            report.put("busiest", busiest(limit));
        }
        if (limit.ownBudgets() > 0) {
            report.put("budgets", limit.ownBudgets());
        }
        blocks.add(limit, report);
        report.compute("candidates", (name, configured) -> candidates(limit.candidates()));
        report.put(
                "mostRefused",
                refused.top(limit, SHOWN_KEYS).stream().map(this::refusals).toList());
        return report;
    }

    /** What the candidates would have done; shares in percent. */
    private @Nullable Map<String, Object> candidates(LimitCandidates tried) {
        LimitCandidates.State state = tried.state();
        Map<String, Object> report = new LinkedHashMap<>();
        report.put("since", state.since().toString());
        report.put("until", state.until().toString());
        report.put("ended", tried.tracker() == null);
        report.put("calls", state.report().calls());
        List<Map<String, Object>> rates = new ArrayList<>();
        for (CandidateReport.Candidate one : state.report().candidates()) {
            Map<String, Object> rate = new LinkedHashMap<>();
            rate.put("rate", one.name());
            rate.put("rejected", Math.round(one.rejected() * 1e4) / 1e2);
            rate.put("error", Math.round(one.error() * 1e4) / 1e2);
            rate.put("callers", one.callers());
            rate.put(
                    "mostRejected",
                    one.mostRejected().stream()
                            .map(caller -> Map.of("key", keys.show(caller.key()), "rejected", caller.rejected()))
                            .toList());
            rates.add(rate);
        }
        report.put("rates", rates);
        Map<String, Object> smallest = new LinkedHashMap<>();
        for (double share : new double[] {0.05, 0.01, 0.001}) {
            state.report().smallestBelow(share).ifPresent(name -> smallest.put(CandidateReport.percent(share), name));
        }
        report.put("smallestBelow", smallest);
        return rates.isEmpty() ? null : report;
    }

    /** What a limit has found that finds itself; the newest change first. */
    private static Map<String, Object> found(ConfiguredLimit limit, FoundLimit now) {
        Map<String, Object> report = new LinkedHashMap<>();
        report.put("limit", now.limit());
        if (now.baseTime() != null) {
            report.put("baseTime", PropertyText.seconds(now.baseTime()));
        }
        report.put("inFlight", now.inFlight());
        report.put("waiting", now.waiting());
        List<String> classes = limit.limit().priorities();
        Map<String, Object> refused = new LinkedHashMap<>();
        for (int i = 0; i < Math.min(classes.size(), now.refused().size()); i++) {
            refused.put(classes.get(i), now.refused().get(i));
        }
        report.put("refused", classes.isEmpty() ? now.refused().get(0) : refused);
        report.put(
                "changes", limit.lastChanges().stream().map(LimitReport::change).toList());
        return report;
    }

    private static Map<String, Object> change(FoundLimitHistory.Entry entry) {
        Map<String, Object> report = new LinkedHashMap<>();
        report.put("at", entry.at().toString());
        report.put("from", entry.change().from());
        report.put("to", entry.change().to());
        report.put("reason", PropertyText.of(entry.change().reason()));
        return report;
    }

    private Map<String, Object> refusals(TopKeys.Top top) {
        Map<String, Object> report = new LinkedHashMap<>();
        report.put("key", keys.show(top.key()));
        report.put("refused", top.count());
        if (top.error() > 0) {
            report.put("error", top.error());
        }
        return report;
    }

    /** Keys with most calls in flight in memory: there are never more such keys than calls. */
    private List<Map<String, Object>> busiest(ConfiguredLimit limit) {
        record Busy(Object key, long inFlight) {}
        return limit.limiters().stream()
                .filter(MemoryLimiter.class::isInstance)
                .map(MemoryLimiter.class::cast)
                .flatMap(limiter -> limiter.knownKeys().map(key -> new Busy(key, limiter.inFlight(key))))
                .sorted(Comparator.comparingLong(Busy::inFlight).reversed())
                .limit(SHOWN_KEYS)
                .map(busy -> Map.<String, Object>of("key", keys.show(busy.key()), "inFlight", busy.inFlight()))
                .toList();
    }

    /** The author and the time of a change that all instances share. */
    private static Map<String, Object> author(ConfiguredLimit limit, @Nullable Object key) {
        Map<String, Object> members = new LinkedHashMap<>();
        SharedChanges.Change change = limit.sharedChange(key);
        if (change != null) {
            if (change.author() != null) {
                members.put("changedBy", change.author());
            }
            if (change.madeAt() != null) {
                members.put(
                        "changedAt",
                        change.madeAt().truncatedTo(ChronoUnit.SECONDS).toString());
            }
        }
        return members;
    }

    /**
     * The budget of a key, and its budgets in the tiers; or the budget of its own, which replaces them. Of a caller with its own
     * numbers these, too, as far as this process remembers them.
     */
    Map<String, Object> key(ConfiguredLimit limit, @Nullable Object key) {
        if (key != null) {
            Map<String, Object> budget = limit.ownBudget(key);
            if (!budget.isEmpty()) {
                Map<String, Object> own = new LinkedHashMap<>(Map.of("budget", budget));
                own.putAll(author(limit, key));
                own.putAll(state(limit.limiterOf(key, limit.limiter()), key));
                return own;
            }
        }
        RateLimiter known = limit.limiterOf(key);
        Map<String, Object> report = new LinkedHashMap<>();
        if (!known.limit().equals(limit.limit())) {
            Map<String, Object> numbers = terms(known.limit());
            numbers.keySet().retainAll(List.of("rate", "burst"));
            report.put("numbers", numbers);
        }
        report.putAll(state(known, key));
        Map<String, Object> tiers = new TreeMap<>();
        limit.limitersOfTiers().forEach((tier, limiter) -> tiers.put(tier, state(limiter, key)));
        if (!tiers.isEmpty()) {
            report.put("tiers", tiers);
        }
        return report;
    }

    /** The rest of a budget, and the source of that decision. */
    private Map<String, Object> state(RateLimiter limiter, @Nullable Object key) {
        Map<String, Object> report = new LinkedHashMap<>();
        Decision decision;
        try {
            decision = limiter.peek(key, 1, 0);
        } catch (IllegalArgumentException ex) {
            throw ex;
        } catch (RuntimeException ex) {
            // A backend that does not answer, under on-failure: throw; the limit itself is still worth showing.
            report.put("error", String.valueOf(ex.getMessage()));
            return report;
        }
        report.put("source", PropertyText.of(decision.source()));
        report.put("remaining", decision.remaining());
        if (limiter.limit().algorithm().countsCallsInFlight()) {
            Long inFlight = inFlight(limiter, key, decision);
            if (inFlight != null) {
                report.put("inFlight", inFlight);
            }
        } else {
            report.put("reset", PropertyText.seconds(decision.reset()));
        }
        if (decision.retryAfter() != null) {
            report.put("retryAfter", PropertyText.seconds(decision.retryAfter()));
        }
        if (key != null) {
            blocks.add(limiter, key, decision, report);
        }
        return report;
    }

    /** The permits that calls in flight use; null while a shared backend is unavailable, which has their number. */
    private static @Nullable Long inFlight(RateLimiter limiter, @Nullable Object key, Decision decision) {
        if (limiter instanceof MemoryLimiter memory) {
            return memory.inFlight(key);
        }
        return switch (decision.source()) {
            case FALLBACK, UNAVAILABLE -> null;
            default -> limiter.limit().maxConcurrent() - decision.remaining();
        };
    }

    /** The terms of a limit, without those of its policy. */
    private static Map<String, Object> terms(Limit limit) {
        Map<String, Object> terms = LimitProperty.terms(limit);
        terms.remove(LimitProperty.MAX_WAITING.label());
        return terms;
    }
}
