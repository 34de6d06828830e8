package io.ratelimited.core;

/** The time of another ticker. A test overrides the step that it interferes with. */
public class DelegatingTicker implements Ticker {

    private final Ticker ticker;

    public DelegatingTicker(Ticker ticker) {
        this.ticker = ticker;
    }

    @Override
    public long nanos() {
        return ticker.nanos();
    }

    @Override
    public long epochNanos() {
        return ticker.epochNanos();
    }

    @Override
    public void sleepUntil(long deadline) throws InterruptedException {
        ticker.sleepUntil(deadline);
    }

    @Override
    public Runnable schedule(long deadline, Runnable task) {
        return ticker.schedule(deadline, task);
    }
}
