package io.ratelimited.spring.internals.limit;

import io.ratelimited.core.InvalidLimitException;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Ticker;
import io.ratelimited.core.internals.candidates.CandidateReport;
import io.ratelimited.core.internals.candidates.CandidateTracker;
import io.ratelimited.core.internals.candidates.Candidates;
import io.ratelimited.spring.InvalidRateLimitException;
import io.ratelimited.spring.NamedLimit;
import io.ratelimited.spring.internals.text.LogText;
import io.ratelimited.spring.internals.text.PropertyText;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.ThreadLocalRandom;
import org.jspecify.annotations.Nullable;

/**
 * The candidates that are tried beside a limit, on this instance, for a time: in memory, whatever the backend of the limit is.
 * Calls of callers with a tier or an override are left out: their numbers stay when the rate of the limit changes. The result
 * stays until others start. Thread-safe.
 */
public final class LimitCandidates {

    private static final LogText.Lines LOG = LogText.lines(LimitCandidates.class);

    private static final Duration DEFAULT_TIME = Duration.ofHours(24);
    private static final Duration SHORTEST = Duration.ofSeconds(1);
    private static final Duration LONGEST = Duration.ofDays(31);
    /** The part of the time after which rates around the present one are replaced by rates around those that matter. */
    private static final int COARSE = 24;
    /** A report is made at most once in this time, in nanoseconds: meters read it once for each candidate. */
    private static final long FRESH = 1_000_000_000L;

    private final NamedLimit limit;
    private final Ticker ticker;
    /** Null unless candidates are tried now. */
    private volatile @Nullable CandidateTracker tracker;

    private volatile Runnable listener = () -> {};
    /** Of those that are tried, or were tried last. Guarded by this, as the next ones. */
    private @Nullable State state;

    private long reportedAt;
    private Runnable alarm = () -> {};

    /**
     * Candidates, and what they would have done.
     *
     * @param until the end of their time
     * @param ended whether their time is over
     */
    public record State(Instant since, Instant until, boolean ended, CandidateReport report) {}

    LimitCandidates(NamedLimit limit, Ticker ticker) {
        this.limit = limit;
        this.ticker = ticker;
    }

    /**
     * Tries candidates from now on, instead of those before, whose result is forgotten.
     *
     * @param texts as {@link Candidates#of} reads them; empty for none
     * @param time null for 24 hours
     * @throws InvalidRateLimitException when they are invalid; nothing has changed
     */
    public synchronized void start(List<String> texts, @Nullable Duration time, String place, String remedy) {
        if (texts.isEmpty()) {
            alarm.run();
            tracker = null;
            state = null;
            listener.run();
            return;
        }
        Duration length = Objects.requireNonNullElse(time, DEFAULT_TIME);
        try {
            if (length.compareTo(SHORTEST) < 0 || length.compareTo(LONGEST) > 0) {
                throw new InvalidLimitException(
                        "candidatesFor", "is " + PropertyText.of(length) + ", but must be from 1s to 31d");
            }
            long coarse = texts.equals(List.of(Candidates.AUTO)) ? length.toNanos() / COARSE : 0;
            begin(Candidates.of(limit.limit(), texts), ticker.nanos() + length.toNanos(), coarse);
        } catch (InvalidLimitException ex) {
            String code = ex.attribute().equals("candidates") ? " [RL-290]" : " [RL-291]";
            throw new InvalidRateLimitException(
                    limit.name(), place, String.valueOf(ex.getMessage()), remedy + code, ex);
        }
    }

    /** @param coarse nanoseconds after which finer steps replace these; 0 for never */
    private void begin(List<Limit> limits, long deadline, long coarse) {
        CandidateTracker next = new CandidateTracker(
                limit.limit(), limits, ticker, ThreadLocalRandom.current().nextInt());
        Instant now = Instant.EPOCH.plusNanos(ticker.epochNanos());
        state = new State(now, now.plusNanos(deadline - ticker.nanos()), false, next.report());
        tracker = next;
        alarm.run();
        alarm = ticker.schedule(
                coarse == 0 ? deadline : ticker.nanos() + coarse, () -> over(next, limits, deadline, coarse));
        listener.run();
    }

    /** The time is over, or that of coarse steps is; they begin again until there are calls. */
    private synchronized void over(CandidateTracker ended, List<Limit> limits, long deadline, long coarse) {
        CandidateReport seen = ended.report();
        if (tracker == ended && coarse == 0) {
            close();
        } else if (tracker == ended && seen.calls() == 0) {
            begin(limits, deadline, deadline - ticker.nanos() <= coarse ? 0 : coarse);
        } else if (tracker == ended) {
            begin(Candidates.around(limit.limit(), seen), deadline, 0);
        }
    }

    /** Ends with the application, or when the time is over: what is known until now is logged. */
    synchronized void close() {
        State last = report(true);
        alarm.run();
        if (tracker != null && last != null && last.report.calls() > 0) {
            LOG.info("Rate limit '" + limit.name() + "': of " + last.report);
        }
        tracker = null;
    }

    /** Runs an action after each start and stop. */
    public void onChange(Runnable action) {
        listener = action;
    }

    /** The tracker of the candidates that are tried now; null if there are none. */
    public @Nullable CandidateTracker tracker() {
        return tracker;
    }

    /** The candidates that are tried, or were tried last; null if there are none. The report is at most a second old. */
    public synchronized @Nullable State state() {
        boolean fresh = ticker.nanos() - reportedAt <= FRESH && state != null && state.report.calls() > 0;
        return fresh ? state : report(false);
    }

    private @Nullable State report(boolean ends) {
        CandidateTracker now = tracker;
        if (now != null && state != null) {
            state = new State(state.since, state.until, ends, now.report());
            reportedAt = ticker.nanos();
        }
        return state;
    }
}
