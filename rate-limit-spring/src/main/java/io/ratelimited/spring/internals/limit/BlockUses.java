package io.ratelimited.spring.internals.limit;

import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.spring.InvalidRateLimitException;
import io.ratelimited.spring.internals.text.PropertyText;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * The uses of a limit, as far as its blocks depend on them: which calls have a key that can be blocked, and which are charged,
 * so that only their charges are violations. Code that names the limit is not among them: it passes a key with each call. Thread-safe.
 */
public final class BlockUses {

    private final ConfiguredLimit limit;
    /** Runs an action with the lock of {@link LimitChanges}. */
    private final Consumer<Runnable> unchanged;

    /** Written with the lock of {@link LimitChanges}. */
    private volatile Places places = new Places(null, null, null);

    /** The first places of uses of each kind; null if there is none. */
    private record Places(
            @Nullable String withoutKey,
            @Nullable String charged,
            @Nullable String uncharged) {

        Places with(boolean keyed, boolean charges, String where) {
            return new Places(
                    withoutKey == null && !keyed ? where : withoutKey,
                    charged == null && charges ? where : charged,
                    uncharged == null && !charges ? where : uncharged);
        }
    }

    BlockUses(ConfiguredLimit limit, Consumer<Runnable> unchanged) {
        this.limit = limit;
        this.unchanged = unchanged;
    }

    /**
     * Adds a use.
     *
     * @param keyed whether its calls have keys
     * @param charges whether its calls are charged when they have ended
     * @param where its place
     * @throws InvalidRateLimitException when the limit has blocks and they have no meaning for this use
     */
    public void add(boolean keyed, boolean charges, String where) {
        unchanged.accept(() -> added(keyed, charges, where));
    }

    private void added(boolean keyed, boolean charges, String where) {
        Places next = places.with(keyed, charges, where);
        ResolvedLimit resolved = limit.settings().resolved();
        String remedy = " [RL-103]";
        require(next, resolved, remedy);
        resolved.tiers().values().forEach(tier -> require(next, tier, remedy));
        places = next; // only now: a use that is rejected makes no calls
        limit.limiters().forEach(this::suit);
    }

    /** Returns whether an annotation, a route or a client uses the limit. */
    boolean isUsed() {
        Places known = places;
        return known.charged != null || known.uncharged != null;
    }

    /**
     * Checks that blocks have a meaning for all uses, if the limit or tier itself sets them.
     *
     * @param code ends the remedy
     * @throws InvalidRateLimitException when they have none
     */
    void require(ResolvedLimit changed, String code) {
        require(places, changed, code);
    }

    private void require(Places uses, ResolvedLimit changed, String code) {
        Object block = changed.values().get(LimitProperty.BLOCK);
        if (block == null || changed.limit().block() == null) {
            return;
        }
        if (uses.charged != null && !Limit.canBlockByCharge(changed.algorithm())) {
            throw invalid(
                    changed,
                    "is " + PropertyText.of(block) + ", but " + changed.algorithm()
                            + " does not support it with a charge, as " + uses.charged
                            + " has, because the first charged call leaves no permit",
                    "Use TOKEN_BUCKET, GCRA, FIXED_WINDOW, SLIDING_WINDOW or SLIDING_LOG, or remove block." + code);
        }
        if (!changed.statesBlocks()) {
            return;
        }
        if (uses.withoutKey != null) {
            throw invalid(
                    changed,
                    "is " + PropertyText.of(block) + ", but calls without a key cannot be blocked, as those of "
                            + uses.withoutKey,
                    "Set the key of these calls, or remove block." + code);
        }
        if (uses.charged != null && uses.uncharged != null) {
            throw invalid(
                    changed,
                    "is " + PropertyText.of(block) + ", but violations are either charges, as of " + uses.charged
                            + ", or rejected calls, as of " + uses.uncharged,
                    "Set charge for both or for none, or use two limits." + code);
        }
    }

    private InvalidRateLimitException invalid(ResolvedLimit changed, String problem, String remedy) {
        return new InvalidRateLimitException(
                limit.name(), changed.place(LimitProperty.BLOCK), LimitProperty.BLOCK.label() + " " + problem, remedy);
    }

    /** The limit, or that of a tier or caller, which knows whether its uses are charged. */
    Limit suited(Limit changed) {
        Places known = places;
        if (known.charged == null && known.uncharged == null) {
            return changed;
        }
        boolean byCharge = known.charged != null;
        return changed.isCharged() == byCharge
                ? changed
                : changed.toBuilder().charged(byCharge).build();
    }

    /** Lets a limiter of the limit know its violations. The caller holds the lock of {@link LimitChanges}. */
    void suit(RateLimiter limiter) {
        Limit suited = suited(limiter.limit());
        if (!suited.equals(limiter.limit())) {
            limiter.update(suited);
        }
    }
}
