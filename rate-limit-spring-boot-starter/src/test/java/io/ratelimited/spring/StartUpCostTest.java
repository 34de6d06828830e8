package io.ratelimited.spring;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import io.ratelimited.core.Algorithm;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What a start with the starter does not do, counted instead of timed. */
final class StartUpCostTest {

    private static final int TIMES = 1_000;

    @TempDir
    private Path directory;

    private LimitProperties made = LimitProperties.NONE;

    /** The world in which AspectJ matches pointcuts: hundreds of classes, and class files read for every bean. */
    @Test
    void limitedBeanBehindAProxyLoadsNothingOfAspectJsMatching() throws Exception {
        Path log = directory.resolve("classes");
        Fork.run(
                directory,
                Fork.classPath(entry -> true),
                BareApplication.class,
                Fork.SHORT,
                "-Xlog:class+load:file=\"" + log + "\":none");
        List<String> loaded = Files.readAllLines(log);
        assertThat(loaded).anyMatch(line -> line.startsWith(RateLimitAspect.class.getName() + " "));
        assertThat(loaded)
                .noneMatch(line -> line.startsWith("org.aspectj.weaver.World ")
                        || line.startsWith("org.aspectj.weaver.tools.")
                        || line.startsWith("org.aspectj.apache.bcel.")
                        || line.startsWith("org.springframework.core.ReactiveAdapterRegistry "));
    }

    /** Reflection that is found anew for each limit made ten kilobytes of garbage every time. */
    @Test
    void propertiesOfALimitAreReadAndMadeWithinTwoKilobytes() {
        LimitProperties properties = LimitProperties.of(Map.of("algorithm", Algorithm.TOKEN_BUCKET, "rate", "1/s"));
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        copy(properties, TIMES);
        long before = threads.getCurrentThreadAllocatedBytes();
        copy(properties, TIMES);
        assertThat((threads.getCurrentThreadAllocatedBytes() - before) / TIMES).isLessThan(2048);
        assertThat(made).isEqualTo(properties);
    }

    private void copy(LimitProperties properties, int times) {
        for (int i = 0; i < times; i++) {
            made = LimitProperties.of(properties.values());
        }
    }
}
