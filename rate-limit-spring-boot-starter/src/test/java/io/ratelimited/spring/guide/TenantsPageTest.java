package io.ratelimited.spring.guide;

import static org.assertj.core.api.Assertions.assertThat;
import static org.mockito.Mockito.mock;

import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.Contexts;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.file.Path;
import java.util.List;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.cache.Cache;
import org.springframework.cache.annotation.EnableCaching;
import org.springframework.cache.concurrent.ConcurrentMapCacheManager;
import org.springframework.context.annotation.Configuration;

/** The page on limits per tenant: its snippet, in an application that runs. */
@Tag("once")
@Tag("slow")
class TenantsPageTest {

    @TempDir
    private static Path directory;

    @Configuration(proxyBeanMethods = false)
    @EnableCaching
    static class Caching {}

    @Test
    void tenantsHaveTheNumbersOfTheTableFromTheCacheAndWhileItIsDownThoseOfTheLimit() throws Exception {
        List<Class<?>> types = DocPage.compile(
                DocPage.section("several-limits-and-tiers.md", "Limits per tenant from your database")
                        .blocks("java"),
                directory);
        Class<?> invoices = named(types, "Invoices");
        Class<?> contracts = named(types, "Contracts");
        Class<?> table = named(types, "ContractTable");
        ApplicationContextRunner runner = Contexts.runner(new ManualTicker())
                .withClassLoader(invoices.getClassLoader())
                .withBean(ConcurrentMapCacheManager.class)
                .withUserConfiguration(Caching.class, invoices, contracts);
        runner.withUserConfiguration(table).run(context -> {
            assertThat(admitted(context.getBean(invoices), invoices, "acme")).isEqualTo(1_000);
            assertThat(admitted(context.getBean(invoices), invoices, "other")).isEqualTo(60);
            Cache cache = context.getBean(ConcurrentMapCacheManager.class).getCache("contracts");
            assertThat(cache.get("acme", String.class)).isEqualTo("500/m burst 1000");
            cache.put("acme", "500/m burst 1010");
            assertThat(admitted(context.getBean(invoices), invoices, "acme")).isZero();
        });
        withDatabaseDown(runner, table).run(context -> {
            assertThat(admitted(context.getBean(invoices), invoices, "acme")).isEqualTo(60);
        });
    }

    @SuppressWarnings("unchecked")
    private static ApplicationContextRunner withDatabaseDown(ApplicationContextRunner runner, Class<?> table) {
        Supplier<Object> failing = () -> mock(table, call -> {
            throw new IllegalStateException("the database is down");
        });
        return runner.withBean((Class<Object>) table, failing);
    }

    private static Class<?> named(List<Class<?>> types, String name) {
        return types.stream()
                .filter(type -> type.getSimpleName().equals(name))
                .findFirst()
                .orElseThrow();
    }

    private static int admitted(@Nullable Object bean, Class<?> type, String tenant) throws Exception {
        Method create = type.getDeclaredMethod("create", String.class);
        create.setAccessible(true);
        for (int calls = 0; ; calls++) {
            try {
                create.invoke(bean, tenant);
            } catch (InvocationTargetException ex) {
                assertThat(ex).hasCauseInstanceOf(RateLimitExceededException.class);
                return calls;
            }
        }
    }
}
