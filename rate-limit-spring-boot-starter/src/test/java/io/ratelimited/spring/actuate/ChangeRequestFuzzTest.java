package io.ratelimited.spring.actuate;

import static org.assertj.core.api.Assertions.assertThat;

import com.code_intelligence.jazzer.junit.FuzzTest;
import io.ratelimited.spring.internals.limit.LimitProperty;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;

/** Bodies of requests to the endpoint: a member a line. */
@Tag("fuzz")
class ChangeRequestFuzzTest {

    @Timeout(10)
    @FuzzTest
    void aBodyIsReadOrRejectedWithAReason(byte[] input) {
        Map<String, String> members = new TreeMap<>();
        new String(input, StandardCharsets.UTF_8).lines().forEach(line -> {
            String[] member = line.split("=", 2);
            members.put(member[0], member.length == 1 ? "" : member[1]);
        });
        ChangeRequest request = new ChangeRequest("search", members);
        check(() -> assertThat(request.budget().keySet())
                .isSubsetOf(LimitProperty.TIER, LimitProperty.RATE, LimitProperty.BURST));
        check(() -> assertThat(request.properties()).isNotEmpty());
        check(() -> assertThat(request.lasting() == null).isEqualTo(!members.containsKey("for")));
        check(request::candidates);
        check(() -> assertThat(request.reverts()).isEqualTo(members.containsKey("revert")));
    }

    private static void check(Runnable reading) {
        try {
            reading.run();
        } catch (IllegalArgumentException ex) {
            assertThat(ex.getMessage()).isNotBlank();
        }
    }
}
