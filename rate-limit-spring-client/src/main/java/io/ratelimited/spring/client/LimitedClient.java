package io.ratelimited.spring.client;

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import io.ratelimited.core.CanonicalKey;
import io.ratelimited.core.Decision;
import io.ratelimited.core.Policy;
import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.RateLimiterClosedException;
import io.ratelimited.core.Ticker;
import io.ratelimited.spring.LimiterFactory.SharedPauses;
import io.ratelimited.spring.call.Admission;
import io.ratelimited.spring.call.EventLoops;
import io.ratelimited.spring.call.LimitEnforcer;
import io.ratelimited.spring.call.LimitRequest;
import io.ratelimited.spring.client.ClientGate.Entered;
import io.ratelimited.spring.client.ClientPace.Pass;
import io.ratelimited.spring.client.ClientProperties.Obey;
import io.ratelimited.spring.expression.CallResult;
import io.ratelimited.spring.fields.Answer;
import io.ratelimited.spring.fields.Answer.Quota;
import io.ratelimited.spring.fields.RateLimitFieldReader;
import io.ratelimited.spring.limit.ConfiguredLimit;
import io.ratelimited.spring.limit.LogText;
import io.ratelimited.spring.limit.PropertyText;
import io.ratelimited.spring.limit.RequestThreads;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * One of {@code rate-limit.clients}: lets calls go as its limits and the answers of the other side allow. A call passes the
 * gate of its key first and its limits then, so that what goes out after a pause keeps to the limits. Thread-safe.
 */
public final class LimitedClient {

    private static final LogText.Lines LOG = LogText.lines(LimitedClient.class);

    /** Keys whose answers are remembered. A forgotten key begins anew with what its next answer says. */
    private static final long MAX_KEYS = 10_000;

    /** What takes less is the way to a decision, not a wait. */
    private static final long SHORTEST_WAIT_NANOS = 1_000_000;

    /** Instead of a digest for calls without a key. */
    private static final String NO_KEY = "";

    private final String name;
    private final Terms terms;
    private final ClientLimits limits;
    private final LimitEnforcer enforcer;
    private final Ticker ticker;
    /** By the digest of the key. */
    private final Cache<String, KeyedGate> gates =
            Caffeine.newBuilder().maximumSize(MAX_KEYS).build();

    private final @Nullable FleetPauses fleet;
    private final RateLimitFieldReader reader;
    /** Calls that wait, until they go or are refused. */
    private final Set<Entry> waiting = ConcurrentHashMap.newKeySet();

    private volatile boolean closed;
    private final AtomicBoolean readerFailed = new AtomicBoolean();
    private final LongAdder delayed = new LongAdder();
    private final LongAdder refusedHere = new LongAdder();
    private final LongAdder refusedThere = new LongAdder();

    /**
     * What applies to the calls of a client.
     *
     * @param hosts whom it calls, for reports
     * @param policy REJECT, WAIT or SHADOW
     * @param maxWaitNanos 0 unless calls wait
     * @param key null for one state for all calls
     */
    record Terms(
            List<String> hosts,
            List<ConfiguredLimit> limits,
            Set<Obey> obeys,
            long maxPauseNanos,
            Policy policy,
            long maxWaitNanos,
            @Nullable ClientKey key) {}

    /**
     * A gate and whose it is.
     *
     * @param key the text of the key; null for calls without a key
     */
    record KeyedGate(String digest, @Nullable String key, ClientGate gate) {}

    /** @param pauses what all instances share; null if this one pauses alone */
    LimitedClient(
            String name,
            Terms terms,
            LimitEnforcer enforcer,
            @Nullable SharedPauses pauses,
            RateLimitFieldReader reader) {
        this.reader = reader;
        this.name = name;
        this.terms = terms;
        this.limits = new ClientLimits(terms.limits, terms.key != null);
        this.enforcer = enforcer;
        this.ticker = enforcer.ticker();
        this.fleet = pauses == null || !terms.obeys.contains(Obey.RETRY_AFTER)
                ? null
                : new FleetPauses(name, pauses, ticker, terms.maxPauseNanos);
        if (fleet != null) {
            fleet.follow(this::pausedElsewhere);
        }
        if (terms.key != null) {
            terms.limits.forEach(ConfiguredLimit::usedWithKeys);
        }
    }

    /**
     * Waits until a call may go. Never sleeps on an event loop, nor in one of the last half of the threads that serve requests: a
     * call that would have to wait there is refused.
     *
     * @return to be told what becomes of the call
     * @throws RateLimitExceededException when the call may not go
     * @throws CancellationException when interrupted while it waits; the flag is set
     */
    ClientCall enter(OutgoingRequest request) {
        CompletableFuture<ClientCall> entered =
                enterAsync(request, EventLoops.isCurrentThread() ? 0 : terms.maxWaitNanos);
        RequestThreads seats = enforcer.threads();
        boolean seated = !entered.isDone() && seats.tryEnter(0);
        if (!seated && !entered.isDone()) {
            entered.cancel(false);
            entered = enterAsync(request, 0);
        }
        try {
            return entered.get();
        } catch (InterruptedException ex) {
            entered.cancel(false);
            Thread.currentThread().interrupt();
            CancellationException interrupted =
                    new CancellationException("interrupted while waiting for a call of client '" + name + "'");
            interrupted.initCause(ex);
            throw interrupted;
        } catch (ExecutionException ex) {
            Throwable cause = ex.getCause();
            if (cause instanceof Error error) {
                throw error;
            }
            throw cause instanceof RuntimeException failure ? failure : new IllegalStateException(cause);
        } finally {
            if (seated) {
                seats.leave();
            }
        }
    }

