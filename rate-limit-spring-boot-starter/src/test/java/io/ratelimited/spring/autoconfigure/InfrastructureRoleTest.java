package io.ratelimited.spring.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.Contexts;
import io.ratelimited.spring.RateLimitOperations;
import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.internals.web.RouteLimits;
import java.lang.reflect.AnnotatedElement;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.beans.factory.config.BeanDefinition;
import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.context.annotation.ImportCandidates;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.context.annotation.Role;
import org.springframework.core.annotation.AnnotatedElementUtils;
import org.springframework.util.ClassUtils;

/** Spring warns of each bean that is made together with a post-processor, unless it says that it is part of the infrastructure. */
@ExtendWith(OutputCaptureExtension.class)
class InfrastructureRoleTest {

    private static final String OURS = "io.ratelimited.";

    @Test
    void everyConfigurationAndEveryBeanOfTheStarterIsInfrastructure() {
        Set<Class<?>> configurations = new HashSet<>();
        for (String name :
                ImportCandidates.load(AutoConfiguration.class, getClass().getClassLoader())) {
            if (name.startsWith(OURS)) {
                add(ClassUtils.resolveClassName(name, getClass().getClassLoader()), configurations);
            }
        }
        List<AnnotatedElement> all = configurations.stream()
                .flatMap(type -> Stream.<AnnotatedElement>concat(
                        Stream.of(type),
                        Stream.of(type.getDeclaredMethods())
                                .filter(method -> AnnotatedElementUtils.hasAnnotation(method, Bean.class))))
                .toList();
        assertThat(all).hasSizeGreaterThan(80);
        assertThat(all)
                .filteredOn(element -> {
                    Role role = AnnotatedElementUtils.findMergedAnnotation(element, Role.class);
                    return role == null || role.value() != BeanDefinition.ROLE_INFRASTRUCTURE;
                })
                .isEmpty();
    }

    /** A configuration, those within it, and those that it imports. */
    private static void add(Class<?> type, Set<Class<?>> all) {
        boolean configures = AnnotatedElementUtils.hasAnnotation(type, Configuration.class)
                || Stream.of(type.getDeclaredMethods())
                        .anyMatch(method -> AnnotatedElementUtils.hasAnnotation(method, Bean.class));
        if (!type.getName().startsWith(OURS) || !configures || !all.add(type)) {
            return;
        }
        Stream.of(type.getDeclaredClasses()).forEach(within -> add(within, all));
        Import imported = type.getAnnotation(Import.class);
        if (imported != null) {
            Stream.of(imported.value()).forEach(other -> add(other, all));
        }
    }

    @Test
    void nothingOfTheStarterIsWarnedOfWhereAPostProcessorUsesLimits(CapturedOutput output) {
        Contexts.runner(new ManualTicker())
                .withUserConfiguration(EarlyLimits.class)
                .withPropertyValues(
                        "rate-limit.limits.early.rate=1/s",
                        "rate-limit.routes[0].path=/early",
                        "rate-limit.routes[0].limits=early")
                .run(context -> assertThat(context).hasNotFailed());
        assertThat(output.toString().lines().filter(line -> line.contains("not eligible for getting processed")))
                .noneMatch(line -> line.matches(".*Bean '[^']*(ratelimited|rate-limit|RateLimit).*"));
    }

    @Configuration(proxyBeanMethods = false)
    static class EarlyLimits {

        @Bean
        static BeanPostProcessor early(RateLimits limits, RateLimitOperations operations, RouteLimits routes) {
            return new BeanPostProcessor() {};
        }
    }
}
