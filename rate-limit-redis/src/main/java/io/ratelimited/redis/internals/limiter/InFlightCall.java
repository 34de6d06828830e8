package io.ratelimited.redis.internals.limiter;

import io.ratelimited.core.Decision;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.WaitingRoom;
import io.ratelimited.core.internals.Permits;
import io.ratelimited.redis.internals.connection.GuardedConnection.DeliveryKind;
import io.ratelimited.redis.internals.connection.Replies;
import io.ratelimited.redis.internals.connection.ScriptArguments;
import io.ratelimited.redis.internals.script.ScriptFamily;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Function;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * A call in flight: its permits count in Redis until it is released, or its lease ends. Redis knows the call by an id, so
 * that registering and ending it twice do no harm: both are repeated until Redis has them.
 */
final class InFlightCall implements JointPlace, WaitingRoom.Waiter {

    /*
     * F1 WAITING becomes LIVE or ENDED, LIVE becomes ENDED, once each: the thread that changes the phase takes the next
     *    steps, and the others do nothing. So a call counts on this node once, and ends once.
     * F2 A call counts on this node before it is LIVE, so that nobody ends it before it counts. A thread that then finds it
     *    ENDED undoes the count.
     * F3 Redis has the end of every id that it may have heard of: of a live call when it is released, and at once of an
     *    attempt that has failed without a reply. The next attempt has an id of its own, so that the end of the last one
     *    cannot end it.
     * F4 A registration is sent only for a LIVE call. One without a reply may still run after the end of the call, so that
     *    the end is sent again a second after Redis had it.
     * F5 The id does not change any more once the call is LIVE: it is the key by which the limiter finds the call.
     * F6 A call that waits in the queue leaves it in one way: admitted, decided without Redis, failed, or crowded out. Its turn
     *    completes then, after its reply is set, unless it has failed.
     */

    private static final long AFTER_AN_OUTAGE_MILLIS = 1_000;

    private enum Phase {
        /** Not admitted yet: asking, or in the {@link ConcurrencyQueue}. */
        WAITING,
        LIVE,
        ENDED
    }

    private final RedisConcurrencyLimiter limiter;
    private final @Nullable String text;
    /** The name of the key in Redis. */
    final String name;

    final long permits;
    private final long maxWait;
    private final AtomicReference<Phase> phase = new AtomicReference<>(Phase.WAITING);
    private final CompletableFuture<Boolean> turn = new CompletableFuture<>();
    /** Id of the last attempt to take a place: the end of one attempt must not end the next one. */
    private volatile String id;

    private volatile long deadline;
    private volatile long admittedAt;
    /** The limit had a lease when the call was admitted. */
    private volatile boolean leased;

    private volatile ScriptReply reply;
    /** Waits in the queue. */
    private volatile boolean queued;
    /** Waits in the queue, or has done so. */
    private volatile boolean delayed;
    /** Redis may know the call. */
    private volatile boolean sent;
    /** A command that registers the call has no reply, and may still run. */
    private volatile boolean doubtful;

    InFlightCall(RedisConcurrencyLimiter limiter, @Nullable String text, long permits, long maxWait) {
        this.limiter = limiter;
        this.text = text;
        this.name = limiter.name(text);
        this.permits = permits;
        this.maxWait = maxWait;
        this.id = limiter.context().nodes().callId();
        this.reply = limiter.local(ScriptReply.UNKNOWN, name);
    }

    String id() {
        return id;
    }

    /** Asks Redis once; a call that may wait then joins the queue of this node. */
    CompletableFuture<Reservation> begin() {
        boolean never = limiter.parameters().isNever(permits);
        boolean behind = limiter.hasQueue(name);
        if (behind && maxWait > 0 && !never && !limiter.connection().isDown(name)) {
            queue();
            return CompletableFuture.completedFuture(this);
        }
        return ask(behind ? "peek" : "take").thenApply(answer -> {
            if (answer.admitted() && !behind) {
                admitted(answer);
            } else {
                reply = answer.never() ? answer : answer.withOutcome(ScriptReply.UNKNOWN);
                if (maxWait > 0 && !behind && !answer.never()) {
                    queue();
                }
            }
            return this;
        });
    }