    /**
     * {@link #enter} without a thread.
     *
     * @return fails with {@link RateLimitExceededException} when the call may not go; cancelling it gives everything back
     */
    CompletableFuture<ClientCall> enterAsync(OutgoingRequest request) {
        return enterAsync(request, terms.maxWaitNanos);
    }

    private CompletableFuture<ClientCall> enterAsync(OutgoingRequest request, long maxWaitNanos) {
        Object key;
        try {
            key = terms.key == null ? null : terms.key.of(request);
        } catch (IllegalStateException ex) {
            return CompletableFuture.failedFuture(ex);
        }
        KeyedGate gate = gate(key == null ? null : CanonicalKey.text(key));
        Entry entry = new Entry(gate, key, maxWaitNanos, ticker.nanos());
        entry.enterGate();
        if (!entry.call.isDone()) {
            waiting.add(entry);
            entry.call.whenComplete((done, failure) -> waiting.remove(entry));
            if (closed) {
                close();
            }
        }
        return entry.call;
    }

    /** The context closes: calls that wait end. Those that need not wait still go. */
    void close() {
        closed = true;
        waiting.forEach(entry -> entry.call.completeExceptionally(new RateLimiterClosedException()));
    }

    private KeyedGate gate(@Nullable String key) {
        // Other instances learn the digest of a key, which may be an account.
        KeyedGate keyed = gates.get(
                key == null ? NO_KEY : CanonicalKey.digest(key),
                digest -> new KeyedGate(digest, key, new ClientGate(ticker, terms.maxPauseNanos)));
        long pause = fleet == null ? 0 : fleet.left(keyed.digest);
        if (pause > 0) {
            keyed.gate.pause(pause, null);
        }
        return keyed;
    }

    private void pausedElsewhere(String digest, long nanos) {
        KeyedGate keyed = gates.getIfPresent(digest);
        if (keyed != null && keyed.gate.pause(nanos, null)) {
            long seconds = Math.max(1, TimeUnit.NANOSECONDS.toSeconds(nanos + 500_000_000));
            LOG.warn("Client '" + name + "' pauses for " + PropertyText.of(Duration.ofSeconds(seconds))
                    + ": another instance was told so by " + terms.hosts + ".");
        }
    }

    /** A call on its way through the gate and the limits. */
    private final class Entry {

        private final KeyedGate keyed;
        private final ClientGate gate;
        private final @Nullable Object key;
        private final long maxWaitNanos;
        private final long began;
        private final CompletableFuture<ClientCall> call = new CompletableFuture<>();
        private volatile CompletableFuture<?> step = CompletableFuture.completedFuture(null);

        private Entry(KeyedGate keyed, @Nullable Object key, long maxWaitNanos, long began) {
            this.keyed = keyed;
            this.gate = keyed.gate;
            this.key = key;
            this.maxWaitNanos = maxWaitNanos;
            this.began = began;
            call.whenComplete((done, failure) -> {
                if (failure != null) {
                    step.cancel(false);
                }
            });
        }

        private long waitLeft() {
            return Math.max(0, maxWaitNanos - (ticker.nanos() - began));
        }

        /** The steps that can be cancelled; a step that begins after the cancellation is cancelled at once. */
        private <T> CompletableFuture<T> step(CompletableFuture<T> next) {
            step = next;
            if (call.isDone()) {
                next.cancel(false);
            }
            return next;
        }

        private void enterGate() {
            if (terms.policy == Policy.SHADOW) {
                enterLimits(gate.enterAnyway());
                return;
            }
            step(gate.enter(waitLeft())).whenComplete((entered, cancellation) -> {
                if (cancellation != null) {
                    call.completeExceptionally(cancellation);
                } else if (entered.pass() == null) {
                    refused(new RateLimitExceededException(refusal(entered)));
                } else {
                    enterLimits(entered.pass());
                }
            });
        }

        private void enterLimits(Pass pass) {
            if (terms.limits.isEmpty()) {
                go(pass, null);
                return;
            }
            LimitRequest[] requests = limits.requests(terms.policy, waitLeft(), key);
            step(enforcer.reserveAsync(requests, null)).whenComplete((admission, failure) -> {
                if (failure != null) {
                    gate.giveBack(pass);
                    refused(CallResult.unwrap(failure));
                } else if (terms.policy != Policy.SHADOW && gate.pauseLeft() > 0) {
                    // An answer has told to pause while the call waited for its limits.
                    admission.cancel();
                    gate.giveBack(pass);
                    enterGate();
                } else {
                    go(pass, admission);
                }
            });
        }

