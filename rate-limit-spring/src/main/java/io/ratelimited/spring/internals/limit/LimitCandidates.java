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
import org.jspecify.annotations.Nullable;

/**
 * The candidates that are tried beside a limit, on this instance, for a time: in memory, whatever the backend of the limit is.
 * The result stays until others start. Thread-safe.
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
    // Guarded by this.
    private @Nullable Run run;
    private Runnable alarm = () -> {};

    /** What is tried, or was tried last. */
    private record Run(
            CandidateTracker tracker, Instant since, Instant until, CandidateReport report, long reportedAt) {}

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
     * Tries candidates from now on, instead of those before.
     *
     * @param texts as {@link Candidates#of} reads them
     * @param time null for 24 hours
     * @throws InvalidRateLimitException when they are invalid; nothing has changed
     */
    public void start(List<String> texts, @Nullable Duration time, String place, String remedy) {
        Duration length = Objects.requireNonNullElse(time, DEFAULT_TIME);
        if (length.compareTo(SHORTEST) < 0 || length.compareTo(LONGEST) > 0) {
            throw new InvalidRateLimitException(
                    limit.name(),
                    place,
                    "candidatesFor is " + PropertyText.of(length) + ", but must be from 1s to 31d",
                    remedy + " [RL-291]");
        }
        List<Limit> limits;
        try {
            limits = Candidates.of(limit.limit(), texts);
        } catch (InvalidLimitException ex) {
            String problem = String.valueOf(ex.getMessage()).replaceFirst("[.] \\[RL-290]$", "");
            throw new InvalidRateLimitException(limit.name(), place, problem, remedy + " [RL-290]", ex);
        }
        boolean auto = texts.equals(List.of(Candidates.AUTO));
        synchronized (this) {
            long deadline = ticker.nanos() + length.toNanos();
            begin(limits, deadline, auto ? length.toNanos() / COARSE : 0);
        }
        listener.run();
    }

    /** @param coarse nanoseconds after which finer steps replace these; 0 for never */
    private void begin(List<Limit> limits, long deadline, long coarse) {
        alarm.run();
        CandidateTracker next = new CandidateTracker(limit.limit(), limits, ticker);
        Instant now = wallClock();
        Instant until = now.plusNanos(deadline - ticker.nanos());
        run = new Run(next, now, until, next.report(), ticker.nanos());
        tracker = next;
        long at = coarse == 0 ? deadline : ticker.nanos() + coarse;
        alarm = ticker.schedule(at, () -> {
            if (coarse == 0) {
                end(next);
            } else {
                refine(next, deadline, coarse);
            }
        });
    }

    private Instant wallClock() {
        return Instant.EPOCH.plusNanos(ticker.epochNanos());
    }

    private void refine(CandidateTracker coarse, long deadline, long time) {
        synchronized (this) {
            if (tracker != coarse) {
                return;
            }
            CandidateReport seen = coarse.report();
            boolean known = seen.calls() > 0;
            begin(
                    known
                            ? Candidates.around(limit.limit(), seen)
                            : seen.candidates().stream()
                                    .map(CandidateReport.Candidate::limit)
                                    .toList(),
                    deadline,
                    known || deadline - ticker.nanos() <= time ? 0 : time);
        }
        listener.run();
    }

    private void end(CandidateTracker ended) {
        synchronized (this) {
            if (tracker != ended) {
                return;
            }
            tracker = null;
        }
        report(ended);
    }

    private void report(CandidateTracker ended) {
        CandidateReport report = ended.report();
        if (report.calls() > 0) {
            LOG.info("Rate limit '" + limit.name() + "': of " + report);
        }
    }

    /** Tries no candidates any more, and forgets their result. */
    public void stop() {
        synchronized (this) {
            alarm.run();
            tracker = null;
            run = null;
        }
        listener.run();
    }

    /** Ends with the application: what is known until now is logged. */
    void close() {
        CandidateTracker last;
        synchronized (this) {
            alarm.run();
            last = tracker;
            tracker = null;
        }
        if (last != null) {
            report(last);
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

    /** The candidates that are tried, or were tried last; null if there are none. The report is at most a second old. */
    public synchronized @Nullable State state() {
        Run now = run;
        if (now == null) {
            return null;
        }
        if (ticker.nanos() - now.reportedAt > FRESH || now.report.calls() == 0) {
            now = new Run(now.tracker, now.since, now.until, now.tracker.report(), ticker.nanos());
            run = now;
        }
        return new State(now.since, now.until, tracker == null, now.report);
    }
}
