package io.ratelimited.spring.internals.call;

import io.ratelimited.core.Decision;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.Ticker;
import io.ratelimited.core.several.AllOf;
import io.ratelimited.spring.DecisionObserver;
import io.ratelimited.spring.NamedLimit;
import io.ratelimited.spring.Outcome;
import io.ratelimited.spring.RateLimitCharge;
import io.ratelimited.spring.RateLimitDecision;
import io.ratelimited.spring.internals.limit.ConfiguredLimit;
import io.ratelimited.spring.internals.request.RequestDecisions;
import io.ratelimited.spring.internals.text.LogText;
import io.ratelimited.spring.internals.text.OncePerMinute;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.springframework.util.ClassUtils;

/**
 * Reports the decisions and charges of limits: to the observers, to Java's flight recorder and to the web request of the
 * call. A report that fails is logged; it does not fail the call, which would leave a request without an answer.
 * Thread-safe.
 */
final class DecisionReports {

    private static final LogText.Lines LOG = LogText.lines(DecisionReports.class);
    private static final DecisionObserver DECISIONS = new DecisionLog();

    /** A runtime image may leave the module jdk.jfr out. */
    private static final boolean FLIGHT_RECORDER = ClassUtils.isPresent("jdk.jfr.Event", null);

    /** Every virtual thread that decides has a set of its own: a small one. */
    private static final int FEW = 2;

    private volatile List<DecisionObserver> observers = List.of();
    /** Observers that this thread is calling. */
    private final ThreadLocal<Set<DecisionObserver>> called;

    private final Ticker ticker;
    private final OncePerMinute<Failure> failures;

    /** @param problem of a small number of texts */
    private record Failure(String limit, String problem) {}

    Ticker ticker() {
        return ticker;
    }

    DecisionReports(Ticker ticker) {
        this.ticker = ticker;
        this.called = ThreadLocal.withInitial(() -> Collections.newSetFromMap(new IdentityHashMap<>(FEW)));
        this.failures = new OncePerMinute<>(ticker);
    }

    private DecisionReports(DecisionReports from, List<DecisionObserver> observers) {
        this.observers = observers;
        this.ticker = from.ticker;
        this.called = from.called;
        this.failures = from.failures;
    }

    /** Reports decisions to these observers from now on: they may depend on what decides, which is created before them. */
    void observers(List<DecisionObserver> all) {
        observers = List.copyOf(all);
    }

    /** These reports, for a call of this thread whose decision other threads may bring. */
    DecisionReports ofThisThread() {
        List<DecisionObserver> all = observers;
        List<DecisionObserver> ofCaller = all;
        for (int i = 0; i < all.size(); i++) {
            if (all.get(i) instanceof CallerObserver observer) {
                ofCaller = ofCaller == all ? new ArrayList<>(all) : ofCaller;
                ofCaller.set(i, observer.ofThisThread());
            }
        }
        return ofCaller == all ? this : new DecisionReports(this, ofCaller);
    }

    /** Returns whether there is neither an observer nor a log, so that no decision has to be described to them. */
    boolean isUnobserved() {
        return observers.isEmpty() && !DecisionLog.LINES.isDebugEnabled();
    }

    /**
     * Reports a decision to the observers, to the log if it is on, and to the flight recorder unless the call was simply
     * admitted.
     *
     * @param waitedNanos time for which the call has waited
     */
    void report(
            NamedLimit limit, Outcome outcome, @Nullable Object key, long waitedNanos, Supplier<Decision> decision) {
        if (outcome != Outcome.ADMITTED && FLIGHT_RECORDER) {
            DecisionEvent.record(limit, outcome, waitedNanos);
        }
        List<DecisionObserver> told = DecisionLog.LINES.isDebugEnabled() ? withLog(observers) : observers;
        if (!told.isEmpty()) {
            RateLimitDecision event =
                    new RateLimitDecision(limit, outcome, key, Duration.ofNanos(waitedNanos), decision);
            observe(told, limit, observer -> observer.onDecision(event));
        }
    }

    private static List<DecisionObserver> withLog(List<DecisionObserver> observers) {
        List<DecisionObserver> all = new ArrayList<>(observers);
        all.add(0, DECISIONS);
        return all;
    }

    /** Reports a decision on a call, to its web request too if it belongs to one. */
    void report(
            LimitRequest request,
            Outcome outcome,
            long waitedNanos,
            @Nullable RequestDecisions current,
            Supplier<Decision> decision) {
        report(request.limit(), outcome, request.key(), waitedNanos, decision);
        if (current != null) {
            toRequest(current, request, outcome, decision);
        }
    }

