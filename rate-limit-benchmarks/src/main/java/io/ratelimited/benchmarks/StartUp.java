package io.ratelimited.benchmarks;

import java.io.IOException;
import java.lang.management.ClassLoadingMXBean;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import javax.tools.ToolProvider;
import org.aspectj.lang.ProceedingJoinPoint;
import org.aspectj.lang.annotation.Around;
import org.aspectj.lang.annotation.Aspect;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.support.GenericBeanDefinition;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.support.GenericApplicationContext;

/**
 * Starts one application with a number of annotated methods, ten in a class, and prints one line: methods, kind,
 * milliseconds, beans, bytes of heap in use, bytes of metaspace, milliseconds of processor time of the starting thread
 * (which means something on a busy machine too), classes loaded. The kinds are {@code with} the starter, {@code without},
 * and {@code aspect}: without, but with an aspect that does nothing, which is what it costs to have AspectJ's pointcuts.
 * {@code StartUp generate DIRECTORY} writes the classes first. One process a start, so that each is a cold one.
 */
public final class StartUp {

    private static final int METHODS_OF_A_CLASS = 10;
    private static final int CLASSES = 100;
    private static final String EXCLUDED = "io.ratelimited.spring.autoconfigure.RateLimitAutoConfiguration";

    private StartUp() {}

    /** Takes {@code generate DIRECTORY}, or a number of methods and a kind. */
    public static void main(String[] args) throws Exception {
        if (args[0].equals("generate")) {
            generate(Path.of(args[1]));
        } else {
            start(Integer.parseInt(args[0]), args[1]);
        }
    }

    private static void generate(Path directory) throws IOException {
        Files.createDirectories(directory);
        List<String> arguments = new ArrayList<>(List.of("-parameters", "-proc:none", "-d", directory.toString()));
        for (int i = 0; i < CLASSES; i++) {
            StringBuilder source = new StringBuilder("public class Service" + i + " {\n");
            for (int j = 0; j < METHODS_OF_A_CLASS; j++) {
                source.append("  @io.ratelimited.spring.RateLimited(rate = \"100/s\", key = \"#id\")\n")
                        .append("  public String method" + j + "(String id) { return id; }\n");
            }
            Path file = directory.resolve("Service" + i + ".java");
            Files.writeString(file, source.append("}\n"));
            arguments.add(file.toString());
        }
        if (ToolProvider.getSystemJavaCompiler().run(null, null, null, arguments.toArray(String[]::new)) != 0) {
            throw new IllegalStateException("the generated classes do not compile");
        }
    }

    private static void start(int methods, String kind) throws Exception {
        List<Class<?>> services = new ArrayList<>();
        for (int i = 0; i < methods / METHODS_OF_A_CLASS; i++) {
            services.add(Class.forName("Service" + i));
        }
        SpringApplication application = new SpringApplication(Application.class);
        application.setWebApplicationType(WebApplicationType.NONE);
        application.setLogStartupInfo(false);
        application.setDefaultProperties(Map.of(
                "bucket4j.enabled", "false",
                "spring.cloud.gateway.server.webflux.enabled", "false",
                "spring.main.banner-mode", "off",
                "logging.level.root", "off",
                "spring.autoconfigure.exclude", kind.equals("with") ? "" : EXCLUDED));
        application.addInitializers(context -> {
            if (kind.equals("aspect")) {
                ((GenericApplicationContext) context).registerBean(Idle.class);
            }
            for (Class<?> service : services) {
                GenericBeanDefinition definition = new GenericBeanDefinition();
                definition.setBeanClass(service);
                ((GenericApplicationContext) context).registerBeanDefinition(service.getName(), definition);
            }
        });
        ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        ClassLoadingMXBean classes = ManagementFactory.getClassLoadingMXBean();
        long loadedBefore = classes.getTotalLoadedClassCount();
        long processorBefore = threads.getCurrentThreadCpuTime();
        long before = System.nanoTime();
        try (ConfigurableApplicationContext context = application.run()) {
            long millis = (System.nanoTime() - before) / 1_000_000;
            long processor = (threads.getCurrentThreadCpuTime() - processorBefore) / 1_000_000;
            long loaded = classes.getTotalLoadedClassCount() - loadedBefore;
            System.gc();
            System.gc();
            long heap = ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed();
            long rest =
                    ManagementFactory.getMemoryMXBean().getNonHeapMemoryUsage().getUsed();
            System.out.println(methods + " " + kind + " " + millis + " " + context.getBeanDefinitionCount() + " " + heap
                    + " " + rest + " " + processor + " " + loaded);
        }
    }

    /** An aspect as the starter's, that does nothing. */
    @Aspect
    static class Idle {

        @Around("execution(@io.ratelimited.spring.RateLimited * *(..))")
        public @Nullable Object proceed(ProceedingJoinPoint call) throws Throwable {
            return call.proceed();
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    static class Application {}
}
