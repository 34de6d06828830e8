package io.ratelimited.spring.internals.client;

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import com.github.benmanes.caffeine.cache.RemovalCause;
import io.ratelimited.core.CanonicalKey;
import io.ratelimited.core.Decision;
import io.ratelimited.core.Policy;
import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.Ticker;
import io.ratelimited.core.WaitingRoom;
import io.ratelimited.spring.backend.SharedPauses;
import io.ratelimited.spring.fields.RateLimitHeaderReader;
import io.ratelimited.spring.fields.ResponseLimits;
import io.ratelimited.spring.fields.ResponseLimits.Quota;
import io.ratelimited.spring.internals.call.LimitEnforcer;
import io.ratelimited.spring.internals.client.ClientCall.Responder;
import io.ratelimited.spring.internals.client.ClientPace.Pass;
import io.ratelimited.spring.internals.client.ClientProperties.Obey;
import io.ratelimited.spring.internals.expression.CallExpression;
import io.ratelimited.spring.internals.limit.ConfiguredLimit;
import io.ratelimited.spring.internals.request.CurrentRequest;
import io.ratelimited.spring.internals.text.LogText;
import io.ratelimited.spring.internals.text.PropertyText;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.BooleanSupplier;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/** One of {@code rate-limit.clients}: lets calls go as its limits and the answers of the other side allow. Thread-safe. */
public final class LimitedClient {

    private static final LogText.Lines LOG = LogText.lines(LimitedClient.class);

    /**
     * Keys whose responses are tracked. An evicted key starts anew with its next response, even during a pause: callers may
     * choose the key, and so the number of keys that pause.
     */
    private static final long MAX_KEYS = 10_000;

    private static final int MAX_WAITING = 1_000;

    /** From this status on, and below the next, an answer without a statement about limits says that there are none. */
    private static final int SUCCESS = 200;

    private static final int REDIRECTION = 300;
    /** From this status on, an answer without a statement about limits does not say that the call was admitted. */
    private static final int SERVER_ERROR = 500;

    private static final long LOOK_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

    private static final String REMEDY =
            "Call the remote service with WebClient, or on Schedulers.boundedElastic(), or use the policy REJECT.";

    /** Instead of a digest for calls without a key. */
    private static final String NO_KEY = "";

    private final String name;
    /** For messages. */
    private final String named;

    private final Terms terms;
    private final ClientLimits limits;
    private final LimitEnforcer enforcer;
    private final Ticker ticker;
    /** The gates, by the digest of the key. */
    private final Cache<String, ClientGate> gates = Caffeine.newBuilder()
            .maximumSize(MAX_KEYS)
            .evictionListener(this::warnOfKeys)
            .build();

    private final AtomicBoolean evicts = new AtomicBoolean();
    /** The seats of calls that wait at the gates; limits have seats of their own. */
    private final WaitingRoom room;

    private final @Nullable FleetPauses fleet;
    private final RateLimitHeaderReader reader;
    private final AtomicBoolean readerFailed = new AtomicBoolean();
    private final LongAdder delayed = new LongAdder();
    private final LongAdder refusedHere = new LongAdder();
    private final LongAdder refusedThere = new LongAdder();

    /**
     * The settings of a client's calls.
     *
     * @param hosts the hosts that it calls, for reports
     * @param policy REJECT, WAIT or SHADOW
     * @param maxWaitNanos 0 under REJECT; a dry run judges with it, and no call waits
     * @param key null for one state for all calls
     */
    record Terms(
            List<String> hosts,
            List<ConfiguredLimit> limits,
            Set<Obey> obeys,
            long maxPauseNanos,
            Policy policy,
            long maxWaitNanos,
            @Nullable CallExpression key) {}

    /** @param pauses the pauses that all instances share; null if this one pauses alone */
    LimitedClient(
            String name,
            Terms terms,
            LimitEnforcer enforcer,
            @Nullable SharedPauses pauses,
            RateLimitHeaderReader reader) {
        this.reader = reader;
        this.name = name;
        this.named = "Client '" + name + "' (rate-limit.clients." + name + ")";
        this.terms = terms;
        this.limits = new ClientLimits(terms.limits, terms.key != null);
        this.enforcer = enforcer;
        this.ticker = enforcer.ticker();
        this.room = new WaitingRoom(ticker, () -> MAX_WAITING);
        this.fleet = pauses == null || !terms.obeys.contains(Obey.RETRY_AFTER)
                ? null
                : new FleetPauses(name, pauses, ticker, terms.maxPauseNanos);
        if (fleet != null) {
            fleet.follow(this::pausedElsewhere);
        }
        if (terms.key != null) {
            terms.limits.forEach(ConfiguredLimit::usedWithKeys);
        }
        terms.limits.forEach(limit -> limit.blockUses().add(terms.key != null, false, "rate-limit.clients." + name));
    }

