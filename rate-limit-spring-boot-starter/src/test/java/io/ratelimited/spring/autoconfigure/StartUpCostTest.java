package io.ratelimited.spring.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.Applications;
import io.ratelimited.spring.Fork;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.internals.aop.RateLimitAspect;
import io.ratelimited.spring.internals.limit.LimitSettings;
import java.io.InputStream;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.springframework.beans.factory.config.BeanFactoryPostProcessor;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.boot.context.properties.source.MapConfigurationPropertySource;

/** What a start with the starter does not do, counted instead of timed. */
@Tag("slow")
final class StartUpCostTest {

    private static final int TIMES = 1_000;

    @TempDir
    private Path directory;

    private @Nullable LimitSettings made;

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

    /** Without this file Spring Boot reads the class of every auto-configuration at each start. */
    @Test
    void springBootNeedsNoClassOfAnAutoConfigurationThatDoesNotApply() throws Exception {
        Properties metadata = new Properties();
        try (InputStream in =
                Files.newInputStream(Path.of("target/classes/META-INF/spring-autoconfigure-metadata.properties"))) {
            metadata.load(in);
        }
        assertThat(metadata).containsKey(RateLimitAutoConfiguration.class.getName());
        assertThat(metadata.getProperty(
                        "io.ratelimited.spring.redis.RedisRateLimitAutoConfiguration.ConditionalOnClass"))
                .contains("io.ratelimited.redis.RedisBackend");
    }

    /** Reflection that is found anew for each limit made ten kilobytes of garbage every time. */
    @Test
    void propertiesOfALimitAreReadWithinTwoKilobytes() {
        RateLimitProperties properties = new Binder(new MapConfigurationPropertySource(
                        Map.of("rate-limit.limits.a.rate", "1/s", "rate-limit.limits.a.algorithm", "gcra")))
                .bind("rate-limit", RateLimitProperties.class)
                .get();
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        read(properties, TIMES);
        long before = threads.getCurrentThreadAllocatedBytes();
        read(properties, TIMES);
        assertThat((threads.getCurrentThreadAllocatedBytes() - before) / TIMES).isLessThan(2048);
        assertThat(made).isEqualTo(properties.limitSettings());
    }

    /** To search, convert and merge it again at each step was a third of what a thousand methods cost. */
    @Test
    void annotationOfABeanIsReadOnce() {
        try (var context = Applications.start(new ManualTicker(), new Class<?>[] {Reader.class, Service.class})) {
            assertThat(context.getBean(Service.class).call()).isEqualTo(1);
            assertThat(context.getBean(Reader.class).read).containsOnlyOnce("9/s");
        }
    }

    /** Notes what is read of annotations: each attribute may have placeholders. */
    static class Reader implements BeanFactoryPostProcessor {

        final List<String> read = new ArrayList<>();

        @Override
        public void postProcessBeanFactory(ConfigurableListableBeanFactory beans) {
            beans.addEmbeddedValueResolver(text -> {
                read.add(text);
                return text;
            });
        }
    }

    static class Service {

        @RateLimited(rate = "9/s")
        public int call() {
            return 1;
        }
    }

    private void read(RateLimitProperties properties, int times) {
        for (int i = 0; i < times; i++) {
            made = properties.limitSettings();
        }
    }
}
