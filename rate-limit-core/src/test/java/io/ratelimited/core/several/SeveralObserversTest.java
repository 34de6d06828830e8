package io.ratelimited.core.several;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.Threads;
import io.ratelimited.core.internals.several.JointLocks;
import io.ratelimited.core.internals.several.MemoryLimiter;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.testing.ManualTicker;
import java.lang.reflect.Proxy;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Observers are told outside of every lock, and may call the limiters. */
@Timeout(100)
class SeveralObserversTest {

    private final ManualTicker time = new ManualTicker();
    private final RateLimiter adaptive =
            limiter(Limit.of("adaptive", Algorithm.ADAPTIVE).maxConcurrent(100));
    private final RateLimiter rate =
            limiter(Limit.of("rate", Algorithm.TOKEN_BUCKET).rate("1000/s"));

    private RateLimiter limiter(Limit.Builder limit) {
        return new InMemoryRateLimiter(limit.build(), time, 10);
    }

    /** The bounds of a limit change while this thread holds the locks of both limits. */
    @Test
    void anObserverOfTheFoundLimitMayCallTheLimitersOfTheCallThatHasChangedIt() throws Exception {
        AtomicInteger told = new AtomicInteger();
        List<Claim> both = List.of(Claim.of(rate, null, 1, 0), Claim.of(adaptive, null, 1, 0));
        adaptive.onLimitChange(change -> {
            told.incrementAndGet();
            assertThat(rate.peek(null, 2_000, 0).admitted()).isFalse();
            assertThat(adaptive.peek(null, 1_000, 0).admitted()).isFalse();
            AllOf.reserve(both).cancel();
        });
        RateLimiter watched = (RateLimiter) Proxy.newProxyInstance(
                RateLimiter.class.getClassLoader(),
                new Class<?>[] {MemoryLimiter.class},
                (proxy, method, arguments) -> {
                    if (method.getName().equals("reserveAsked")) {
                        adaptive.update(
                                adaptive.limit().toBuilder().maxConcurrent(90).build());
                        assertThat(told).as("under the locks").hasValue(0);
                    }
                    return method.invoke(rate, arguments);
                });
        Reservation call = Threads.get(Threads.start(
                () -> AllOf.reserve(List.of(Claim.of(watched, null, 1, 0), Claim.of(adaptive, null, 1, 0)))));
        assertThat(call.isRefused()).isFalse();
        assertThat(told).hasPositiveValue();
    }

    /** A listener of one that waits runs when the locks are free again, whatever another one has thrown. */
    @Test
    void whatOneListenerThrowsKeepsNoOtherFromBeingTold() {
        AtomicInteger told = new AtomicInteger();
        Thread.UncaughtExceptionHandler handler = Thread.currentThread().getUncaughtExceptionHandler();
        AtomicInteger errors = new AtomicInteger();
        Thread.currentThread().setUncaughtExceptionHandler((thread, error) -> errors.incrementAndGet());
        try {
            JointLocks.lock(3, true);
            JointLocks.outside(() -> {
                throw new IllegalStateException("of a listener");
            });
            JointLocks.outside(() -> {
                told.incrementAndGet();
                JointLocks.lock(3, true);
                JointLocks.unlock(3, true);
            });
            assertThat(told).hasValue(0);
            JointLocks.unlock(3, true);
        } finally {
            Thread.currentThread().setUncaughtExceptionHandler(handler);
        }
        assertThat(told).hasValue(1);
        assertThat(errors).hasValue(1);
    }
}
