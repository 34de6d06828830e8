package io.ratelimited.spring.autoconfigure;

import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.springframework.boot.autoconfigure.AutoConfigurationImportFilter;
import org.springframework.boot.autoconfigure.AutoConfigurationMetadata;
import org.springframework.context.EnvironmentAware;
import org.springframework.core.Ordered;
import org.springframework.core.annotation.Order;
import org.springframework.core.env.Environment;
import org.springframework.util.ClassUtils;

/**
 * Leaves out of the applications of the tests, which take every auto-configuration of the class path, those that have nothing to do with a
 * limit and take time at each start. The aspects of Resilience4j have AspectJ match each method of each bean, which was half the time of a
 * start; {@link AmongOtherAspectsTest} names the ones that it needs. Spring Data looks for repositories among all classes of the tests. The
 * others measure the JVM, the disk and the servers, are endpoints that no test exposes, or are about transactions and what else
 * no test has. Left out too are those that lack a class: Spring Boot would look for it in every archive of the class path again at each start.
 *
 * <p>An application with the property {@code test.actuator=false} has no endpoints and no health either, which are a fifth of a start.
 */
@Order(Ordered.HIGHEST_PRECEDENCE)
final class OtherLibraries implements AutoConfigurationImportFilter, EnvironmentAware {

    private static final String BOOT = "org.springframework.boot.";

    private static final String SUFFIX = "AutoConfiguration";

    /** Of packages and classes that are there for the actuator; those of the starter are not among them. */
    private static final Set<String> ACTUATOR =
            Set.of(BOOT + "actuate.", BOOT + "health.autoconfigure.", ".autoconfigure.actuate.");

    private static final Set<String> LEFT_OUT = Set.of(
            "AuditEventsEndpoint",
            "BeansEndpoint",
            "CacheMetrics",
            "CachesEndpoint",
            "ConditionsReportEndpoint",
            "ConfigurationPropertiesReportEndpoint",
            "DataRedisRepositories",
            "DataRepositoryMetrics",
            "DataWeb",
            "DiskSpaceHealthContributor",
            "EnvironmentEndpoint",
            "HeapDumpWebEndpoint",
            "HttpClientMetrics",
            "HttpExchangesEndpoint",
            "HttpServiceClientProperties",
            "InfoContributor",
            "InfoEndpoint",
            "Jackson2Endpoint",
            "JettyMetrics",
            "Jta",
            "JvmMetrics",
            "LogFileWebEndpoint",
            "LogbackMetrics",
            "LoggersEndpoint",
            "MappingsEndpoint",
            "Netty",
            "PersistenceExceptionTranslation",
            "ProjectInfo",
            "RestTemplateObservation",
            "SbomEndpoint",
            "ScheduledTasksEndpoint",
            "ScheduledTasksObservation",
            "ServletHttpExchanges",
            "ServletMappings",
            "ShutdownEndpoint",
            "SpringApplicationAdminJmx",
            "SslHealthContributor",
            "SslMetrics",
            "StartupEndpoint",
            "StartupTimeMetricsListener",
            "SystemMetrics",
            "TaskExecutorMetrics",
            "TaskScheduling",
            "ThreadDumpEndpoint",
            "TomcatMetrics",
            "Transaction",
            "TransactionManagerCustomization",
            "WebFluxHttpExchanges",
            "WebFluxMappings",
            "WebMvcMappings");

    private static final Map<String, Boolean> FOUND = new ConcurrentHashMap<>();

    private boolean actuator = true;

    @Override
    public void setEnvironment(Environment environment) {
        actuator = environment.getProperty("test.actuator", Boolean.class, true);
    }

    @Override
    public boolean[] match(String[] classes, AutoConfigurationMetadata metadata) {
        boolean[] kept = new boolean[classes.length];
        for (int i = 0; i < classes.length; i++) {
            kept[i] = classes[i] == null || (!leftOut(classes[i]) && complete(classes[i], metadata));
        }
        return kept;
    }

    private boolean leftOut(String name) {
        return name.startsWith("io.github.resilience4j.")
                || (!actuator && name.startsWith(BOOT) && ACTUATOR.stream().anyMatch(name::contains))
                || (name.startsWith(BOOT)
                        && name.endsWith(SUFFIX)
                        && LEFT_OUT.contains(
                                name.substring(name.lastIndexOf('.') + 1, name.length() - SUFFIX.length())));
    }

    /** A class that is not on the class path of the tests is in no class loader that hides some of it. */
    private static boolean complete(String name, AutoConfigurationMetadata metadata) {
        Set<String> needed = metadata.getSet(name, "ConditionalOnClass");
        return needed == null || needed.stream().allMatch(type -> FOUND.computeIfAbsent(type, OtherLibraries::found));
    }

    private static boolean found(String type) {
        return ClassUtils.isPresent(type, OtherLibraries.class.getClassLoader());
    }
}
