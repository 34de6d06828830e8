package io.ratelimited.benchmarks;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import javax.tools.ToolProvider;
import org.springframework.beans.factory.support.GenericBeanDefinition;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.support.GenericApplicationContext;

/**
 * Starts one application with a number of annotated methods, ten in a class, with the starter or without, and prints one
 * line: methods, with or without, milliseconds, beans, bytes of heap in use, bytes of metaspace. {@code StartUp generate
 * DIRECTORY} writes the classes first. One process a start, so that each is a cold one.
 */
public final class StartUp {

    private static final int METHODS_OF_A_CLASS = 10;
    private static final int CLASSES = 100;
    private static final String EXCLUDED = "io.ratelimited.spring.RateLimitAutoConfiguration";

    private StartUp() {}

    /** Takes {@code generate DIRECTORY}, or a number of methods and {@code with} or {@code without}. */
    public static void main(String[] args) throws Exception {
        if (args[0].equals("generate")) {
            generate(Path.of(args[1]));
        } else {
            start(Integer.parseInt(args[0]), args[1].equals("with"));
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

    private static void start(int methods, boolean with) throws Exception {
        List<Class<?>> services = new ArrayList<>();
        for (int i = 0; i < methods / METHODS_OF_A_CLASS; i++) {
            services.add(Class.forName("Service" + i));
        }
        SpringApplication application = new SpringApplication(Application.class);
        application.setWebApplicationType(WebApplicationType.NONE);
        application.setLogStartupInfo(false);
        application.setDefaultProperties(Map.of(
                "bucket4j.enabled", "false",
                "spring.main.banner-mode", "off",
                "logging.level.root", "off",
                "spring.autoconfigure.exclude", with ? "" : EXCLUDED));
        application.addInitializers(context -> {
            for (Class<?> service : services) {
                GenericBeanDefinition definition = new GenericBeanDefinition();
                definition.setBeanClass(service);
                ((GenericApplicationContext) context).registerBeanDefinition(service.getName(), definition);
            }
        });
        long before = System.nanoTime();
        try (ConfigurableApplicationContext context = application.run()) {
            long millis = (System.nanoTime() - before) / 1_000_000;
            System.gc();
            System.gc();
            long heap = ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed();
            long rest =
                    ManagementFactory.getMemoryMXBean().getNonHeapMemoryUsage().getUsed();
            System.out.println(methods + " " + (with ? "with" : "without") + " " + millis + " "
                    + context.getBeanDefinitionCount() + " " + heap + " " + rest);
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    static class Application {}
}
