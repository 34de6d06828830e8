package io.ratelimited.redis.internals.limiter;

import io.ratelimited.core.CanonicalKey;
import io.ratelimited.core.Decision;
import io.ratelimited.core.RateLimiter.Callbacks;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.WaitingRoom;
import io.ratelimited.core.several.AllOf;
import io.ratelimited.core.several.Claim;
import io.ratelimited.redis.internals.connection.Replies;
import io.ratelimited.redis.internals.connection.Script;
import io.ratelimited.redis.internals.connection.ScriptArguments;
import io.ratelimited.redis.internals.limiter.KnownBlocks.Known;
import io.ratelimited.redis.internals.script.ScriptBlocks;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeoutException;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Several limits on one call: all of them admit it, or nothing is taken. One script decides where it may have all keys, and the
 * call waits for no place. Otherwise, while their slot moves, and where Redis does not decide, all limits are asked at the same
 * time and, if all would admit the call, charged at the same time, places one after the other; the permits are given back if
 * another call came between. A call waits for Redis at most for the timeout in all.
 */
final class MultiLimitCall {

    private final List<Claim> claims;
    private final List<Part> parts = new ArrayList<>();
    private final long othersWait;
    private final LimiterContext context;
    /** Redis is asked in several steps, each of which may be in time when all of them are not. */
    private volatile boolean inSteps;

    /** A claim with the longest wait that its limit allows now. */
    private record Part(RemoteLimiter limiter, @Nullable String caller, String name, Wanted wanted) {

        private PermitRequest request() {
            return new PermitRequest(wanted, caller);
        }

        /** The blocks of a limit under which the key can be blocked; else null. */
        private @Nullable ScriptBlocks blocks(ScriptParameters parameters) {
            return caller == null ? null : parameters.blocks();
        }

        private Decision withoutRedis(Throwable failure) {
            return limiter.peekWithoutRedis(caller, wanted, failure);
        }

        private boolean isPlace() {
            return limiter.limit().algorithm().countsCallsInFlight();
        }
    }

    /**
     * A part of a script call.
     *
     * @param known as of {@link InstanceBlocks#beforeAsking}; null for a place
     * @param place null for permits that count over time
     */
    private record Sent(@Nullable Known known, @Nullable JointPlace place) {}

    /** @param othersWait nanoseconds that the call has to wait for limits elsewhere */
    MultiLimitCall(List<Claim> claims, long othersWait, LimiterContext context) {
        this.claims = claims;
        this.othersWait = othersWait;
        this.context = context;
        for (Claim claim : claims) {
            RemoteLimiter limiter = (RemoteLimiter) claim.limiter();
            String caller = CanonicalKey.textOrNull(claim.key());
            parts.add(new Part(limiter, caller, limiter.name(caller), limiter.wanted(caller, claim)));
        }
    }

    /** The reservations of all claims, or a single refused one. */
    List<Reservation> reserve() {
        try {
            return context.connection().await(WaitingRoom.orGivenBack(decide(), MultiLimitCall::giveBack));
        } catch (ExecutionException ex) {
            return withoutRedis(ex);
        }
    }

    /** {@link #reserve} for callers that must not block. */
    CompletableFuture<List<Reservation>> reserveAsync(Callbacks callbacks) {
        CompletableFuture<List<Reservation>> asked = WaitingRoom.orGivenBack(decide(), MultiLimitCall::giveBack);
        context.connection().limitTime(asked, () -> {});
        return asked.handleAsync(
                (decided, failure) -> decided != null ? decided : withoutRedis(failure), context.callers(callbacks));
    }

    /** Returns what each limit would decide. Asks all of them at the same time. */
    List<Decision> look(long knownNanos) {
        List<CompletableFuture<Decision>> asked = parts.stream()
                .map(part -> part.limiter.lookInRedis("ask", part.caller, part.wanted, knownNanos))
                .toList();
        try {
            context.connection().await(CompletableFuture.allOf(asked.toArray(CompletableFuture<?>[]::new)));
        } catch (ExecutionException ex) {
            // Those that are not decided yet have failed for the same reason, and the others are.
            asked.forEach(one -> one.completeExceptionally(Replies.cause(ex)));
        }
        return IntStream.range(0, asked.size())
                .mapToObj(i -> asked.get(i)
                        .handle((decision, failure) ->
                                decision != null ? decision : parts.get(i).withoutRedis(failure))
                        .join())
                .toList();
    }

    private static void giveBack(List<Reservation> reservations) {
        reservations.forEach(Reservation::cancel);
    }

    private CompletableFuture<List<Reservation>> decide() {
        List<ScriptParameters> used =
                parts.stream().map(part -> part.limiter.parameters()).toList();
        return fitsOneScript(used) ? byOneScript(used) : byScriptsOfTheirOwn(null);
    }

