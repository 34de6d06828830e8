package io.ratelimited.core;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.testing.ManualTicker;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import org.junit.jupiter.api.Test;

class RateLimitExceededExceptionTest {

    @Test
    void aRefusalThatWasSerializedSaysWhatItSaidBefore() throws Exception {
        InMemoryRateLimiter limiter = new InMemoryRateLimiter(
                Limit.of("jobs", Algorithm.TOKEN_BUCKET).rate("1/m").build(), new ManualTicker(), 10);
        limiter.tryAcquire(null, 1);
        Decision refused = limiter.reserve(null, 1, 0).decision();
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
            out.writeObject(new RateLimitExceededException(refused));
        }
        try (ObjectInputStream in = new ObjectInputStream(new ByteArrayInputStream(bytes.toByteArray()))) {
            RateLimitExceededException read = (RateLimitExceededException) in.readObject();
            assertThat(read.limit()).isEqualTo("jobs");
            assertThat(read.decision()).isEqualTo(refused);
            assertThat(read).hasMessage("Rate limit 'jobs' exceeded: retry after 60s");
        }
    }
}
