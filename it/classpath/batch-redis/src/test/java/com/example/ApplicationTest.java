package com.example;

import static org.junit.jupiter.api.Assertions.*;

import com.example.it.Started;
import io.ratelimited.core.RateLimitExceededException;
import org.junit.jupiter.api.Test;

class ApplicationTest {

    @Test
    void theClassPathLacksThese() {
        assertFalse(Started.has("org.springframework.http.HttpHeaders"));
        assertFalse(Started.has("jakarta.servlet.Filter"));
        assertFalse(Started.has("org.springframework.data.redis.core.RedisTemplate"));
    }

    @Test
    void theSecondCallIsRejected() {
        try (Started application = new Started(Application.class)) {
            Application.Work work = application.bean(Application.Work.class);
            assertEquals("done", work.done());
            assertThrows(RateLimitExceededException.class, work::done);
        }
    }
}
