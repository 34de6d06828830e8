package io.ratelimited.redis;

import io.ratelimited.core.AllOf;
import io.ratelimited.core.Claim;
import io.ratelimited.core.Reservation;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;

/** Several limits on one call, decided by one script call: all of them, or none and nothing has changed. */
final class Joint {

    private final RedisBackend backend;
    private final List<Claim> claims;
    private final List<RedisRateLimiter> limiters = new ArrayList<>();
    private final List<String> names = new ArrayList<>();
    private final List<RedisTerms> terms = new ArrayList<>();
    private final List<Long> waits = new ArrayList<>();

    Joint(RedisBackend backend, List<Claim> claims) {
        this.backend = backend;
        this.claims = claims;
        for (Claim claim : claims) {
            RedisRateLimiter limiter = (RedisRateLimiter) claim.limiter();
            limiters.add(limiter);
            names.add(limiter.name(RedisKeys.text(claim.key())));
            terms.add(limiter.terms());
            waits.add(limiter.maxWait(claim.maxWaitNanos()));
        }
    }

    /** The reservations of all claims, or a single refused one. */
    CompletableFuture<List<Reservation>> decide() {
        for (int i = 0; i < claims.size(); i++) {
            long permits = claims.get(i).permits();
            if (permits < 1) {
                throw new IllegalArgumentException("permits must be at least 1: " + permits);
            }
            Verdict known = limiters.get(i).inquiries().knownUnleased(names.get(i), permits, waits.get(i));
            if (known != null && !known.admitted()) {
                return CompletableFuture.completedFuture(refused(i, known));
            }
        }
        long sentAt = backend.ticker().nanos();
        return backend.eval(Script.ALL, names.toArray(String[]::new), arguments())
                .thenApply(reply -> decided(reply, sentAt));
    }

    private Words arguments() {
        Words args = new Words().add(backend.time()).add("take").add(claims.size());
        for (int i = 0; i < claims.size(); i++) {
            limiters.get(i).inquiries().appendTo(args, terms.get(i));
        }
        args.add(1);
        for (int i = 0; i < claims.size(); i++) {
            long permits = claims.get(i).permits();
            long wait = Math.min(RedisTerms.FAR, waits.get(i) / 1000);
            Inquiries.add(args, permits, terms.get(i).cost(permits)).add(wait);
        }
        return args;
    }

    private List<Reservation> decided(List<Object> reply, long sentAt) {
        List<Verdict> verdicts = new ArrayList<>();
        int refused = -1;
        for (int i = 0; i < claims.size(); i++) {
            Verdict verdict = Verdict.of(reply, 4 * i, terms.get(i));
            verdicts.add(verdict);
            if (!verdict.admitted() && refused < 0) {
                refused = i;
            }
            if (verdict.hasRetry()) {
                Call call = new Call(claims.get(i).permits(), waits.get(i), 0);
                limiters.get(i).inquiries().denials().add(names.get(i), call, verdict, sentAt, 0);
            }
        }
        if (refused >= 0) {
            return refused(refused, verdicts.get(refused));
        }
        List<Reservation> taken = new ArrayList<>();
        for (int i = 0; i < claims.size(); i++) {
            limiters.get(i).inquiries().denials().forget(names.get(i));
            taken.add(limiters.get(i).reservation(names.get(i), claims.get(i).permits(), verdicts.get(i)));
        }
        return taken;
    }

    private List<Reservation> refused(int claim, Verdict verdict) {
        Reservation refused = limiters.get(claim)
                .reservation(names.get(claim), claims.get(claim).permits(), verdict);
        return List.of(AllOf.refused(refused.decision(), claim));
    }

    /** Redis has not decided. */
    List<Reservation> fallback(Throwable failure) {
        List<Reservation> taken = new ArrayList<>();
        try {
            for (int i = 0; i < claims.size(); i++) {
                Claim claim = claims.get(i);
                Reservation reservation = limiters.get(i)
                        .fallback()
                        .reserve(RedisKeys.text(claim.key()), claim.permits(), waits.get(i), failure);
                if (reservation.isRefused()) {
                    taken.forEach(Reservation::cancel);
                    return List.of(AllOf.refused(reservation.decision(), i));
                }
                taken.add(reservation);
            }
        } catch (RedisUnavailableException ex) {
            taken.forEach(Reservation::cancel);
            throw ex;
        }
        return taken;
    }
}
