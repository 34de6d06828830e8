package io.ratelimited.spring.internals.limit;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Proxy;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;

/** Numbers of callers that are read just when the limit changes. */
final class NumbersDuringChangesTest {

    private final RateLimiter whole = new InMemoryRateLimiter(
            Limit.of("api", Algorithm.TOKEN_BUCKET).rate("10/s").build());
    private final AtomicReference<CallerNumbers> numbers = new AtomicReference<>();

    @Test
    void numbersThatSuitedTheOldLimitOnlyAreReadAgain() {
        InvocationHandler changesMeanwhile = (proxy, method, arguments) -> {
            if (method.getName().equals("ofCallers")) {
                numbers.get().limitChanged();
                throw new IllegalArgumentException("the limit before the change cannot have them");
            }
            return method.invoke(whole, arguments);
        };
        RateLimiter limiter = (RateLimiter) Proxy.newProxyInstance(
                getClass().getClassLoader(), new Class<?>[] {RateLimiter.class}, changesMeanwhile);
        numbers.set(new CallerNumbers("api", limiter));

        assertThat(numbers.get().limiter("500/m")).isSameAs(limiter);
        assertThat(numbers.get().known("500/m")).isNull();
    }
}
