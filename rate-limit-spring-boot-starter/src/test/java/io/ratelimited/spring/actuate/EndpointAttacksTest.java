package io.ratelimited.spring.actuate;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import com.sun.management.ThreadMXBean;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.Contexts;
import io.ratelimited.spring.NamedLimit;
import io.ratelimited.spring.TestLimits;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;

/** The endpoint of operators, while callers fill memory with keys. */
class EndpointAttacksTest {

    private final ShownKeys keys = new ShownKeys(true);

    private static void withManyKeys(Consumer<NamedLimit> test) {
        Contexts.runner(new ManualTicker())
                .withPropertyValues("rate-limit.limits.search.rate=1/h", "rate-limit.limits.search.key=#user")
                .run(context -> {
                    TestLimits limits = TestLimits.of(context);
                    for (int i = 0; i < 20_000; i++) {
                        limits.tryAcquire("search", "user " + i);
                    }
                    test.accept(limits.limit("search"));
                });
    }

    @Test
    void aMaskOfNoKeyIsRefusedWithoutLookingAtTheKeys() {
        withManyKeys(limit -> {
            keys.show("user 7");
            // The first time, classes are loaded.
            assertThatMaskIsUnknown(limit);
            ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
            long before = threads.getCurrentThreadAllocatedBytes();
            assertThatMaskIsUnknown(limit);
            assertThat(threads.getCurrentThreadAllocatedBytes() - before).isLessThan(1_000_000);
            assertThat(keys.find(limit, "user 7")).containsExactly("user 7");
        });
    }

    private void assertThatMaskIsUnknown(NamedLimit limit) {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> keys.find(limit, "masked:000000000000"))
                .withMessage("there is no key with the mask 'masked:000000000000' under rate limit 'search': use"
                        + " one of the last 1000 masks that the endpoint of this instance has shown");
    }

    @Test
    void aTextMayBeThatOfANumberOrOfAUuid() {
        withManyKeys(limit -> {
            UUID id = UUID.fromString("0b2ad2b3-5f1c-4c1e-9d8e-2a7e0f6d9c11");
            assertThat(keys.find(limit, id.toString())).containsExactly(id.toString(), id);
            assertThat(keys.find(limit, "42")).containsExactly("42", 42L, 42);
            assertThat(keys.find(limit, "042")).containsExactly("042");
        });
    }

    @Test
    void aMaskThatWasShownIsFoundUntilAThousandOthersWereShown() {
        withManyKeys(limit -> {
            List<String> masks = new ArrayList<>();
            for (int i = 0; i <= ShownKeys.MASKS; i++) {
                masks.add(keys.show("user " + i));
            }
            assertThatIllegalArgumentException().isThrownBy(() -> keys.find(limit, masks.get(0)));
            for (int i = 1; i <= ShownKeys.MASKS; i++) {
                assertThat(keys.find(limit, masks.get(i))).containsExactly("user " + i);
            }
        });
    }
}
