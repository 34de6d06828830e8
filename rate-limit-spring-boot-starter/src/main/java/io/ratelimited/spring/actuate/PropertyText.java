package io.ratelimited.spring.actuate;

import java.time.Duration;
import java.util.Locale;

/** Values as they are written in properties. */
final class PropertyText {

    private static final String[] UNITS = {"d", "h", "m", "s", "ms", "us"};
    private static final long[] SIZES = {
        86_400_000_000_000L, 3_600_000_000_000L, 60_000_000_000L, 1_000_000_000L, 1_000_000L, 1_000L
    };

    private PropertyText() {}

    /** As in {@code token-bucket}. */
    static String of(Enum<?> constant) {
        return constant.name().toLowerCase(Locale.ROOT).replace('_', '-');
    }

    /** As in {@code 500ms}. */
    static String of(Duration duration) {
        long nanos = duration.toNanos();
        for (int i = 0; i < SIZES.length && nanos != 0; i++) {
            if (nanos % SIZES[i] == 0) {
                return nanos / SIZES[i] + UNITS[i];
            }
        }
        return nanos == 0 ? "0s" : nanos + "ns";
    }

    /** Seconds, rounded up to the microsecond. */
    static double seconds(Duration duration) {
        return Math.ceil(duration.toNanos() / 1e3) / 1e6;
    }
}