    private boolean fitsOneScript(List<ScriptParameters> used) {
        Set<String> names = new HashSet<>();
        String caller = parts.get(0).caller;
        for (int i = 0; i < used.size(); i++) {
            Part part = parts.get(i);
            ScriptParameters current = used.get(i);
            if (current.isConstant()
                    || current.isNever(part.wanted.permits())
                    || !(part.isPlace() ? isTakenAtOnce(i) : rate(part).blocks.owed(part.caller, current) == null)
                    || !names.add(part.name())) {
                return false;
            }
            boolean sameSlot = caller != null && Objects.equals(caller, part.caller);
            if (context.connection().separatesSlots() && !sameSlot) {
                return false;
            }
        }
        return true;
    }

    /** Returns whether a place is had at once or not at all, without a look at the queue of this node. */
    private boolean isTakenAtOnce(int place) {
        Part part = parts.get(place);
        return part.wanted.permits() > 0 && claims.get(place).maxWaitNanos() == 0 && !part.limiter.hasQueue(part.name);
    }

    private CompletableFuture<List<Reservation>> byOneScript(List<ScriptParameters> used) {
        List<Reservation> remembered = remembered(used);
        if (remembered != null) {
            return CompletableFuture.completedFuture(remembered);
        }
        // Permits that are taken or come back while the script runs must be noticed.
        parts.forEach(part -> part.limiter.states().of(part.name()));
        long sentAt = context.ticker().nanos();
        List<Sent> sent = new ArrayList<>();
        List<String> keys = new ArrayList<>();
        List<String> blocks = new ArrayList<>();
        for (int i = 0; i < used.size(); i++) {
            Part part = parts.get(i);
            sent.add(sent(part, used.get(i)));
            keys.add(used.get(i).fullName(part.name()));
            if (part.blocks(used.get(i)) != null) {
                blocks.add(ScriptBlocks.fullName(used.get(i).fullName(part.name())));
            }
        }
        keys.addAll(blocks);
        return context.connection()
                .eval(
                        Script.DECIDE,
                        keys.toArray(String[]::new),
                        arguments(used, sent),
                        // The call was decided without it.
                        reply -> giveBack(decided(used, reply, sentAt, sent)))
                .thenApply(reply -> decided(used, reply, sentAt, sent))
                .whenComplete((taken, failure) -> {
                    if (failure != null) {
                        places(sent).forEach(place -> place.failedTogether(failure));
                    }
                })
                .exceptionallyCompose(failure -> Replies.areKeysApart(failure)
                        ? byScriptsOfTheirOwn(null)
                        : CompletableFuture.failedFuture(failure));
    }

    private static Sent sent(Part part, ScriptParameters parameters) {
        JointPlace place = part.limiter.jointPlace(part.caller, part.wanted.permits());
        return new Sent(place == null ? rate(part).blocks.beforeAsking(part.caller, parameters) : null, place);
    }

    private static Stream<JointPlace> places(List<Sent> sent) {
        return sent.stream().map(Sent::place).filter(Objects::nonNull);
    }

    private ScriptArguments arguments(List<ScriptParameters> used, List<Sent> sent) {
        StringBuilder operation = new StringBuilder("take ");
        used.forEach(limit -> operation.append(limit.letter()));
        List<@Nullable ScriptBlocks> blocks = blocks(used);
        boolean blocking = blocks.stream().anyMatch(Objects::nonNull);
        operation.append(blocking ? " " : "");
        for (ScriptBlocks own : blocking ? blocks : List.<@Nullable ScriptBlocks>of()) {
            operation.append(own == null ? ScriptBlocks.NO_MARK : own.mark());
        }
        ScriptArguments args =
                new ScriptArguments().add(context.connection().time()).add(operation.toString());
        used.forEach(limit -> limit.appendTo(args));
        for (int i = 0; i < used.size(); i++) {
            ScriptBlocks own = blocks.get(i);
            if (own != null) {
                own.appendTo(args, rate(parts.get(i)).blocks.liftedMicros());
            }
        }
        for (int i = 0; i < used.size(); i++) {
            JointPlace place = sent.get(i).place();
            if (place == null) {
                used.get(i).append(args, parts.get(i).request(), 1);
            } else {
                place.appendTo(args);
            }
        }
        return args;
    }

    private List<@Nullable ScriptBlocks> blocks(List<ScriptParameters> used) {
        List<@Nullable ScriptBlocks> blocks = new ArrayList<>();
        for (int i = 0; i < used.size(); i++) {
            blocks.add(parts.get(i).blocks(used.get(i)));
        }
        return blocks;
    }

