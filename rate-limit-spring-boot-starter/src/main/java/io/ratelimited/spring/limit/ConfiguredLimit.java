package io.ratelimited.spring.limit;

import io.ratelimited.core.InMemoryRateLimiter;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Policy;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.spring.InvalidRateLimitException;
import io.ratelimited.spring.LimitProperties;
import io.ratelimited.spring.MissingKey;
import io.ratelimited.spring.NamedLimit;
import java.time.Duration;
import java.util.Map;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;

/** A limit of the application: its limiter, those of its tiers, and its policy. Thread-safe; the policy may change. */
public final class ConfiguredLimit implements NamedLimit {

    private static final Log LOG = LogFactory.getLog(ConfiguredLimit.class);
    private static final Duration DEFAULT_MAX_WAIT = Duration.ofSeconds(1);
    private static final Pattern NUMBER = Pattern.compile("[+-]?\\d+([.]\\d+)?");
    private static final Pattern WHOLE_NUMBER = Pattern.compile("\\+?\\d{1,18}");
    private static final Weight LIGHTEST = new Weight(1, "a call");

    private final String name;
    private final String place;
    private final RateLimiter limiter;
    private final LimitProperties definition;
    private final Map<String, RateLimiter> tiers;
    private final boolean countsInFlight;
    private volatile LimitProperties properties;
    private volatile Enforcement enforcement;
    private volatile boolean warnedOfTier;
    private volatile boolean keyed;
    private volatile boolean usedWithThreads;
    private volatile boolean usedWithoutThreads;
    /** The largest fixed number of permits that a call asks for: a change has to leave room for it. */
    private volatile Weight heaviest = LIGHTEST;

