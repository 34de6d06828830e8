package com.example;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import com.example.it.Running;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;

/** What a stranger mistypes in the first hour, and what the log says of it. */
@ExtendWith(OutputCaptureExtension.class)
class MistakesTest {

    private static final String QUOTES = "--rate-limit.limits.quotes.";

    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
            --rate-limit.limits.quotes.rate=5/minute     | write 5/m
            --rate-limit.limits.quotes.rate=5 per minute | write 5/m
            --rate-limit.limits.quotes.burst=-1          | burst is -1, but must be
            --rate-limit.limits.quotes.brust=10          | did you mean 'burst'?
            --rate-limit.limits.quotes.policy=waits      | waits
            --rate-limit.limits.quotes.max-wait=5        | Add its unit
            --rate-limit.limits.quotes.key=clientIP      | clientIp
            --rate-limit.backend=redsi                   | did you mean 'redis'?
            --rate-limit.backend=redis                   | rate-limit-redis
            """)
    void failStartupWithTheRemedyAndACode(String argument, String message, CapturedOutput log) {
        assertThat(catchThrowable(() -> new Running(Own.class, argument).close()))
                .isNotNull();
        assertThat(log).contains("APPLICATION FAILED TO START", message).containsPattern("\\[RL-1\\d\\d]");
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
            --rate-limit.limits.quotes.rate=0/s   | rejects every call, because its rate is 0/s | RL-270
            --rate-limits.limits.quotes.rate=5/s  | Rename the prefix to rate-limit.limits.     | RL-271
            --rate-limit.limits.quots.rate=5/s    | 'quotes'                                    | RL-206
            --rate-limit.http.header=none         | did you mean rate-limit.http.headers?       | RL-340
            --rate-limit.enabled=false            | rate-limit.enabled                          | RL-205
            """)
    void orAreWarnedOf(String argument, String message, String code, CapturedOutput log) {
        new Running(Own.class, argument).close();
        assertThat(log.getAll().lines().filter(line -> line.contains("[" + code + "]")))
                .singleElement()
                .asString()
                .contains("WARN", message);
    }

    @Test
    void aLimitThatDoesNotLimitIsSeenInTheLogOfItsDecisions(CapturedOutput log) {
        try (Running own = new Running(Own.class, "--logging.level.io.ratelimited=debug", QUOTES + "rate=2/m")) {
            own.sixCalls("/quotes/ACME");
        }
        assertThat(log)
                .containsPattern("Rate limit quotes: token-bucket, rate 2/m, burst 2, policy reject, key clientIp")
                .containsPattern("Rate limit 'quotes': admitted, key masked:\\w+, remaining 1")
                .containsPattern("Rate limit 'quotes': rejected, key masked:\\w+, remaining 0, retry after [\\d.]+s");
    }
}