        private void go(Pass pass, @Nullable Admission admission) {
            ClientCall going = new ClientCall(LimitedClient.this, keyed, pass, admission);
            if (!call.complete(going)) {
                going.giveBack();
            } else if (ticker.nanos() - began >= SHORTEST_WAIT_NANOS) {
                delayed.increment();
            }
        }

        private void refused(Throwable failure) {
            if (failure instanceof RateLimitExceededException) {
                refusedHere.increment();
            }
            call.completeExceptionally(failure);
        }
    }

    /** The name that refusals by the gate have: it tells them from those of limits. */
    private Decision refusal(Entered entered) {
        Duration retryAfter = Duration.ofNanos(entered.retryAfterNanos());
        return new Decision(
                "clients." + name, false, Duration.ZERO, retryAfter, false, 0, retryAfter, Decision.Source.MEMORY);
    }

    /** A reader of the application may fail: the call has been made all the same. */
    private Answer read(int status, Function<String, @Nullable List<String>> fields) {
        try {
            long epochMillis = TimeUnit.NANOSECONDS.toMillis(ticker.epochNanos());
            return Objects.requireNonNull(reader.read(status, fields, epochMillis), "the reader returns null");
        } catch (RuntimeException ex) {
            if (readerFailed.compareAndSet(false, true)) {
                LOG.warn("Client '" + name + "' cannot read an answer, which says nothing therefore: " + ex, ex);
            }
            return Answer.SILENT;
        }
    }

    /** Reads the answer to a call. */
    void answered(KeyedGate keyed, Pass pass, int status, Function<String, @Nullable List<String>> fields) {
        boolean refused = status == 429;
        Answer answer = read(status, fields);
        long pause = terms.obeys.contains(Obey.RETRY_AFTER) ? answer.retryAfterNanos() : 0;
        List<Quota> quotas = terms.obeys.contains(Obey.RATE_LIMIT) ? answer.quotas() : List.of();
        if (refused) {
            refusedThere.increment();
        }
        if (pause > 0 && keyed.gate.pause(pause, pass)) {
            LOG.warn("Client '" + name + "' pauses for "
                    + PropertyText.of(Duration.ofNanos(Math.min(pause, terms.maxPauseNanos))) + ": the answer " + status
                    + " of " + terms.hosts + " says Retry-After " + PropertyText.of(Duration.ofNanos(pause)) + ".");
            if (fleet != null && terms.policy != Policy.SHADOW) {
                fleet.publish(keyed.digest, pause);
            }
        }
        keyed.gate.answered(pass, new Answer(pause, quotas), refused || pause > 0);
    }

    /** As {@link ConfiguredLimit#usedBy}. */
    void usedBy(boolean withThread) {
        terms.limits.forEach(limit -> limit.usedBy(withThread));
    }

    /** Forgets what answers have said, for the next test. */
    public void forget() {
        gates.invalidateAll();
    }

    /** The name in the properties. */
    public String name() {
        return name;
    }

    /** How many calls went after a wait of a millisecond or more. */
    public long delayed() {
        return delayed.sum();
    }

    /** How many calls were refused on this side, by limits or because the other side wants a longer pause. */
    public long refusedHere() {
        return refusedHere.sum();
    }

    /** How many calls the other side has answered with 429. */
    public long refusedThere() {
        return refusedThere.sum();
    }

    /** How many keys pause now. */
    public long pausedKeys() {
        return gates.asMap().values().stream()
                .filter(keyed -> keyed.gate.pauseLeft() > 0)
                .count();
    }

    /**
     * The state as the endpoint shows it.
     *
     * @param shownKey what is shown instead of a key
     */
    public Map<String, Object> report(Function<Object, String> shownKey) {
        Map<String, Object> report = new LinkedHashMap<>();
        report.put("hosts", terms.hosts);
        report.put("limits", terms.limits.stream().map(ConfiguredLimit::name).toList());
        report.put("obey", terms.obeys.stream().map(PropertyText::of).toList());
        report.put("policy", PropertyText.of(terms.policy));
        report.put("delayed", delayed());
        report.put("refusedHere", refusedHere());
        report.put("refusedThere", refusedThere());
        List<Map<String, Object>> states = new ArrayList<>();
        gates.asMap().values().stream().limit(10).forEach(keyed -> {
            Map<String, Object> state = new LinkedHashMap<>();
            if (keyed.key != null) {
                state.put("key", shownKey.apply(keyed.key));
            }
            long pause = keyed.gate.pauseLeft();
            if (pause > 0) {
                state.put("pausedFor", PropertyText.seconds(Duration.ofNanos(pause)));
            }
            state.put("waiting", keyed.gate.waiting());
            state.put("quotas", keyed.gate.report());
            states.add(state);
        });
        report.put("state", states);
        return report;
    }
}
