package io.ratelimited.spring.aot;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.redis.RedisProcess;
import io.ratelimited.spring.Fork;
import io.ratelimited.spring.autoconfigure.RateLimitAutoConfiguration;
import io.ratelimited.spring.redis.RedisRateLimitAutoConfiguration;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.springframework.aot.AotDetector;
import org.springframework.aot.generate.DefaultGenerationContext;
import org.springframework.aot.generate.FileSystemGeneratedFiles;
import org.springframework.aot.hint.RuntimeHints;
import org.springframework.boot.autoconfigure.aop.AopAutoConfiguration;
import org.springframework.boot.test.util.TestPropertyValues;
import org.springframework.context.ApplicationContextInitializer;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.aot.ApplicationContextAotGenerator;
import org.springframework.context.support.GenericApplicationContext;

/**
 * What limits reach by reflection, while an application with every kind of them runs as it was processed ahead of time, is
 * what its hints name. A process of its own runs it, with Spring's agent that records reflection.
 */
@Tag("proof")
class ReflectionTest {

    @TempDir
    private Path directory;

    @Test
    void everythingThatLimitsReachByReflectionIsHinted() throws Exception {
        Path classes = Files.createDirectories(directory.resolve("classes"));
        process(directory, 6379);
        compile(directory.resolve("sources"), classes);
        try (RedisProcess redis = RedisProcess.start()) {
            assertThat(Fork.run(
                            directory,
                            String.join(
                                            File.pathSeparator,
                                            classes.toString(),
                                            directory.resolve("resources").toString())
                                    + File.pathSeparator
                                    + Fork.classPath(entry -> true),
                            ReflectionTest.class,
                            "-XX:TieredStopAtLevel=1",
                            "-Xshare:auto",
                            "-Dspring.aot.enabled=true",
                            "-Dredis.port=" + redis.port(),
                            "-javaagent:" + Fork.jar("spring-core-test") + "=+io.ratelimited"))
                    .containsExactly("refused 1", "enough 1");
        }
    }

    /** The recorded application. */
    public static void main(String[] arguments) throws Exception {
        int redis = Integer.getInteger("redis.port");
        System.clearProperty(AotDetector.AOT_ENABLED);
        RuntimeHints hints = process(Files.createTempDirectory("again"), redis);
        System.setProperty(AotDetector.AOT_ENABLED, "true");
        Recorded.run(hints, () -> {
            try (GenericApplicationContext context = new GenericApplicationContext()) {
                properties(redis).applyTo(context.getEnvironment());
                initializer().initialize(context);
                context.refresh();
                System.out.println("refused " + EveryKindApplication.callEverything(context));
            }
        });
    }

    @SuppressWarnings("unchecked")
    private static ApplicationContextInitializer<GenericApplicationContext> initializer() {
        try {
            return (ApplicationContextInitializer<GenericApplicationContext>)
                    Class.forName(EveryKindApplication.class.getName() + "__ApplicationContextInitializer")
                            .asSubclass(ApplicationContextInitializer.class)
                            .getDeclaredConstructor()
                            .newInstance();
        } catch (ReflectiveOperationException ex) {
            throw new IllegalStateException(ex);
        }
    }

    private static TestPropertyValues properties(int redis) {
        return TestPropertyValues.of(EveryKindApplication.PROPERTIES)
                .and("rate-limit.redis.url=redis://localhost:" + redis, "rate-limit.redis.timeout=5s");
    }

    private static RuntimeHints process(Path directory, int redis) {
        AnnotationConfigApplicationContext context = new AnnotationConfigApplicationContext();
        properties(redis).applyTo(context);
        context.register(
                AopAutoConfiguration.class,
                RateLimitAutoConfiguration.class,
                RedisRateLimitAutoConfiguration.class,
                EveryKindApplication.class);
        DefaultGenerationContext generation = new DefaultGenerationContext(
                new org.springframework.aot.generate.ClassNameGenerator(
                        org.springframework.javapoet.ClassName.get(EveryKindApplication.class)),
                new FileSystemGeneratedFiles(kind -> directory.resolve(
                        switch (kind) {
                            case SOURCE -> "sources";
                            case RESOURCE -> "resources";
                            case CLASS -> "classes";
                        })));
        new ApplicationContextAotGenerator().processAheadOfTime(context, generation);
        generation.writeGeneratedContent();
        context.close();
        return generation.getRuntimeHints();
    }

    private static void compile(Path sources, Path classes) throws IOException {
        List<String> arguments = new ArrayList<>(Arrays.asList("-proc:none", "-nowarn", "-d", classes.toString()));
        arguments.addAll(List.of("-cp", classes + File.pathSeparator + System.getProperty("java.class.path")));
        try (Stream<Path> files = Files.walk(sources)) {
            files.map(Path::toString).filter(file -> file.endsWith(".java")).forEach(arguments::add);
        }
        assertThat(ToolProvider.getSystemJavaCompiler().run(null, null, null, arguments.toArray(String[]::new)))
                .isZero();
    }
}
