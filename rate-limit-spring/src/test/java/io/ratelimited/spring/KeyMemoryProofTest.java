package io.ratelimited.spring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.params.provider.Arguments.arguments;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.CallerLimit;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.Threads;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.internals.limit.KeyMemory;
import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import javax.management.JMException;
import javax.management.ObjectName;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** The bytes that keys, their blocks and their numbers take after a flood of five times as many as are remembered. */
@Tag("proof")
class KeyMemoryProofTest {

    private static final int MAXIMUM = 50_000;
    private static final Pattern TOTAL = Pattern.compile("(?m)^Total +\\d+ +(\\d+)");

    private static final Limit BLOCKS = Limit.of("keys", Algorithm.TOKEN_BUCKET)
            .rate("5/h")
            .block(Duration.ofHours(1))
            .build();
    private static final Limit LOG = Limit.of("keys", Algorithm.SLIDING_LOG)
            .rate("5/h")
            .block(Duration.ofHours(1))
            .build();

    private static final Limit WINDOW =
            Limit.of("keys", Algorithm.SLIDING_WINDOW).rate("5/h").build();

    static Stream<Arguments> limits() {
        return Stream.of(
                arguments(BLOCKS, false),
                arguments(BLOCKS.toBuilder().charged(true).build(), false),
                arguments(LOG, false),
                arguments(LOG.toBuilder().charged(true).build(), false),
                arguments(Limit.of("keys", Algorithm.SLIDING_LOG).rate("20/h").build(), false),
                arguments(LOG.toBuilder().rate("20/h").build(), false),
                arguments(WINDOW, false),
                arguments(WINDOW.toBuilder().block(Duration.ofHours(1)).build(), false),
                arguments(WINDOW.toBuilder().slots(1_000).build(), false),
                arguments(
                        WINDOW.toBuilder()
                                .slots(1_000)
                                .block(Duration.ofHours(1))
                                .build(),
                        false),
                arguments(Limit.of("keys", Algorithm.TOKEN_BUCKET).rate("5/h").build(), true));
    }

    @ParameterizedTest
    @MethodSource("limits")
    void keysAndBlocksTakeNoMoreThanTheSizingCounts(Limit limit, boolean numbers) {
        long before = used();
        ManualTicker ticker = new ManualTicker();
        int maximum = limit.slots() > 10 ? MAXIMUM / 10 : MAXIMUM;
        InMemoryRateLimiter limiter = new InMemoryRateLimiter(limit, ticker, maximum);
        for (int key = 0; key < 5 * maximum; key++) {
            String text = "%064d".formatted(key);
            // Of each caller another number.
            RateLimiter caller =
                    numbers ? limiter.ofCallers(CallerLimit.of("5/" + (3_600_000_000L + key) + "us")) : limiter;
            for (int call = 0; call <= limit.rate().permits(); call++) {
                ticker.advanceNanos(1);
                Reservation reservation = caller.reserve(text, 1, 0);
                if (limit.isCharged()) {
                    reservation.settle(1);
                }
            }
        }
        long most = KeyMemory.bytesPerKey(limit, numbers) * maximum;
        // The cache removes keys in a thread of its own.
        Threads.until(() -> used() - before <= most);
        assertThat(limiter.keys()).isPositive();
    }

    /** Whatever their numbers are: logs that are larger than that of the limit count as several keys. */
    @Test
    void logsOfCallersWithLargeNumbersTakeNoMoreThanTheSizingCounts() {
        Limit limit = Limit.of("keys", Algorithm.SLIDING_LOG).rate("5/h").build();
        int maximum = 5_000;
        long before = used();
        ManualTicker ticker = new ManualTicker();
        InMemoryRateLimiter limiter = new InMemoryRateLimiter(limit, ticker, maximum);
        RateLimiter large = limiter.ofCallers(CallerLimit.of("1000/h"));
        for (int key = 0; key < 2 * maximum; key++) {
            String text = "%064d".formatted(key);
            for (int call = 0; call < 1_000; call++) {
                ticker.advanceNanos(1);
                large.tryAcquire(text, 1);
            }
        }
        long most = KeyMemory.bytesPerKey(limit, true) * maximum;
        Threads.until(() -> used() - before <= most);
        assertThat(limiter.keys()).isPositive();
    }

    /** The bytes of all objects that are reachable. The used part of the heap counts regions that are not full, too. */
    private static long used() {
        String histogram;
        try {
            histogram = (String) ManagementFactory.getPlatformMBeanServer()
                    .invoke(
                            new ObjectName("com.sun.management:type=DiagnosticCommand"),
                            "gcClassHistogram",
                            new Object[] {new String[0]},
                            new String[] {String[].class.getName()});
        } catch (JMException ex) {
            throw new IllegalStateException(ex);
        }
        Matcher total = TOTAL.matcher(histogram);
        assertThat(total.find()).as(histogram).isTrue();
        return Long.parseLong(total.group(1));
    }
}