    /** Decides by the calls in flight on this node. */
    void beginLocally() {
        if (!refuseLocally() && (limiter.hasQueue(name) || !admitLocally())) {
            reply = limiter.local(ScriptReply.UNKNOWN, name);
            if (maxWait > 0) {
                queue();
            }
        }
    }

    private void queue() {
        deadline = limiter.context().ticker().nanos() + maxWait;
        delayed = true;
        queued = true;
        try {
            limiter.queue(this);
        } catch (RuntimeException | Error ex) {
            // The caller gets no reservation that it could release.
            cancel();
            throw ex;
        }
    }

    CompletableFuture<ScriptReply> ask(String operation) {
        ScriptParameters parameters = limiter.parameters();
        boolean takes = operation.equals("take");
        sent |= takes;
        return limiter.eval(name, parameters, arguments(operation, parameters, id, 0))
                .thenApply(values -> parameters.read(values, List.of(new PermitRequest(permits, 0)))[0])
                .whenComplete((answer, failure) -> {
                    if (failure != null && takes && !Replies.hasChangedNothing(failure)) {
                        // It may have been admitted all the same, or still be.
                        doubtful = true;
                        giveBack();
                        id = limiter.context().nodes().callId();
                    }
                });
    }

    private ScriptArguments arguments(String operation, ScriptParameters parameters, String attempt, long micros) {
        return parameters.begin(operation, limiter.connection().time()).addPacked(attempt, 1, permits, micros, 0, 0);
    }

    @Override
    public void appendTo(ScriptArguments args) {
        sent = true;
        args.addPacked(id, 1, permits, 0, 0, 0);
    }

    @Override
    public void failedTogether(Throwable failure) {
        if (!Replies.hasChangedNothing(failure)) {
            // It may have been admitted all the same, or still be.
            doubtful = true;
            giveBack();
        }
    }

    /** Admitted by Redis. Counts on this node before anybody can end it. */
    @Override
    public void admitted(ScriptReply answer) {
        limiter.count(this, Long.MAX_VALUE);
        start(answer);
    }

    /** Decided by this node alone; false while one of its calls has to end first. */
    boolean decideLocally() {
        return refuseLocally() || admitLocally();
    }

    /** Refused if no call that ends on this node makes room for it: others would wait behind it in vain. */
    private boolean refuseLocally() {
        ScriptReply refusal = limiter.tooHeavy(permits, maxWait, name);
        if (refusal != null) {
            decided(refusal);
        }
        return refusal != null;
    }

    /** Admitted by this node alone, if it has room. */
    private boolean admitLocally() {
        boolean fits = limiter.countInShare(this);
        if (fits) {
            start(limiter.local(0, name));
        }
        return fits;
    }

    private void start(ScriptReply answer) {
        admittedAt = limiter.context().ticker().nanos();
        leased = answer.parameters().limit().lease() != null;
        if (!leaveQueue(Phase.LIVE, answer)) {
            end();
        } else if (answer.parameters() != limiter.parameters()) {
            // Redis has admitted it under the lease before, and the calls that were live at the change are registered
            // anew.
            register();
        }
    }

    /**
     * Refuses the call; or lets it go uncounted, because the limit does not protect while Redis is away.
     */
    void decided(ScriptReply answer) {
        leaveQueue(answer.admitted() ? Phase.LIVE : Phase.ENDED, answer);
    }

    void failed(RuntimeException failure) {
        if (phase.compareAndSet(Phase.WAITING, Phase.ENDED)) {
            turn.completeExceptionally(failure);
            // Whoever asks before waits for the turn, and hears of the failure.
            queued = false;
        }
    }

    private boolean leaveQueue(Phase next, ScriptReply answer) {
        if (!phase.compareAndSet(Phase.WAITING, next)) {
            return false;
        }
        reply = answer;
        queued = false;
        turn.complete(next == Phase.LIVE);
        return true;
    }

    /**
     * The call still runs: keeps its permits from lapsing before its lease ends. An instance whose limit has no lease, as during a
     * rollout, takes a later end for one of a clock that has stepped back.
     */
    void renew() {
        if (!limiter.connection().isDown(name)) {
            register();
        }
    }

