package io.ratelimited.spring.internals.overload;

import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.spring.InvalidRateLimitException;
import io.ratelimited.spring.internals.expression.CallExpression;
import io.ratelimited.spring.internals.text.LogText;
import io.ratelimited.spring.internals.text.PropertyText;
import io.ratelimited.spring.internals.text.RelaxedNames;
import io.ratelimited.spring.internals.text.SimilarName;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.springframework.util.ObjectUtils;

/** The classes of the calls of a limit: its {@code priorities}, and the class of each call. Thread-safe. */
public final class CallClasses {

    private static final LogText.Lines LOG = LogText.lines(CallClasses.class);

    private final RateLimiter limiter;
    private volatile boolean warned;

    /** @param limiter of the limit itself, not of a tier */
    public CallClasses(RateLimiter limiter) {
        this.limiter = limiter;
    }

    /**
     * Checks the expression of the class of calls, and warns where there is none to choose one of the classes.
     *
     * @param usedAt the place of the expression, or of the use that has none
     * @throws InvalidRateLimitException when a constant of it names no class
     */
    public void check(@Nullable CallExpression priority, String usedAt) {
        Limit limit = limiter.limit();
        List<String> classes = limit.priorities();
        if (priority == null && !classes.isEmpty()) {
            LOG.warn("Rate limit '" + limit.name() + "' (" + usedAt + ") has the priorities " + classes
                    + " but no priority expression, so all its calls have the priority '"
                    + classes.get(limit.rankOfOthers())
                    + "'. Set one, as in priority: \"@classes.of(principal)\". [RL-218]");
        }
        if (priority == null || classes.isEmpty()) {
            return;
        }
        for (String constant : priority.constants()) {
            if (!constant.isBlank() && RelaxedNames.find(classes, constant) == null) {
                throw new InvalidRateLimitException(
                        limit.name(),
                        usedAt,
                        priority + " is '" + constant + "', which is not one of the priorities " + classes
                                + SimilarName.hint(constant, classes),
                        "Correct the expression, or add it to " + PropertyText.limit(limit.name())
                                + ".priorities. [RL-117]");
            }
        }
    }

    /**
     * The number of the class that a call has stated. One that is not configured counts as none, never as the best; it is
     * warned of once.
     *
     * @param asked the limiter of the caller
     * @param value of the expression
     * @return {@link RateLimiter#NO_RANK} if it has stated none
     */
    public int rank(RateLimiter asked, @Nullable Object value) {
        Object stated = ObjectUtils.unwrapOptional(value);
        String name = stated == null ? "" : stated.toString();
        if (stated == null || name.isBlank()) {
            return RateLimiter.NO_RANK;
        }
        Limit applied = asked.limit();
        String known = RelaxedNames.find(applied.priorities(), stated);
        int rank = known == null ? -1 : applied.rank(known);
        if (rank < 0 && !warned && !applied.priorities().isEmpty()) {
            warned = true;
            LOG.warn("Rate limit '" + applied.name() + "' has no priority '" + LogText.escaped(name)
                    + "': the call has the default priority. Priorities: " + applied.priorities() + " [RL-218]");
        }
        return rank < 0 ? RateLimiter.NO_RANK : rank;
    }
}
