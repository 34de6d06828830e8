package io.ratelimited.redis.limiter;

import io.ratelimited.core.AllOf;
import io.ratelimited.core.Claim;
import io.ratelimited.core.Decision;
import io.ratelimited.core.Reservation;
import io.ratelimited.redis.connection.GuardedConnection;
import io.ratelimited.redis.connection.KeyNames;
import io.ratelimited.redis.connection.Replies;
import io.ratelimited.redis.connection.Script;
import io.ratelimited.redis.connection.ScriptArguments;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;

/**
 * Several limits on one call: all of them admit it, or nothing is taken. By one script where all keys may be in one. Where
 * they may not, all limits are asked at the same time and, if all would admit the call, charged at the same time; what was
 * taken is given back if another caller came between. A call waits for Redis at most for the timeout in all.
 */
final class MultiLimitCall {

    private final List<Claim> claims;
    private final LimiterContext context;

    MultiLimitCall(List<Claim> claims, LimiterContext context) {
        this.claims = claims;
        this.context = context;
    }

    /** Whether all claims are for limits on this connection. */
    static boolean canDecide(List<Claim> claims, GuardedConnection connection) {
        for (Claim claim : claims) {
            if (!(claim.limiter() instanceof RemoteLimiter other) || other.connection() != connection) {
                return false;
            }
        }
        return true;
    }

    /** The reservations of all claims, or a single refused one. */
    List<Reservation> reserve() {
        try {
            return Replies.await(decide(), context.connection().timeoutNanos());
        } catch (ExecutionException ex) {
            return withoutRedis(Replies.cause(ex));
        }
    }

    /** {@link #reserve} for callers that must not block. */
    CompletableFuture<List<Reservation>> reserveAsync() {
        CompletableFuture<List<Reservation>> asked = decide();
        context.connection().limitTime(asked);
        CompletableFuture<List<Reservation>> result = new CompletableFuture<>();
        asked.handleAsync(
                        (decided, failure) -> decided != null ? decided : withoutRedis(Replies.cause(failure)),
                        context.callers())
                .whenComplete((reservations, failure) -> {
                    if (failure != null) {
                        result.completeExceptionally(failure);
                    } else if (!result.complete(reservations)) {
                        reservations.forEach(Reservation::cancel);
                    }
                });
        return result;
    }

    private CompletableFuture<List<Reservation>> decide() {
        claims.forEach(claim -> RedisRateLimiter.requirePermits(claim.permits()));
        CompletableFuture<List<Reservation>> result = new CompletableFuture<>();
        (fitsOneScript() ? byOneScript() : byScriptsOfTheirOwn()).whenComplete((reservations, failure) -> {
            if (failure != null) {
                result.completeExceptionally(failure);
            } else if (!result.complete(reservations)) {
                // The caller has given up, and was decided otherwise.
                reservations.forEach(Reservation::cancel);
            }
        });
        return result;
    }

    private boolean fitsOneScript() {
        Set<String> names = new HashSet<>();
        String caller = KeyNames.text(claims.get(0).key());
        for (Claim claim : claims) {
            if (!(claim.limiter() instanceof RedisRateLimiter limiter)
                    || limiter.terms().isConstant()
                    || limiter.terms().isNever(claim.permits())
                    || !names.add(limiter.name(KeyNames.text(claim.key())))) {
                return false;
            }
            boolean sameSlot = caller != null && Objects.equals(caller, KeyNames.text(claim.key()));
            if (context.connection().isCluster() && !sameSlot) {
                return false;
            }
        }
        return true;
    }

    private CompletableFuture<List<Reservation>> byOneScript() {
        List<Part> parts = new ArrayList<>(claims.size());
        for (int i = 0; i < claims.size(); i++) {
            Claim claim = claims.get(i);
            RedisRateLimiter limiter = (RedisRateLimiter) claim.limiter();
            String name = limiter.name(KeyNames.text(claim.key()));
            Part part = new Part(
                    limiter, name, limiter.terms(), claim.permits(), limiter.longestWait(claim.maxWaitNanos()));
            ScriptReply known = limiter.decisions().knownUnleased(name, part.permits, part.maxWait);
            if (known != null && !known.admitted()) {
                return CompletableFuture.completedFuture(refused(known.decision(), i));
            }
            parts.add(part);
        }
        ScriptArguments args = new ScriptArguments()
                .add(context.connection().time())
                .add("take")
                .add(parts.size());
        parts.forEach(part -> part.limiter.decisions().scripts().appendTo(args, part.terms));
        args.add(1);
        parts.forEach(part -> RemoteDecisions.add(args, part.permits, part.terms.cost(part.permits))
                .add(Math.min(LimitTerms.FAR, part.maxWait / 1000)));
        long sentAt = context.ticker().nanos();
        String[] names = parts.stream().map(Part::name).toArray(String[]::new);
        return context.connection().eval(Script.ALL, names, args).thenApply(reply -> decided(parts, reply, sentAt));
    }