    /**
     * Waits until a call may go. Never sleeps on an event loop, nor in one of the last half of the threads that serve requests: a
     * call that would have to wait there is refused.
     *
     * @return the call, which is to be informed of its outcome
     * @throws RateLimitExceededException when the call may not go
     * @throws CancellationException when interrupted while it waits; the flag is set
     */
    ClientCall enter(OutgoingRequest request) {
        return enter(request, null);
    }

    /**
     * {@link #enter} for a call that can be cancelled, which ends its wait a tenth of a second later at the latest.
     *
     * @param cancelled whether it was; null for a call that cannot be
     */
    ClientCall enter(OutgoingRequest request, @Nullable BooleanSupplier cancelled) {
        CurrentRequest caller = enforcer.continuations().request(key -> null);
        try {
            return enforcer.threads().await(named, REMEDY, terms.policy == Policy.WAIT, mayWait -> {
                CompletableFuture<ClientCall> entered = enterAsync(request, mayWait ? terms.maxWaitNanos : 0, caller);
                if (cancelled != null) {
                    cancelWhen(cancelled, entered);
                }
                return entered;
            });
        } catch (InterruptedException ex) {
            Thread.currentThread().interrupt();
            CancellationException interrupted = new CancellationException(
                    "The thread was interrupted while a call of client '" + name + "' waited");
            interrupted.initCause(ex);
            throw interrupted;
        }
    }

    /**
     * Looks again and again while the call waits: libraries report a cancellation to no interceptor. By the clock of the system:
     * a cancellation has nothing to do with the time of limits, which an alarm could advance in a test.
     */
    private void cancelWhen(BooleanSupplier cancelled, CompletableFuture<ClientCall> entered) {
        if (cancelled.getAsBoolean()) {
            entered.cancel(false);
        } else if (!entered.isDone()) {
            Ticker real = Ticker.system();
            Runnable unused = real.schedule(real.nanos() + LOOK_NANOS, () -> cancelWhen(cancelled, entered));
        }
    }

    /**
     * {@link #enter} without a thread.
     *
     * @param caller the web request that makes the call; null outside of one
     * @return fails with {@link RateLimitExceededException} when the call may not go; cancelling it gives everything back
     */
    CompletableFuture<ClientCall> enterAsync(OutgoingRequest request, @Nullable CurrentRequest caller) {
        return enterAsync(request, terms.maxWaitNanos, caller);
    }

    private CompletableFuture<ClientCall> enterAsync(
            OutgoingRequest request, long maxWaitNanos, @Nullable CurrentRequest caller) {
        Object key;
        try {
            key = terms.key == null ? null : terms.key.key(request);
        } catch (IllegalStateException ex) {
            return CompletableFuture.failedFuture(ex);
        }
        ClientGate gate = gate(CanonicalKey.textOrNull(key));
        return new ClientCall(this, gate, request.place(), key, maxWaitNanos, caller).enter();
    }

    /** Ends the waits of calls when the context closes, as limits do. Calls that need not wait still go. */
    void close() {
        room.close();
    }

    private ClientGate gate(@Nullable String key) {
        // Other instances learn the digest of a key, which may be an account.
        ClientGate gate = gates.get(
                key == null ? NO_KEY : CanonicalKey.digest(key),
                digest -> new ClientGate(digest, key, room, ticker, terms.maxPauseNanos));
        long pause = fleet == null ? 0 : fleet.left(gate.digest());
        if (pause > 0) {
            gate.pause(pause);
        }
        return gate;
    }

    private void warnOfKeys(@Nullable String digest, @Nullable ClientGate gate, RemovalCause cause) {
        if (evicts.compareAndSet(false, true)) {
            LOG.warn(named + " has more than " + MAX_KEYS
                    + " keys. The least used keys are evicted with their pauses and"
                    + " quotas, so that their next calls can be sent during a pause. Use a key with fewer values.");
        }
    }

    private void pausedElsewhere(String digest, long nanos) {
        ClientGate gate = gates.getIfPresent(digest);
        if (gate != null && gate.pause(nanos)) {
            long seconds = Math.max(1, TimeUnit.NANOSECONDS.toSeconds(nanos + 500_000_000));
            LOG.warn(pauses() + PropertyText.of(Duration.ofSeconds(seconds))
                    + ": another instance got a response that requires it from " + terms.hosts + ".");
        }
    }

    private String pauses() {
        return "Client '" + name + (terms.policy == Policy.SHADOW ? "' would pause for " : "' pauses for ");
    }

    Terms terms() {
        return terms;
    }

    ClientLimits limits() {
        return limits;
    }

    LimitEnforcer enforcer() {
        return enforcer;
    }

    Ticker ticker() {
        return ticker;
    }