    /**
     * Reports a refusal, and makes its exception.
     *
     * @param requests of the call; those that were not refused apply to its web request without having decided
     * @param refusals by the position of the request: one limit may be asked for several keys
     */
    RateLimitExceededException refusal(
            LimitRequest[] requests, @Nullable RequestDecisions current, @Nullable Decision[] refusals) {
        int first = AllOf.decisive(refusals);
        Decision decisive = Objects.requireNonNull(refusals[first]);
        Set<String> limits = new LinkedHashSet<>();
        for (int i = 0; i < requests.length; i++) {
            LimitRequest request = requests[i];
            Decision refusal = refusals[i];
            if (refusal != null) {
                if (isUnavailable(refusal) == isUnavailable(decisive)) {
                    limits.add(refusal.limit());
                }
                report(request, Outcome.REJECTED, 0, current, () -> refusal);
            } else if (current != null) {
                toRequest(current, request, null, () -> decisive);
            }
        }
        if (current != null) {
            ConfiguredLimit limit = requests[first].limit();
            try {
                current.rejected(decisive, limit.findsItsLimit());
            } catch (RuntimeException | Error ex) {
                warnOfRequest(limit, ex);
            }
        }
        return new RateLimitExceededException(decisive, List.copyOf(limits));
    }

    private static boolean isUnavailable(Decision refusal) {
        return refusal.source() == Decision.Source.UNAVAILABLE;
    }

    /** Reports the charge of a call instead of its reservation. */
    void reportCharge(
            LimitRequest request, long charged, @Nullable RequestDecisions current, Supplier<Decision> decision) {
        if (!observers.isEmpty()) {
            reportCharge(new RateLimitCharge(request.limit(), request.key(), request.permits(), charged, null));
        }
        if (current != null) {
            toRequest(current, request, Outcome.ADMITTED, decision);
        }
    }

    /** Reports that a call stays charged with its reservation: to the log once a minute and limit, and to the observers. */
    void reportFailedCharge(LimitRequest request, Throwable failure) {
        warn(
                request.limit(),
                "the cost of a completed call is unknown, so it stays charged with its reservation. Correct the charge",
                failure);
        long reserved = request.permits();
        reportCharge(new RateLimitCharge(request.limit(), request.key(), reserved, reserved, failure));
    }

    private void reportCharge(RateLimitCharge charge) {
        observe(observers, charge.limit(), observer -> observer.onCharge(charge));
    }

    /** An observer may make limited calls: it does not receive their decisions, which would not end. */
    private void observe(List<DecisionObserver> told, NamedLimit limit, Consumer<DecisionObserver> report) {
        Set<DecisionObserver> ofThread = called.get();
        for (DecisionObserver observer : told) {
            if (!ofThread.add(observer)) {
                continue;
            }
            try {
                report.accept(observer);
            } catch (RuntimeException | Error ex) {
                warn(limit, "the observer " + observer.getClass().getName() + " failed", ex);
            } finally {
                ofThread.remove(observer);
            }
        }
    }

    /** @param outcome null for a limit that has not decided, because another one refused the call */
    private void toRequest(
            RequestDecisions current, LimitRequest request, @Nullable Outcome outcome, Supplier<Decision> decision) {
        try {
            Limit limitOfCaller = request.limiter().limit();
            if (outcome == null) {
                current.applies(request.limit(), limitOfCaller);
                return;
            }
            String once = request.once();
            if (once != null && outcome != Outcome.REJECTED) {
                current.charged(once);
            }
            current.decided(request.limit(), limitOfCaller, outcome, decision);
        } catch (RuntimeException | Error ex) {
            warnOfRequest(request.limit(), ex);
        }
    }

    private void warnOfRequest(NamedLimit limit, Throwable failure) {
        warn(limit, "a decision could not be reported to the request", failure);
    }

    /**
     * Logs a failure that each call may have: once per minute for each limit.
     *
     * @param problem of a small number of texts
     */
    void warn(NamedLimit limit, String problem, @Nullable Throwable failure) {
        if (failures.isDue(new Failure(limit.name(), problem))) {
            String message = "Rate limit '" + limit.name() + "' (" + limit.place() + "): " + problem
                    + ". Further failures are logged once per minute.";
            if (failure == null) {
                LOG.warn(message);
            } else {
                LOG.warn(message, failure);
            }
        }
    }
}
