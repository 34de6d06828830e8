package io.ratelimited.sample.demo;

import static io.ratelimited.core.Algorithm.CONCURRENCY;
import static io.ratelimited.core.Algorithm.FIXED_WINDOW;
import static io.ratelimited.core.Algorithm.GCRA;
import static io.ratelimited.core.Algorithm.LEAKY_BUCKET;
import static io.ratelimited.core.Algorithm.SLIDING_LOG;
import static io.ratelimited.core.Algorithm.SLIDING_WINDOW;
import static io.ratelimited.core.Algorithm.SMOOTH_BURSTY;
import static io.ratelimited.core.Algorithm.TOKEN_BUCKET;
import static io.ratelimited.core.Algorithm.WARM_UP;

import io.ratelimited.spring.RateLimited;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RequestMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;

/** One endpoint an algorithm with a key, each limited per user. The answer says what the limit decided about the call. */
@RestController
@RequestMapping("/demo")
class DemoController {

    private final LastDecision last;

    DemoController(LastDecision last) {
        this.last = last;
    }

    @GetMapping("/token-bucket")
    @RateLimited(name = "demo-token-bucket", algorithm = TOKEN_BUCKET, rate = "6/m", burst = 5, key = "#user")
    Served tokenBucket(@RequestParam(defaultValue = "guest") String user) {
        return served("token-bucket", user);
    }

    @GetMapping("/smooth-bursty")
    @RateLimited(name = "demo-smooth-bursty", algorithm = SMOOTH_BURSTY, rate = "5/s", key = "#user")
    Served smoothBursty(@RequestParam(defaultValue = "guest") String user) {
        return served("smooth-bursty", user);
    }

    @GetMapping("/warm-up")
    @RateLimited(name = "demo-warm-up", algorithm = WARM_UP, rate = "1/s", warmup = "10s", key = "#user")
    Served warmUp(@RequestParam(defaultValue = "guest") String user) {
        return served("warm-up", user);
    }

    /** Calls wait: this algorithm is a queue. */
    @GetMapping("/leaky-bucket")
    @RateLimited(
            name = "demo-leaky-bucket",
            algorithm = LEAKY_BUCKET,
            rate = "1/s",
            burst = 10,
            maxWait = "5s",
            key = "#user")
    Served leakyBucket(@RequestParam(defaultValue = "guest") String user) {
        return served("leaky-bucket", user);
    }

    @GetMapping("/gcra")
    @RateLimited(name = "demo-gcra", algorithm = GCRA, rate = "6/m", burst = 5, key = "#user")
    Served gcra(@RequestParam(defaultValue = "guest") String user) {
        return served("gcra", user);
    }

    @GetMapping("/fixed-window")
    @RateLimited(name = "demo-fixed-window", algorithm = FIXED_WINDOW, rate = "10/10s", key = "#user")
    Served fixedWindow(@RequestParam(defaultValue = "guest") String user) {
        return served("fixed-window", user);
    }

    @GetMapping("/sliding-window")
    @RateLimited(name = "demo-sliding-window", algorithm = SLIDING_WINDOW, rate = "10/10s", key = "#user")
    Served slidingWindow(@RequestParam(defaultValue = "guest") String user) {
        return served("sliding-window", user);
    }

    @GetMapping("/sliding-log")
    @RateLimited(name = "demo-sliding-log", algorithm = SLIDING_LOG, rate = "10/10s", key = "#user")
    Served slidingLog(@RequestParam(defaultValue = "guest") String user) {
        return served("sliding-log", user);
    }

    /** Takes a moment, so that calls overlap. */
    @GetMapping("/concurrency")
    @RateLimited(name = "demo-concurrency", algorithm = CONCURRENCY, maxConcurrent = 2, key = "#user")
    Served concurrency(@RequestParam(defaultValue = "guest") String user) throws InterruptedException {
        Thread.sleep(200);
        return served("concurrency", user);
    }

    private Served served(String algorithm, String user) {
        return new Served(algorithm, user, last.outcome(), last.waitedMillis());
    }

    /**
     * The answer to an admitted call.
     *
     * @param outcome admitted, delayed or shadowed, as the meter {@code rate.limit.decisions} counts it
     * @param waitedMillis how long the limit made the call wait
     */
    record Served(String algorithm, String user, String outcome, long waitedMillis) {}
}
