package io.ratelimited.redis.simulation;

import com.code_intelligence.jazzer.junit.FuzzTest;
import java.util.Arrays;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;

/** {@link ForeignRecordsTest} with what a fuzzer invents. */
@Tag("fuzz")
class ForeignRecordsFuzzTest {

    /** Of the input the record has what is in front of the first zero, and the list of its latest writes the rest. */
    @Timeout(10)
    @FuzzTest
    void aChangeIsWrittenAndKnownWhateverWasThere(byte[] input) {
        int end = 0;
        while (end < input.length && input[end] != 0) {
            end++;
        }
        new ForeignRecordsTest()
                .spoil(
                        Arrays.copyOf(input, end),
                        Arrays.copyOfRange(input, Math.min(input.length, end + 1), input.length));
    }
}
