package io.ratelimited.spring;

import java.util.Set;
import org.springframework.boot.autoconfigure.AutoConfigurationImportFilter;
import org.springframework.boot.autoconfigure.AutoConfigurationMetadata;

/**
 * Leaves out of the applications of the tests, which take every auto-configuration of the class path, those that have nothing to do with a
 * limit and take time at each start. The aspects of Resilience4j have AspectJ match each method of each bean, which was half the time of a
 * start; {@link AmongOtherAspectsTest} names the ones that it needs. Spring Data looks for repositories among all classes of the tests. The
 * others measure the JVM, the disk and the servers.
 */
final class OtherLibraries implements AutoConfigurationImportFilter {

    private static final String BOOT = "org.springframework.boot.";

    private static final Set<String> LEFT_OUT = Set.of(
            BOOT + "actuate.autoconfigure.info.InfoContributorAutoConfiguration",
            BOOT + "data.autoconfigure.metrics.DataRepositoryMetricsAutoConfiguration",
            BOOT + "data.autoconfigure.web.DataWebAutoConfiguration",
            BOOT + "data.redis.autoconfigure.DataRedisRepositoriesAutoConfiguration",
            BOOT + "health.autoconfigure.application.DiskSpaceHealthContributorAutoConfiguration",
            BOOT + "health.autoconfigure.application.SslHealthContributorAutoConfiguration",
            BOOT + "http.client.autoconfigure.metrics.HttpClientMetricsAutoConfiguration",
            BOOT + "jetty.autoconfigure.metrics.JettyMetricsAutoConfiguration",
            BOOT + "micrometer.metrics.autoconfigure.jvm.JvmMetricsAutoConfiguration",
            BOOT + "micrometer.metrics.autoconfigure.logging.logback.LogbackMetricsAutoConfiguration",
            BOOT + "micrometer.metrics.autoconfigure.ssl.SslMetricsAutoConfiguration",
            BOOT + "micrometer.metrics.autoconfigure.startup.StartupTimeMetricsListenerAutoConfiguration",
            BOOT + "micrometer.metrics.autoconfigure.system.SystemMetricsAutoConfiguration",
            BOOT + "micrometer.metrics.autoconfigure.task.TaskExecutorMetricsAutoConfiguration",
            BOOT + "tomcat.autoconfigure.metrics.TomcatMetricsAutoConfiguration");

    @Override
    public boolean[] match(String[] classes, AutoConfigurationMetadata metadata) {
        boolean[] kept = new boolean[classes.length];
        for (int i = 0; i < classes.length; i++) {
            kept[i] = classes[i] == null
                    || !(classes[i].startsWith("io.github.resilience4j.") || LEFT_OUT.contains(classes[i]));
        }
        return kept;
    }
}
