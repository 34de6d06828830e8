package io.ratelimited.redis.limiter;

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Algorithm.Family;
import io.ratelimited.core.Decision.Source;
import io.ratelimited.core.Ticker;
import io.ratelimited.redis.script.PermitCost;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Refusals remembered until their retry-after, counted from when the command was sent: until then Redis would refuse
 * again, so that an exhausted key costs it nothing. A refusal is remembered for one second at the most, because a
 * permit given back, a reset or a new limit on another node may end it sooner. Bounded in number; thread-safe.
 */
final class DenialCache {

    private static final long LONGEST = TimeUnit.SECONDS.toNanos(1);

    private final Cache<String, Entry> entries;
    private final Ticker ticker;

    private sealed interface Entry permits Denial, Revoked {}

    /** A refusal of a command that was sent earlier does not count any more. */
    private record Revoked(long at) implements Entry {}

    /**
     * A refusal.
     *
     * @param until when it is to be forgotten
     * @param due when the call that was refused would go
     * @param fullAt when the budget is full
     * @param askedWith what the same script has asked of all limits of the call
     */
    private record Denial(
            ScriptParameters parameters,
            long permits,
            long maxWait,
            long until,
            long due,
            long remaining,
            long fullAt,
            List<?> askedWith)
            implements Entry {}

    DenialCache(Ticker ticker, long maximumKeys) {
        this.ticker = ticker;
        this.entries = Caffeine.newBuilder()
                .maximumSize(maximumKeys)
                .expireAfterWrite(LONGEST, TimeUnit.NANOSECONDS)
                .ticker(ticker::nanos)
                .executor(Runnable::run)
                .build();
    }

    /** The refusal that Redis would give now, if that is known. */
    @Nullable
    ScriptReply find(String key, ScriptParameters parameters, long permits, long maxWaitMicros) {
        if (!(entries.getIfPresent(key) instanceof Denial denial)
                || denial.parameters != parameters
                || denial.maxWait != maxWaitMicros
                || denial.permits > permits) {
            return null;
        }
        long now = ticker.nanos();
        if (now - denial.until >= 0) {
            return null;
        }
        long due = denial.due;
        if (permits > denial.permits) {
            Algorithm algorithm = parameters.limit().algorithm();
            // The next window of the calendar has room for any call, unless some wait for it.
            boolean opens = algorithm.followsCalendar() && denial.due == denial.fullAt;
            if (algorithm.family() == Family.WINDOW && !opens) {
                return null;
            }
            if (algorithm.family() == Family.BUCKET) {
                PermitCost.Time cost = parameters.cost().of(permits);
                PermitCost.Time denied = parameters.cost().of(denial.permits);
                if (cost.parts() != denied.parts()) {
                    return null;
                }
                due += (cost.micros() - denied.micros()) * 1000;
            }
        }
        return new ScriptReply(
                ~(due - now), denial.remaining, Math.max(0, denial.fullAt - now), "", parameters, Source.DENY_CACHE);
    }

    /** What was asked with this budget when it refused a call under several limits: if nothing is remembered of it, it admitted. */
    List<?> askedWith(String key) {
        return entries.getIfPresent(key) instanceof Denial denial ? denial.askedWith : List.of();
    }

    /**
     * Remembers a refusal with a retry-after.
     *
     * @param hold nanoseconds for which nobody asks again, even if the retry-after is shorter
     */
    void add(String key, PermitRequest call, ScriptReply reply, long sentAt, long hold) {
        add(key, call, reply, sentAt, hold, List.of());
    }

    /**
     * Remembers a refusal of a call under several limits.
     *
     * @param askedWith what the same script has asked of all limits of the call
     */
    void add(String key, PermitRequest call, ScriptReply reply, long sentAt, long hold, List<?> askedWith) {
        long retry = Math.max(hold, ~reply.outcome());
        Denial denial = new Denial(
                reply.parameters(),
                call.permits(),
                call.maxWaitMicros(),
                sentAt + Math.min(LONGEST, retry),
                sentAt + retry,
                reply.remaining(),
                sentAt + reply.reset(),
                askedWith);
        entries.asMap()
                .compute(
                        key,
                        (same, present) ->
                                present instanceof Revoked revoked && sentAt - revoked.at < 0 ? present : denial);
    }

    /** What was refused has to wait longer now, or may go. */
    void forget(String key) {
        if (entries.getIfPresent(key) instanceof Denial denial) {
            entries.asMap().remove(key, denial);
        }
    }

    /** Forgets what was refused, and what is refused to those who have asked already: there are more permits now. */
    void revoke(String key) {
        entries.put(key, new Revoked(ticker.nanos()));
    }

    void clear() {
        entries.invalidateAll();
    }

    long size() {
        return entries.estimatedSize();
    }
}