    /** A claim in the words of the script. */
    private record Part(RedisRateLimiter limiter, String name, LimitTerms terms, long permits, long maxWait) {}

    private static List<Reservation> decided(List<Part> parts, List<Object> reply, long sentAt) {
        List<Reservation> taken = new ArrayList<>(parts.size());
        int refused = -1;
        for (int i = 0; i < parts.size(); i++) {
            Part part = parts.get(i);
            ScriptReply verdict = ScriptReply.of(reply, 4 * i, part.terms);
            Reservation reservation = part.limiter.reservation(part.name, part.permits, verdict);
            taken.add(reservation);
            if (!verdict.admitted() && refused < 0) {
                refused = i;
            }
            if (verdict.hasRetry()) {
                PermitRequest request = new PermitRequest(part.permits, part.maxWait);
                part.limiter.decisions().denials().add(part.name, request, verdict, sentAt, 0);
            }
        }
        if (refused >= 0) {
            return refused(taken.get(refused).decision(), refused);
        }
        parts.forEach(part -> part.limiter.decisions().denials().forget(part.name));
        return taken;
    }

    /** @param claim the position of the claim that was refused */
    private static List<Reservation> refused(Decision decision, int claim) {
        return List.of(AllOf.refused(decision, claim));
    }

    private CompletableFuture<List<Reservation>> byScriptsOfTheirOwn() {
        List<CompletableFuture<Decision>> asked = new ArrayList<>(claims.size());
        for (Claim claim : claims) {
            RemoteLimiter limiter = (RemoteLimiter) claim.limiter();
            asked.add(limiter.peekInRedis(claim.key(), claim.permits(), claim.maxWaitNanos())
                    .exceptionally(failure -> limiter.peekWithoutRedis(
                            claim.key(), claim.permits(), claim.maxWaitNanos(), Replies.cause(failure))));
        }
        return CompletableFuture.allOf(asked.toArray(CompletableFuture<?>[]::new))
                .thenCompose(all -> {
                    for (int i = 0; i < asked.size(); i++) {
                        Decision decision = asked.get(i).join();
                        if (!decision.admitted()) {
                            return CompletableFuture.completedFuture(refused(decision, i));
                        }
                    }
                    return takeAll();
                });
    }

    private CompletableFuture<List<Reservation>> takeAll() {
        List<CompletableFuture<Reservation>> taken = new ArrayList<>(claims.size());
        for (Claim claim : claims) {
            RemoteLimiter limiter = (RemoteLimiter) claim.limiter();
            taken.add(limiter.reserveInRedis(claim.key(), claim.permits(), claim.maxWaitNanos())
                    .exceptionally(failure -> limiter.reserveWithoutRedis(
                            claim.key(), claim.permits(), claim.maxWaitNanos(), Replies.cause(failure))));
        }
        return CompletableFuture.allOf(taken.toArray(CompletableFuture<?>[]::new))
                .handle((all, failure) -> {
                    List<Reservation> reservations = new ArrayList<>(taken.size());
                    int refused = -1;
                    for (int i = 0; i < taken.size(); i++) {
                        CompletableFuture<Reservation> one = taken.get(i);
                        if (!one.isCompletedExceptionally()) {
                            reservations.add(one.join());
                            refused = refused < 0 && one.join().isRefused() ? i : refused;
                        }
                    }
                    if (failure == null && refused < 0) {
                        return CompletableFuture.completedFuture(reservations);
                    }
                    reservations.forEach(Reservation::cancel);
                    return failure != null
                            ? CompletableFuture.<List<Reservation>>failedFuture(failure)
                            : CompletableFuture.completedFuture(
                                    refused(taken.get(refused).join().decision(), refused));
                })
                .thenCompose(decided -> decided);
    }

    /** Redis has not decided. */
    private List<Reservation> withoutRedis(Throwable failure) {
        List<Reservation> taken = new ArrayList<>();
        try {
            for (int i = 0; i < claims.size(); i++) {
                Claim claim = claims.get(i);
                Reservation reservation = ((RemoteLimiter) claim.limiter())
                        .reserveWithoutRedis(claim.key(), claim.permits(), claim.maxWaitNanos(), failure);
                if (reservation.isRefused()) {
                    taken.forEach(Reservation::cancel);
                    return refused(reservation.decision(), i);
                }
                taken.add(reservation);
            }
        } catch (RuntimeException | Error ex) {
            taken.forEach(Reservation::cancel);
            throw ex;
        }
        return taken;
    }
}
