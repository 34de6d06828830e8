package io.ratelimited.spring.internals.limit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.ContextRunner;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.TestLimits;
import java.util.Locale;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Every algorithm is to be had from the annotation, from properties and from code. */
class AlgorithmsTest {

    private final ContextRunner runner = ContextRunner.limited(new ManualTicker());

    /** One call goes; one more while it lasts, and at the same time, does not. */
    private static void assertAdmitsOne(Consumer<Runnable> limited) {
        AtomicInteger calls = new AtomicInteger();
        limited.accept(() -> {
            calls.incrementAndGet();
            assertThatExceptionOfType(RateLimitExceededException.class)
                    .isThrownBy(() -> limited.accept(calls::incrementAndGet));
        });
        assertThat(calls).hasValue(1);
    }

    @ParameterizedTest
    @EnumSource(
            mode = EnumSource.Mode.EXCLUDE,
            names = {"ADAPTIVE", "DEFAULT"})
    void theAnnotationNamesIt(Algorithm algorithm) {
        runner.withBean(Annotated.class).run(context -> {
            Annotated bean = context.getBean(Annotated.class);
            assertAdmitsOne(
                    switch (algorithm) {
                        case TOKEN_BUCKET -> bean::tokenBucket;
                        case SMOOTH_BURSTY -> bean::smoothBursty;
                        case WARM_UP -> bean::warmUp;
                        case LEAKY_BUCKET -> bean::leakyBucket;
                        case GCRA -> bean::gcra;
                        case FIXED_WINDOW -> bean::fixedWindow;
                        case SLIDING_WINDOW -> bean::slidingWindow;
                        case SLIDING_LOG -> bean::slidingLog;
                        case CONCURRENCY -> bean::concurrency;
                        case ADAPTIVE, DEFAULT -> throw new IllegalArgumentException("no algorithm");
                    });
        });
    }

    @ParameterizedTest
    @EnumSource(
            mode = EnumSource.Mode.EXCLUDE,
            names = {"ADAPTIVE", "DEFAULT"})
    void propertiesNameItForTheAnnotationAndForCode(Algorithm algorithm) {
        runner.withBean(Named.class)
                .withPropertyValues(
                        "rate-limit.limits.named.algorithm="
                                + algorithm.name().toLowerCase(Locale.ROOT).replace('_', '-'),
                        algorithm == Algorithm.CONCURRENCY
                                ? "rate-limit.limits.named.max-concurrent=1"
                                : "rate-limit.limits.named.rate=1/h",
                        algorithm == Algorithm.WARM_UP ? "rate-limit.limits.named.warmup=1h" : "unused=")
                .run(context -> {
                    assertAdmitsOne(context.getBean(Named.class)::call);
                    TestLimits limits = TestLimits.of(context);
                    assertThat(limits.limit("named").limit().algorithm()).isEqualTo(algorithm);
                    assertAdmitsOne(body -> limits.execute("named", "key", () -> {
                        body.run();
                        return "done";
                    }));
                });
    }

    static class Named {

        @RateLimited("named")
        public void call(Runnable body) {
            body.run();
        }
    }

    static class Annotated {

        @RateLimited(algorithm = Algorithm.TOKEN_BUCKET, rate = "1/h")
        public void tokenBucket(Runnable body) {
            body.run();
        }

        @RateLimited(algorithm = Algorithm.SMOOTH_BURSTY, rate = "1/h")
        public void smoothBursty(Runnable body) {
            body.run();
        }

        @RateLimited(algorithm = Algorithm.WARM_UP, rate = "1/h", warmup = "1h")
        public void warmUp(Runnable body) {
            body.run();
        }

        @RateLimited(algorithm = Algorithm.LEAKY_BUCKET, rate = "1/h")
        public void leakyBucket(Runnable body) {
            body.run();
        }

        @RateLimited(algorithm = Algorithm.GCRA, rate = "1/h")
        public void gcra(Runnable body) {
            body.run();
        }

        @RateLimited(algorithm = Algorithm.FIXED_WINDOW, rate = "1/h")
        public void fixedWindow(Runnable body) {
            body.run();
        }

        @RateLimited(algorithm = Algorithm.SLIDING_WINDOW, rate = "1/h")
        public void slidingWindow(Runnable body) {
            body.run();
        }

        @RateLimited(algorithm = Algorithm.SLIDING_LOG, rate = "1/h")
        public void slidingLog(Runnable body) {
            body.run();
        }

        @RateLimited(algorithm = Algorithm.CONCURRENCY, maxConcurrent = 1)
        public void concurrency(Runnable body) {
            body.run();
        }
    }
}
