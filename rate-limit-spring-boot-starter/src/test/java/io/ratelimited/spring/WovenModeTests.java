package io.ratelimited.spring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.woven.WovenApplication;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Classes woven by AspectJ, in a process of their own with the weaver as its agent. */
final class WovenModeTests {

    @Test
    void wovenClassesAreLimitedHoweverTheyAreCalledAndNeverTwice(@TempDir Path directory) throws Exception {
        assertThat(Fork.run(directory, WovenApplication.class, jar -> true, "-javaagent:" + Fork.jar("aspectjweaver")))
                .containsExactly(
                        "public 2",
                        "self 2",
                        "private 2",
                        "static 2",
                        "new 2",
                        "meta 2",
                        "future 2",
                        "mono 2",
                        "override 2",
                        "interface 2",
                        "remaining 1",
                        "closed 3");
    }

    @Test
    void classThatShouldBeWovenAndIsNotIsAnErrorAtTheStart() {
        assertThatThrownBy(() -> Applications.start(
                                new ManualTicker(),
                                new Class<?>[] {WovenApplication.Service.class},
                                "rate-limit.aspect.mode=woven",
                                "rate-limit.defaults.rate=2/h")
                        .close())
                .rootCause()
                .isInstanceOf(InvalidRateLimitException.class)
                .hasMessageContaining("rate-limit.aspect.mode is woven")
                .hasMessageContaining(WovenApplication.Service.class.getName() + " was not woven");
    }
}
