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
import java.util.concurrent.ThreadLocalRandom;
import org.jspecify.annotations.Nullable;

/**
 * The candidates that are tried beside a limit, on this instance, for a time: in memory, whatever the backend of the limit is.
 * Calls of callers with a tier or an override are left out: their numbers stay when the rate of the limit changes. Candidates
 * have the other properties that the limit had when they started, also after it changes: they would count by two clocks
 * otherwise. The result stays until others start. Thread-safe.
 */
public final class LimitCandidates {

    private static final LogText.Lines LOG = LogText.lines(LimitCandidates.class);

    /** The part of the time after which rates around the present one are replaced by rates around those that matter. */
    private static final int COARSE = 24;
    /** A report is made at most once in this time, in nanoseconds: meters read it once for each candidate. */
    private static final long FRESH = 1_000_000_000L;

    private final NamedLimit limit;
    private final Ticker ticker;
    /** Null unless candidates are tried now. */
    private volatile @Nullable CandidateTracker tracker;

    private volatile Runnable listener = () -> {};
    /** Guarded by this, as the next ones. */
    private State state = new State(Instant.EPOCH, Instant.EPOCH, new CandidateReport(0, List.of()));

    private long reportedAt;
    private Runnable alarm = () -> {};

    /**
     * Candidates, and what they would have done.
     *
     * @param until the end of their time
     */
    public record State(Instant since, Instant until, CandidateReport report) {}

    LimitCandidates(NamedLimit limit, Ticker ticker) {
        this.limit = limit;
        this.ticker = ticker;
    }

    /**
     * Tries candidates from now on, instead of those before, whose result is forgotten.
     *
     * @param text as {@link Candidates#of} reads it; {@code off} or nothing for none
     * @param time null for 24 hours
     * @throws InvalidRateLimitException when they are invalid; nothing has changed
     */
    public synchronized void start(String text, @Nullable Duration time, String place) {
        Limit live = limit.limit();
        Duration length = time == null ? Duration.ofDays(1) : time;
        List<Limit> limits = read(live, text, length, place);
        long coarse = text.strip().equals(Candidates.AUTO) ? length.toNanos() / COARSE : 0;
        begin(live, limits, ticker.nanos() + length.toNanos(), coarse);
    }

    /**
     * The candidates that a text describes beside a limit.
     *
     * @param length how long they are tried
     * @throws InvalidRateLimitException when they are invalid
     */
    static List<Limit> read(Limit live, String text, Duration length, String place) {
        try {
            if (length.compareTo(Duration.ofSeconds(1)) < 0 || length.compareTo(Duration.ofDays(31)) > 0) {
                throw new InvalidLimitException(
                        "candidatesFor", "is " + PropertyText.of(length) + ", but must be from 1s to 31d");
            }
            return text.isBlank() || text.equals("off") ? List.of() : Candidates.of(live, text);
        } catch (InvalidLimitException ex) {
            String code = ex.attribute().equals("candidates") ? "[RL-290]" : "[RL-291]";
            throw new InvalidRateLimitException(
                    live.name(), place, String.valueOf(ex.getMessage()), "Correct it, or remove it. " + code, ex);
        }
    }

    /** @param coarse nanoseconds after which finer steps replace these; 0 for never */
    private void begin(Limit live, List<Limit> limits, long deadline, long coarse) {
        CandidateTracker next = new CandidateTracker(
                live, limits, ticker, ThreadLocalRandom.current().nextInt());
        Instant now = Instant.EPOCH.plusNanos(ticker.epochNanos());
        state = new State(now, now.plusNanos(deadline - ticker.nanos()), next.report());
        tracker = limits.isEmpty() ? null : next;
        alarm.run();
        long end = coarse == 0 ? deadline : ticker.nanos() + coarse;
        alarm = limits.isEmpty() ? () -> {} : ticker.schedule(end, () -> over(next, live, limits, deadline, coarse));
        listener.run();
    }

    /** The time is over, or that of coarse steps is; they begin again until there are calls. */
    private synchronized void over(CandidateTracker ended, Limit live, List<Limit> limits, long deadline, long coarse) {
        CandidateReport seen = ended.report();
        if (tracker == ended && coarse == 0) {
            close();
        } else if (tracker == ended && seen.calls() > 0) {
            begin(live, Candidates.around(live, seen), deadline, 0);
        } else if (tracker == ended) {
            begin(live, limits, deadline, deadline - ticker.nanos() > coarse ? coarse : 0);
        }
    }

    /** Ends with the application, or when the time is over: what is known until now is logged. */
    synchronized void close() {
        alarm.run();
        if (tracker != null) {
            State last = report(tracker);
            tracker = null;
            if (last.report.calls() > 0) {
                LOG.info("Rate limit '" + limit.name() + "': of " + last.report);
            }
        }
    }

    /** Runs an action after each start and stop. */
    public void onChange(Runnable action) {
        listener = action;
    }

    /** The tracker of the candidates that are tried now; null if there are none. */
    public @Nullable CandidateTracker tracker() {
        return tracker;
    }

    /** The candidates that are tried, or were tried last, if there are any. The report is at most a second old. */
    public synchronized State state() {
        boolean fresh = state.report.calls() > 0 && ticker.nanos() - reportedAt <= FRESH;
        return fresh || tracker == null ? state : report(tracker);
    }

    private State report(CandidateTracker of) {
        reportedAt = ticker.nanos();
        state = new State(state.since, state.until, of.report());
        return state;
    }
}
