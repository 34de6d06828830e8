package io.ratelimited.spring.web.reactive;

import io.ratelimited.core.Ticker;
import reactor.core.Disposable;
import reactor.core.scheduler.Scheduler;

/** Runs the tasks of one request on another scheduler, and tells the request how long they wait for a thread. */
final class HandlerScheduler implements Scheduler {

    private final Scheduler scheduler;
    private final ReactiveCurrentRequest request;
    private final Ticker ticker;

    HandlerScheduler(Scheduler scheduler, ReactiveCurrentRequest request, Ticker ticker) {
        this.scheduler = scheduler;
        this.request = request;
        this.ticker = ticker;
    }

    @Override
    public Disposable schedule(Runnable task) {
        return scheduler.schedule(timed(task));
    }

    @Override
    public Worker createWorker() {
        Worker worker = scheduler.createWorker();
        return new Worker() {
            @Override
            public Disposable schedule(Runnable task) {
                return worker.schedule(timed(task));
            }

            @Override
            public void dispose() {
                worker.dispose();
            }

            @Override
            public boolean isDisposed() {
                return worker.isDisposed();
            }
        };
    }

    private Runnable timed(Runnable task) {
        long scheduledAt = ticker.nanos();
        return () -> {
            request.waitedForThread(scheduledAt, ticker.nanos());
            task.run();
        };
    }
}
