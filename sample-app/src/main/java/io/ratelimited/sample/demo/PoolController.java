package io.ratelimited.sample.demo;

import io.ratelimited.core.Algorithm;
import io.ratelimited.spring.RateLimited;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;

/**
 * Stands for a service on a small database. Each call needs one of six connections for 200 ms, so that thirty a second are
 * served and all others only wait in the queue of the pool. How many calls may do so is for the limit to find.
 */
@RestController
class PoolController {

    private static final int CONNECTIONS = 6;
    private static final int BUSY_MILLIS = 200;

    private final Semaphore pool = new Semaphore(CONNECTIONS, true);
    private final LastDecision last;

    PoolController(LastDecision last) {
        this.last = last;
    }

    /** The limit has no key: all users share the pool. */
    @GetMapping("/demo/adaptive")
    @RateLimited(name = "demo-adaptive", algorithm = Algorithm.ADAPTIVE, maxConcurrent = 60)
    Answer query(@RequestParam(defaultValue = "guest") String user) throws InterruptedException {
        long begin = System.nanoTime();
        pool.acquire();
        try {
            Thread.sleep(BUSY_MILLIS);
        } finally {
            pool.release();
        }
        long took = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - begin);
        return new Answer(user, last.outcome(), last.waitedMillis(), took);
    }

    /**
     * The answer to an admitted call.
     *
     * @param outcome admitted, delayed or shadowed
     * @param waitedMillis how long the limit made the call wait
     * @param tookMillis how long it took then, in the queue of the pool and with a connection
     */
    record Answer(String user, String outcome, long waitedMillis, long tookMillis) {}
}