    /** The lease of the limit now, as in memory; null for a call that was admitted without one. */
    private @Nullable Duration lease() {
        return leased ? limiter.limit().lease() : null;
    }

    /** Registers the call with Redis, which may have forgotten it or never have known it. */
    void register() {
        deliver(DeliveryKind.REGISTRATION, limiter.parameters(), this::registration, () -> {});
    }

    private @Nullable ScriptArguments registration() {
        if (phase.get() != Phase.LIVE) {
            return null;
        }
        sent = true;
        // It may be run after the end of the call, which is then sent again.
        doubtful = true;
        return arguments("renew", limiter.parameters(), id, leftMicros());
    }

    /** Nanoseconds until the lease of the call ends, 0 or less if it has; {@link Long#MAX_VALUE} for a call without one. */
    long leaseLeft() {
        Duration lease = lease();
        return lease == null
                ? Long.MAX_VALUE
                : lease.toNanos() - (limiter.context().ticker().nanos() - admittedAt);
    }

    private long leftMicros() {
        return lease() == null
                ? ScriptFamily.micros(ScriptFamily.Concurrency.NODE_LEASE)
                : Math.max(0, leaseLeft() / 1000);
    }

    private void end() {
        limiter.ended(this);
        giveBack();
        limiter.serve(name);
    }

    private void giveBack() {
        if (sent) {
            String ended = id;
            // After an outage a server may run an old command of one connection after a new one of another. A second
            // after it had the end of the call, nothing old is pending any more.
            deliverEnd(ended, doubtful ? () -> endAgain(ended) : () -> {});
        }
    }

    private void endAgain(String attempt) {
        limiter.connection().later(AFTER_AN_OUTAGE_MILLIS, () -> deliverEnd(attempt, () -> {}));
    }

    private void deliverEnd(String attempt, Runnable delivered) {
        ScriptParameters parameters = limiter.parameters();
        deliver(DeliveryKind.END, parameters, () -> arguments("cancel", parameters, attempt, 0), delivered);
    }

    private void deliver(
            DeliveryKind kind,
            ScriptParameters parameters,
            Supplier<@Nullable ScriptArguments> arguments,
            Runnable delivered) {
        List<String> key = List.of(parameters.fullName(name));
        limiter.connection().deliver(kind, key, arguments, reply -> delivered.run());
    }

    @Override
    public boolean isRefused() {
        return !queued && !reply.admitted();
    }

    @Override
    public long waitNanos() {
        return 0;
    }

    @Override
    public boolean mayWait() {
        return delayed;
    }

    @Override
    public Decision decision() {
        return queued ? reply.withOutcome(0).decision() : reply.decision();
    }

    @Override
    public boolean await() throws InterruptedException {
        return queued ? limiter.waitingRoom().await(turn, this::alarm, this) : turnOrReply();
    }

    @Override
    public CompletableFuture<Boolean> awaitAsync() {
        if (!queued) {
            return CompletableFuture.completedFuture(turnOrReply());
        }
        // Not on the thread of the connection, which all calls share: the callbacks of a caller may follow.
        CompletableFuture<Boolean> future =
                turn.thenApplyAsync(Function.identity(), limiter.context().callers());
        return limiter.waitingRoom().awaitAsync(future, this::alarm, this);
    }

    private boolean turnOrReply() {
        return turn.isCompletedExceptionally() ? turn.join() : reply.admitted();
    }

    private Runnable alarm() {
        return limiter.context().ticker().schedule(deadline, this::crowdOut);
    }

    @Override
    public @Nullable Object key() {
        return text;
    }

    @Override
    public boolean mayGo() {
        return phase.get() == Phase.LIVE;
    }

    /** Leaves the queue, unless admitted meanwhile. */
    @Override
    public void crowdOut() {
        if (leaveQueue(Phase.ENDED, reply.withOutcome(ScriptReply.UNKNOWN))) {
            limiter.unqueue(this);
        }
    }

    @Override
    public void settle(long permits) {
        throw Permits.nothingToCharge(limiter.limit().name());
    }

    @Override
    public void cancel() {
        if (queued) {
            crowdOut();
        }
        release();
    }

    @Override
    public void release() {
        if (phase.compareAndSet(Phase.LIVE, Phase.ENDED)) {
            end();
        }
    }
}
