package io.ratelimited.spring.way;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Map;
import java.util.concurrent.Callable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * The types that a call meets, and the calls that they make, to whomever: one more look-up in a map on the way of every call
 * fails here, on a machine that does other work too.
 */
@Tag("once")
class WayTest {

    /** Types and calls. Who needs more raises these numbers and says why; what takes fewer lowers them. */
    private static final Map<String, int[]> MOST = Map.of(
            "plain", new int[] {20, 66},
            "two", new int[] {34, 290},
            "GET", new int[] {41, 257},
            "rejected GET", new int[] {50, 500});

    /**
     * Bytes that a call allocates beyond one without a limit, with the first compiler alone, which leaves out nothing. The second
     * one leaves out all of a plain call: see AllocationTest of the Spring module.
     */
    private static final Map<String, Integer> MOST_BYTES =
            Map.of("plain", 48, "two", 256, "GET", 840, "rejected GET", 10_176);

    /** By so many bytes a call may grow: less than by two objects. */
    private static final int STEP = 32;

    @Test
    void aCallMeetsNoMoreTypesAndMakesNoMoreCallsThanIsStated() throws Exception {
        RecordingLoader loader = new RecordingLoader();
        Thread thread = Thread.currentThread();
        ClassLoader before = thread.getContextClassLoader();
        thread.setContextClassLoader(loader);
        try {
            Map<String, Map<String, Integer>> ways = ways(loader);
            Map<String, Integer> bytes = ways.remove(Ways.BYTES);
            System.out.println("WAY bytes: " + bytes);
            assertThat(bytes.keySet()).isEqualTo(MOST_BYTES.keySet());
            bytes.forEach((way, allocated) -> assertThat(allocated)
                    .as("bytes of the way '%s'", way)
                    .isLessThanOrEqualTo(MOST_BYTES.get(way) + STEP));
            ways.forEach((way, calls) -> {
                int[] found = {
                    calls.size(), calls.values().stream().mapToInt(i -> i).sum()
                };
                System.out.printf("WAY %s: %d types, %d calls%n", way, found[0], found[1]);
                for (int i = 0; i < found.length; i++) {
                    assertThat(found[i])
                            .as("%s of the way '%s': %s", i == 0 ? "types" : "calls", way, calls)
                            .isPositive()
                            .isLessThanOrEqualTo(MOST.get(way)[i]);
                }
            });
        } finally {
            thread.setContextClassLoader(before);
        }
    }

    @SuppressWarnings("unchecked")
    private static Map<String, Map<String, Integer>> ways(ClassLoader loader) throws Exception {
        return ((Callable<Map<String, Map<String, Integer>>>) loader.loadClass(Ways.class.getName())
                        .getDeclaredConstructor()
                        .newInstance())
                .call();
    }
}