    ConfiguredLimit(
            String name,
            String place,
            LimitProperties definition,
            LimitProperties properties,
            RateLimiter limiter,
            Map<String, RateLimiter> tiers) {
        this.name = name;
        this.place = place;
        this.definition = definition;
        this.limiter = limiter;
        this.tiers = Map.copyOf(tiers);
        this.properties = properties;
        this.countsInFlight = limit().algorithm().countsCallsInFlight();
        this.enforcement = enforcement(properties);
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    public String place() {
        return place;
    }

    @Override
    public RateLimiter limiter() {
        return limiter;
    }

    /** The definition of the limit where it is declared first, without its properties. */
    LimitProperties definition() {
        return definition;
    }

    @Override
    public Map<String, RateLimiter> tiers() {
        return tiers;
    }

    /** Some calls have a key. */
    public void usedWithKeys() {
        keyed = true;
    }

    /** Some calls wait, where the policy lets them, in their thread, or without one. */
    public void usedBy(boolean withThread) {
        if (withThread) {
            usedWithThreads = true;
        } else {
            usedWithoutThreads = true;
        }
    }

    /** Whether calls may sleep in their thread: it waits, and nothing says that all its calls do so without a thread. */
    public boolean maySleep() {
        return policy() == Policy.WAIT && (usedWithThreads || !usedWithoutThreads);
    }

    /** How many callers may wait at once, of the limit and of its tiers. */
    public long maxWaiting() {
        return Stream.concat(Stream.of(limiter), tiers.values().stream())
                .mapToLong(of -> of.limit().maxWaiting())
                .sum();
    }

    /** Whether the limit remembers keys in this process, however long they are idle. */
    public boolean remembersKeys() {
        return keyed && !countsInFlight && limiter instanceof InMemoryRateLimiter;
    }

    /** Warns of tiers that no expression chooses, and of an expression that has none to choose from. */
    public void warnOfTiersWithout(@Nullable String expression, String usedAt) {
        if (expression == null && !tiers.isEmpty()) {
            LOG.warn(
                    "Rate limit '" + name + "' (" + usedAt + ") has the tiers " + tiers.keySet()
                            + " but no tier expression to choose one: the limit itself applies to every caller. Add one, as in tier: \"#user.plan\".");
        } else if (expression != null && tiers.isEmpty()) {
            LOG.warn("Rate limit '" + name + "' (" + usedAt + ") has the tier expression \"" + expression
                    + "\" but no tiers: the limit itself applies to every caller. Define "
                    + LimitSettings.property(name) + ".tiers.");
        }
    }

    /** The limiter of a tier; that of the limit itself for a tier that is not configured, which is warned of once. */
    public RateLimiter limiterOfTier(String tier) {
        RateLimiter found = tiers.get(tier);
        if (found != null) {
            return found;
        }
        if (!warnedOfTier) {
            warnedOfTier = true;
            LOG.warn("Rate limit '" + name + "' has no tier '" + LogText.escaped(tier)
                    + "': the limit itself applies. Tiers: " + tiers.keySet());
        }
        return limiter;
    }

    /** Whether calls count while they are in flight. */
    public boolean countsInFlight() {
        return countsInFlight;
    }

    /** What applies to a call that begins now, read once for each call. */
    public Enforcement enforcement() {
        return enforcement;
    }

    @Override
    public Limit limit() {
        return limiter.limit();
    }

    @Override
    public LimitProperties properties() {
        return properties;
    }

    /** Whether permits are stated as a number, perhaps an invalid one, and not as an expression. */
    public static boolean isFixed(String permits) {
        return NUMBER.matcher(permits.strip()).matches();
    }

    /**
     * Reads permits that are stated as a number.
     *
     * @param where they are stated
     * @throws InvalidRateLimitException when calls can never have so many
     */
    public synchronized long fixedPermits(String permits, String where) {
        String text = permits.strip();
        long number = WHOLE_NUMBER.matcher(text).matches() ? Long.parseLong(text) : 0;
        if (number < 1) {
            throw new InvalidRateLimitException(
                    name,
                    where,
                    "permits must be a whole number from 1 to 10^18: " + permits,
                    "Correct the annotation or the property.");
        }
        Weight weight = new Weight(number, where);
        requireRoom(weight, limit(), "", where, "Ask for fewer permits, or raise the limit.");
        tiers.forEach((tier, of) -> requireRoom(
                weight, of.limit(), " of tier '" + tier + "'", where, "Ask for fewer permits, or raise the limit."));
        if (number > heaviest.permits) {
            heaviest = weight;
        }
        return number;
    }

    /**
     * Checks that calls can still have what they ask for by a fixed number.
     *
     * @param changed the limit or that of a tier, as it shall be
     * @throws InvalidRateLimitException when they never could
     */
    void requireRoom(Limit changed, String whose, String where, String remedy) {
        requireRoom(heaviest, changed, whose, where, remedy);
    }

    private void requireRoom(Weight weight, Limit limit, String whose, String where, String remedy) {
        if (limit.capacity() != 0 && weight.permits > limit.capacity()) {
            throw new InvalidRateLimitException(
                    name,
                    where,
                    "permits = " + weight.permits + (where.equals(weight.where) ? "" : " (" + weight.where + ")")
                            + " can never be had: at most " + limit.capacity() + " go at once under " + limit + whose,
                    remedy);
        }
    }

    void properties(LimitProperties changed) {
        properties = changed;
        enforcement = enforcement(changed);
    }

    @Override
    public Policy policy() {
        return enforcement.policy;
    }

    @Override
    public long maxWaitNanos() {
        return enforcement.maxWaitNanos;
    }

    /** Permits that calls ask for, and the place that sets them. */
    private record Weight(long permits, String where) {}

    /**
     * The properties that apply to each call, computed once.
     *
     * @param policy the policy for calls over the limit
     * @param maxWaitNanos the longest sleep; 0 unless the policy is to wait
     * @param missingKey what becomes of calls without a key
     * @param mayTry whether a call may be admitted without a reservation: it does not wait, nothing ends with it, and
     *     nobody has to ask the limiter again over a network to know who decided, or when a refused call may come again
     */
    public record Enforcement(Policy policy, long maxWaitNanos, MissingKey missingKey, boolean mayTry) {}

    private Enforcement enforcement(LimitProperties of) {
        Policy policy = of.policy() == null ? limit().algorithm().defaultPolicy() : of.policy();
        Duration maxWait = of.maxWait() == null ? DEFAULT_MAX_WAIT : of.maxWait();
        return new Enforcement(
                policy,
                policy == Policy.WAIT ? maxWait.toNanos() : 0,
                of.missingKey() == null ? MissingKey.SHARED : of.missingKey(),
                policy == Policy.REJECT && !countsInFlight && limiter.source() != null);
    }
}
