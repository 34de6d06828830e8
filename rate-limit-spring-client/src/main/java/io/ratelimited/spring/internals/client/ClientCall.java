package io.ratelimited.spring.internals.client;

import io.ratelimited.core.End;
import io.ratelimited.core.Policy;
import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.spring.internals.call.Admission;
import io.ratelimited.spring.internals.call.LimitEnforcer;
import io.ratelimited.spring.internals.call.LimitRequest;
import io.ratelimited.spring.internals.client.ClientPace.Pass;
import io.ratelimited.spring.internals.expression.CallResult;
import io.ratelimited.spring.internals.overload.CallEnd;
import io.ratelimited.spring.internals.request.RequestDecisions;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * A call of a client, from its entry to its end. It passes the gate of its key first and the limits then, so that calls
 * after a pause keep to the limits. Once it may go, it is answered or given back once, and ends once; later events are
 * ignored. Thread-safe.
 */
final class ClientCall {

    private final LimitedClient client;
    private final ClientGate gate;
    /** As {@link OutgoingRequest#place}. */
    private final String place;

    private final @Nullable Object key;
    private final long maxWaitNanos;
    /** Of the thread that makes the call: after a pause, another one goes on with it. */
    private final LimitEnforcer enforcer;
    /** The web request that makes the call; null outside of one. */
    private final @Nullable RequestDecisions caller;

    private final long began;
    private final CompletableFuture<ClientCall> entered = new CompletableFuture<>();
    /** The step that the call waits for. */
    private volatile CompletableFuture<?> step = CompletableFuture.completedFuture(null);
    /** Set before the call is {@link #entered}, as the admission is. */
    private @Nullable Pass pass;

    private @Nullable Admission admission;
    /** Whether it has waited, at the gate or for a limit. Its steps follow each other. */
    private boolean delayed;

    private final AtomicBoolean answered = new AtomicBoolean();
    /** Who gives the last answer. */
    private volatile Responder responder = Responder.CALLED;
    /** The status of the answer; 0 while there is none. */
    private volatile int status;

    /** Who responds to a call, behind redirects perhaps. */
    enum Responder {
        /** The place that was called. */
        CALLED,
        /** Another place of its host. */
        SAME_HOST,
        /** Another host of the client. */
        OWN_HOST,
        /** A host that is none of the client's, or a cache. */
        FOREIGN
    }

    ClientCall(
            LimitedClient client,
            ClientGate gate,
            String place,
            @Nullable Object key,
            long maxWaitNanos,
            @Nullable RequestDecisions caller) {
        this.client = client;
        this.gate = gate;
        this.place = place;
        this.key = key;
        this.maxWaitNanos = maxWaitNanos;
        this.enforcer = client.enforcer().ofThisThread();
        this.caller = caller;
        this.began = client.ticker().nanos();
    }

    /**
     * Completes with this call when it may go.
     *
     * @return fails with {@link RateLimitExceededException} when the call may not go; cancelling it gives everything back
     */
    CompletableFuture<ClientCall> enter() {
        entered.whenComplete((done, failure) -> {
            if (failure != null) {
                step.cancel(false);
            }
        });
        enterGate();
        return entered;
    }

    private long waitLeft() {
        return Math.max(0, maxWaitNanos - (client.ticker().nanos() - began));
    }

    /** The steps that can be cancelled; a step that begins after the cancellation is cancelled at once. */
    private <T> CompletableFuture<T> step(CompletableFuture<T> next) {
        step = next;
        if (entered.isDone()) {
            next.cancel(false);
        }
        return next;
    }

    private void enterGate() {
        if (client.terms().policy() == Policy.SHADOW) {
            enterLimits(gate.enterAnyway(place));
            return;
        }
        step(gate.enter(place, waitLeft())).whenComplete((result, failure) -> {
            if (failure != null) {
                entered.completeExceptionally(failure);
            } else if (result.pass() == null) {
                refused(client.refusal(result.retryAfterNanos()));
            } else {
                delayed |= result.delayed();
                enterLimits(result.pass());
            }
        });
    }

    private void enterLimits(Pass given) {
        Policy policy = client.terms().policy();
        long patience = client.terms().maxWaitNanos();
        LimitRequest[] requests =
                client.limits().requests(policy, policy == Policy.SHADOW ? patience : waitLeft(), patience, key);
        if (requests.length == 0) {
            go(given, null);
            return;
        }
        given.waitForLimits();
        step(enforcer.reserveAsync(requests, null)).whenComplete((admitted, failure) -> {
            if (failure != null) {
                gate.giveBack(given);
                refused(CallResult.unwrap(failure));
                return;
            }
            delayed |= admitted.isDelayed();
            if (policy != Policy.SHADOW && gate.holdsAgain(given)) {
                // A response to another call has come while this one waited for its limits.
                admitted.cancel();
                gate.giveBack(given);
                enterGate();
            } else {
                go(given, admitted);
            }
        });
    }

    private void go(Pass given, @Nullable Admission admitted) {
        pass = given;
        admission = admitted;
        if (entered.complete(this)) {
            if (delayed) {
                client.wentLate();
            }
        } else {
            giveBack();
        }
    }

    private void refused(Throwable failure) {
        if (failure instanceof RateLimitExceededException) {
            client.refused();
            if (caller != null) {
                caller.outgoingCallRejected();
            }
        }
        entered.completeExceptionally(failure);
    }

    private Pass pass() {
        return Objects.requireNonNull(pass);
    }

    /** Gives everything back, since the call is not made. */
    void giveBack() {
        if (answered.compareAndSet(false, true)) {
            gate.giveBack(pass());
            if (admission != null) {
                admission.cancel();
            }
        }
    }

    /** Returns whether this is a call of a client. */
    boolean isOf(@Nullable LimitedClient other) {
        return client == other;
    }

    /** Takes who is asked, before the response; of several, behind redirects, the last counts. */
    void answersFrom(Responder asked) {
        responder = asked;
    }

    /**
     * Takes the status and the header fields of the answer.
     *
     * @param fields the values of a field by its name
     */
    void answered(int status, Function<String, @Nullable List<String>> fields) {
        this.status = status;
        if (answered.compareAndSet(false, true)) {
            if (responder == Responder.FOREIGN) {
                gate.admittedThere(pass());
            } else {
                client.answered(gate, pass(), responder, status, fields);
            }
        }
    }

    /** Who has no room for a call of ours says so with 429, too. */
    private static End ofStatus(int status) {
        return status == 429 ? End.OVERLOADED : CallEnd.ofStatus(status);
    }

    /** Ends the call, which is cancelled if it has no answer: it is not in flight any more. */
    void end() {
        end(null);
    }

    /**
     * Ends the call, whose answer was read to its end or did not come: it is not in flight any more.
     *
     * @param failure the reason why there is no answer; null if there is one, or nobody waits for it any more
     */
    void end(@Nullable Throwable failure) {
        if (answered.compareAndSet(false, true)) {
            gate.failed(pass());
        }
        if (admission != null) {
            admission.end(status == 0 || failure != null ? CallEnd.of(failure, failure == null) : ofStatus(status));
        }
    }
}