    /** A call goes after a wait. */
    void wentLate() {
        delayed.increment();
    }

    /** A refusal on this side. */
    void refused() {
        refusedHere.increment();
    }

    /** A refusal by the gate, of a name that no limit has. */
    RateLimitExceededException refusal(long retryAfterNanos) {
        Duration retryAfter = Duration.ofNanos(retryAfterNanos);
        return new RateLimitExceededException(new Decision(
                "clients." + name, false, Duration.ZERO, retryAfter, false, 0, retryAfter, Decision.Source.MEMORY));
    }

    /** A reader of the application may fail, then null: the call has been made all the same. */
    private @Nullable ResponseLimits read(int status, Function<String, @Nullable List<String>> fields) {
        try {
            long epochMillis = TimeUnit.NANOSECONDS.toMillis(ticker.epochNanos());
            return Objects.requireNonNull(reader.read(status, fields, epochMillis), "the reader returns null");
        } catch (RuntimeException | Error ex) {
            if (readerFailed.compareAndSet(false, true)) {
                LOG.warn(
                        "Client '" + name + "' ignores the headers of a response, because they cannot be read: " + ex,
                        ex);
            }
            return null;
        }
    }

    /** Reads the answer to a call. */
    void answered(
            ClientGate gate,
            Pass pass,
            Responder responder,
            int status,
            Function<String, @Nullable List<String>> fields) {
        boolean refused = status == 429;
        ResponseLimits understood = read(status, fields);
        ResponseLimits answer = understood == null ? ResponseLimits.SILENT : understood;
        long pause = terms.obeys.contains(Obey.RETRY_AFTER) ? answer.retryAfterNanos() : 0;
        boolean isOld = ResponseHeaders.isOfCache(fields);
        // What another host counts is not what the host counts that was called.
        boolean names = terms.obeys.contains(Obey.RATE_LIMIT) && !isOld && responder != Responder.OWN_HOST;
        List<Quota> quotas = names ? answer.quotas() : List.of();
        if (refused) {
            refusedThere.increment();
        }
        if (pause > 0 && gate.pause(pause)) {
            LOG.warn(pauses()
                    + PropertyText.of(Duration.ofNanos(Math.min(pause, terms.maxPauseNanos))) + ": a " + status
                    + " response of " + terms.hosts + " has Retry-After " + PropertyText.of(Duration.ofNanos(pause))
                    + ".");
            if (fleet != null && terms.policy != Policy.SHADOW) {
                fleet.publish(gate.digest(), pause);
            }
        }
        boolean successful = status >= SUCCESS && status < REDIRECTION;
        boolean isUnlimited = successful
                && !isOld
                && responder == Responder.CALLED
                && understood != null
                && !ResponseHeaders.haveQuotas(fields);
        if (refused || pause > 0 || !quotas.isEmpty() || isUnlimited) {
            gate.answered(pass, new ResponseLimits(pause, quotas), refused || pause > 0);
        } else if (status >= SERVER_ERROR) {
            gate.failed(pass);
        } else {
            gate.admittedThere(pass);
        }
    }

    /** As {@link ConfiguredLimit#usedBy}. */
    void usedBy(boolean withThread) {
        terms.limits.forEach(limit -> limit.usedBy(withThread));
    }

    /** Forgets the answers, for the next test. */
    public void forget() {
        gates.invalidateAll();
    }

    /** The name in the properties. */
    public String name() {
        return name;
    }

    /** Returns how many calls went after a wait, at the gate or for a limit. */
    public long delayed() {
        return delayed.sum();
    }

    /** Returns how many calls were refused on this side, by limits or because the other side wants a longer pause. */
    public long refusedHere() {
        return refusedHere.sum();
    }

    /** Returns how many calls the other side has answered with 429. */
    public long refusedThere() {
        return refusedThere.sum();
    }

    /** Returns how many keys pause now. */
    public long pausedKeys() {
        return gates.asMap().values().stream()
                .filter(gate -> pauseLeft(gate) > 0)
                .count();
    }

    /** A dry run holds nobody. */
    private long pauseLeft(ClientGate gate) {
        return terms.policy == Policy.SHADOW ? 0 : gate.pauseLeft();
    }

    /**
     * The state as the endpoint shows it.
     *
     * @param shownKey returns the text to show instead of a key
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
        gates.asMap().values().stream().limit(10).forEach(gate -> {
            Map<String, Object> state = new LinkedHashMap<>();
            if (gate.key() != null) {
                state.put("key", shownKey.apply(gate.key()));
            }
            long pause = pauseLeft(gate);
            if (pause > 0) {
                state.put("pausedFor", PropertyText.seconds(Duration.ofNanos(pause)));
            }
            state.put("waiting", gate.waiting());
            state.put("quotas", gate.report());
            states.add(state);
        });
        report.put("state", states);
        return report;
    }
}