    /**
     * Returns the refusal that the script would give now, from what is remembered of each limit: that it refuses the call, or that
     * it would admit it. Null if one is not known, or if none is known to refuse.
     */
    private @Nullable List<Reservation> remembered(List<ScriptParameters> used) {
        @Nullable Decision[] refusals = new Decision[parts.size()];
        boolean refused = false;
        for (int i = 0; i < refusals.length; i++) {
            Part part = parts.get(i);
            ScriptReply denied =
                    part.isPlace() ? null : rate(part).knownUnleased(part.name(), used.get(i), part.wanted);
            if (denied != null && !denied.admitted()) {
                refusals[i] = denied.decision();
                refused = true;
            }
        }
        for (int i = 0; refused && i < refusals.length; i++) {
            refused = refusals[i] != null || wouldAdmit(parts.get(i), used.get(i));
        }
        return refused ? refused(refusals) : null;
    }

    /** Returns whether a limit is known to admit the call. */
    private boolean wouldAdmit(Part part, ScriptParameters current) {
        KeyState state = part.limiter.states().find(part.name);
        return state != null
                && state.admits(current, part.request(), context.ticker().nanos());
    }

    private static RedisRateLimiter rate(Part part) {
        return (RedisRateLimiter) part.limiter;
    }

    private List<Reservation> decided(List<ScriptParameters> used, List<Object> reply, long sentAt, List<Sent> sent) {
        List<Reservation> taken = new ArrayList<>(parts.size());
        List<ScriptReply> replies = new ArrayList<>(parts.size());
        @Nullable Decision[] refusals = new Decision[parts.size()];
        boolean admitted = true;
        List<@Nullable ScriptBlocks> blocks = blocks(used);
        Iterator<ScriptBlocks.State> states = blocks.stream().anyMatch(Objects::nonNull)
                ? ScriptBlocks.read(reply).iterator()
                : Collections.emptyIterator();
        for (int i = 0; i < parts.size(); i++) {
            Part part = parts.get(i);
            @SuppressWarnings("unchecked") // Arrays of a script are lists of what they hold.
            List<Object> own = parts.size() == 1 ? reply : (List<Object>) reply.get(i);
            ScriptReply decided = used.get(i).read(own, List.of(part.request()))[0];
            if (blocks.get(i) != null) {
                ScriptBlocks.State state = states.next();
                ScriptBlocks.State lost = rate(part)
                        .blocks
                        .learn(
                                Objects.requireNonNull(part.caller),
                                used.get(i),
                                state,
                                sent.get(i).known());
                decided = decided.decidedAt(state.nowMicros());
                if (!part.wanted.exempt()) {
                    decided = decided.withBlock(lost == null ? state : lost);
                    // Redis has lost a block that this node knows.
                    refusals[i] = lost == null
                            ? null
                            : ScriptReply.blocked(lost, used.get(i), Decision.Source.DENY_CACHE)
                                    .decision();
                }
            }
            replies.add(decided);
            JointPlace place = sent.get(i).place();
            taken.add(place == null ? rate(part).reservation(part.name(), part.caller, part.wanted, decided) : place);
            if (!decided.admitted()) {
                refusals[i] = decided.decision();
                admitted = false;
            }
        }
        if (!admitted) {
            for (int i = 0; i < parts.size(); i++) {
                Part part = parts.get(i);
                KeyState state = part.limiter.states().of(part.name());
                if (replies.get(i).hasRetry()) {
                    state.refused(part.request(), replies.get(i), sentAt, 0);
                } else if (refusals[i] == null && !part.wanted.exempt()) {
                    state.wouldAdmit(part.request(), replies.get(i), sentAt);
                }
            }
            return refused(refusals);
        }
        for (int i = 0; i < parts.size(); i++) {
            JointPlace place = sent.get(i).place();
            if (place == null) {
                parts.get(i).limiter.states().changed(parts.get(i).name(), sentAt);
            } else {
                place.admitted(replies.get(i));
            }
        }
        if (Arrays.stream(refusals).allMatch(Objects::isNull)) {
            return taken;
        }
        giveBack(taken);
        return refused(refusals);
    }

    private static List<Reservation> refused(@Nullable Decision[] refusals) {
        return List.of(AllOf.refused(refusals));
    }

    /** @param failure the reason why Redis has not decided; null to ask it */
    private CompletableFuture<List<Reservation>> byScriptsOfTheirOwn(@Nullable Throwable failure) {
        inSteps |= failure == null;
        return AllOf.reserveEach(
                claims,
                othersWait,
                claim -> ((RemoteLimiter) claim.limiter()).askOfSeveral(claim, failure),
                claim -> ((RemoteLimiter) claim.limiter()).takeOfSeveral(claim, failure));
    }

    /** Decides when Redis has not. */
    private List<Reservation> withoutRedis(Throwable failure) {
        if (inSteps && Replies.cause(failure) instanceof TimeoutException) {
            context.connection().health().timedOut();
        }
        try {
            return byScriptsOfTheirOwn(failure).join();
        } catch (CompletionException ex) {
            throw ex.getCause() instanceof RuntimeException cause ? cause : ex;
        }
    }
}
